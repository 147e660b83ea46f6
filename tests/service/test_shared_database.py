"""Collectors in processes of their own share a database, and are restarted one by one."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tests.service.running import Running
from tests.small_tasks import lights
from tests.store.own_postgres import OwnPostgres

BASE = "http://127.0.0.1:9"


@pytest.fixture
def server() -> Iterator[OwnPostgres]:
    with OwnPostgres() as running:
        yield running


def test_a_rolling_restart_leaves_no_moment_without_a_collector(server: OwnPostgres) -> None:
    task = lights(1000, "1 second", epsilon=1.0)
    first, second = (Running(server.dsn, "--url", BASE) for _ in range(2))
    made = first.publish(task, grace=1, sealed=False, public=True)
    name = made["task_id"]
    assert json.loads(second.read(f"/v1/tasks/{name}"))["spec"]["title"] == task["title"]
    first.wait_until_closed(name, 1)
    assert first.stop() == 0
    closed = json.loads(second.read("/v1/tasks"))["tasks"][0]["closed"]
    second.wait_until_closed(name, closed + 1)
    third = Running(server.dsn, "--url", BASE)
    assert second.stop() == 0
    third.wait_until_closed(name, closed + 2)
    assert third.stop() == 0
