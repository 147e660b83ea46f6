"""Collectors in processes of their own share a database, and are restarted one by one."""

from __future__ import annotations

import json
import signal
import time
import urllib.error
from collections.abc import Callable, Iterator

import psycopg
import pytest
from tests.service.fleets import Fleet, batch, joined
from tests.service.running import Running
from tests.small_tasks import lights
from tests.store.own_postgres import OwnPostgres

from sfumato.store.postgres import PostgresStore

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


@pytest.mark.parametrize(
    "seconds", [2, pytest.param(60, marks=pytest.mark.slow)], ids=["moment", "minute"]
)
def test_a_database_that_was_away_is_found_again(server: OwnPostgres, seconds: int) -> None:
    with Running(server.dsn, "--url", BASE) as running:
        start = int(time.time())
        made = running.publish(lights(1000, "1 hour"), start=start - 5400, grace=7200, public=True)
        task = joined(running, made["task_id"])
        messages = iter(Fleet(task, 300).messages([1] * 300))
        body = batch(task, [next(messages)])
        assert running.upload(task.name, body)["accepted"] == 1
        server.stop(signal.SIGQUIT)
        end, lost = time.monotonic() + seconds, batch(task, [next(messages)])
        while time.monotonic() < end:
            with pytest.raises(urllib.error.HTTPError, match="503"):
                running.upload(task.name, lost)
            time.sleep(0.3)
        status, text = running.status("/readyz")
        assert (status, text.count("cannot be reached")) == (503, 1)
        server.start()
        _until(lambda: running.status("/readyz")[0] == 200)
        assert running.upload(task.name, lost)["accepted"] == 1
        assert running.upload(task.name, body)["repeated"] == 1


def test_a_database_that_only_reads_is_trouble(server: OwnPostgres) -> None:
    store = PostgresStore(server.dsn)
    assert store.unwritable() is None
    with psycopg.connect(server.dsn, autocommit=True) as database:
        database.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        database.execute("SELECT pg_reload_conf()")
    _until(lambda: "read-only" in (store.unwritable() or ""))
    store.close()


def _until(holds: Callable[[], bool]) -> None:
    patience = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < patience
        time.sleep(0.1)
