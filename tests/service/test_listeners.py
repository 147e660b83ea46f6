"""Who listens to a task hears nothing more once it is not there any more for them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from tests.service.fleets import Fleet
from tests.service.world import START, VALUES, World

from sfumato.service import access, event_stream
from sfumato.service.access import new_token, role_of_task, set_token


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.service.pages._service.desks.stop()  # noqa: SLF001
    made.service._news.stop()  # noqa: SLF001
    made.service.store_news.stop()
    made.store.close()


def _asked(world: World, token: str) -> Request:
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": f"/v1/tasks/{world.hidden.name}/events",
        "path_params": {"task_id": world.hidden.name},
        "query_string": b"",
        "headers": [(b"authorization", f"Bearer {token}".encode())],
        "client": ("127.0.0.1", 1),
    }
    return Request(scope)


def _close_period(world: World) -> None:
    fleet = Fleet(world.hidden, len(VALUES))
    assert world.collector.take(world.hidden, fleet.body(VALUES)).accepted
    world.now = START + 10.0 + 6.0
    world.collector.close_due()
    world.service.bell.ring()


def _deleted(world: World, role: str) -> None:
    del role
    world.collector.delete(world.hidden)


def _revoked(world: World, role: str) -> None:
    world.store.drop_token(role)  # as another process may have done


def _kept(world: World, role: str) -> None:
    assert world.hidden.name in role


@pytest.mark.parametrize("change", [_deleted, _revoked, _kept])
def test_a_listener_who_may_not_read_a_task_any_more_hears_no_further_period(
    world: World, monkeypatch: pytest.MonkeyPatch, change: Callable[[World, str], None]
) -> None:
    monkeypatch.setattr(access, "REFRESH", -1.0)
    monkeypatch.setattr(event_stream, "BREATH", 0.05)
    role, token = role_of_task(world.hidden.name, "lab"), new_token()
    set_token(world.store, role, token)
    world.service.access.refresh()

    async def heard() -> list[str]:
        response: Any = await world.service.events(_asked(world, token))
        events = response.body_iterator
        told = [await anext(events), await anext(events)]
        change(world, role)
        if change is not _deleted:
            _close_period(world)
        async for event in events:
            told.append(event)
            if event.startswith("id: 1"):
                break
        return told

    first, breath, *others = asyncio.run(asyncio.wait_for(heard(), 10))
    assert (first, breath) == ("retry: 2000\n\n", ": all is well\n\n")
    assert any(event.startswith("id: 1") for event in others) == (change is _kept)
