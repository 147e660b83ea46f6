"""A task that takes long to design is published for whoever waits for it, and starts after that."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from tests.service.world import TASK, World

from sfumato import catalog
from sfumato.errors import InputError
from sfumato.wire.task import Task


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    with made.client:
        yield made
    made.store.close()


def test_a_task_whose_sender_leaves_meanwhile_is_not_published(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Left:
        has_left = False

    body = json.dumps({"task": TASK}).encode()
    headers = [(b"authorization", world.headers("operator")["Authorization"].encode())]
    scope = {"type": "http", "headers": headers, "sfumato.connection": Left(), "path": "/v1/tasks"}
    design = catalog.stream

    def slow(task: Task) -> Any:
        Left.has_left = True
        return design(task)

    with monkeypatch.context() as patch:
        patch.setattr(catalog, "stream", slow)
        with pytest.raises(InputError, match="nobody waits for the task any more"):
            asyncio.run(world.service._published(Request(scope), body))  # noqa: SLF001
    assert len(world.collector.running_tasks) == 2
    Left.has_left = False
    asyncio.run(world.service._published(Request(scope), body))  # noqa: SLF001
    assert len(world.collector.running_tasks) == 3


def test_a_task_that_is_designed_for_long_starts_after_that(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    design = catalog.stream

    def slow(task: Task) -> Any:
        world.now += 3 * 3600
        return design(task)

    monkeypatch.setattr(catalog, "stream", slow)
    published = world.client.post(
        "/v1/tasks", json={"task": TASK}, headers=world.headers("operator")
    )
    assert published.json()["start"] > world.now
