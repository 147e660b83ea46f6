"""A store that gives no answer, or cannot be written, holds up no request."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from tests.service.world import TASK, World

from sfumato.service import access, store_news
from sfumato.service import health as healths
from sfumato.service.health import PROBE, Health
from sfumato.service.joined_metrics import Figures
from sfumato.service.store_news import StoreNews
from sfumato.store.store_addresses import DatabaseAway
from sfumato.wire.receipts import Receipt

STRANGER = "/v1/tasks/" + "0" * 64


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    with made.client:
        yield made
    made.store.close()


def test_requests_wait_for_a_silent_store_once_and_not_for_long(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = Event()
    waits: list[float] = []

    async def noted(futures: Any, timeout: float) -> Any:  # noqa: ASYNC109 -- that of asyncio.wait
        waits.append(timeout)
        return await asyncio.wait(futures, timeout=timeout)

    known = SimpleNamespace(get_running_loop=asyncio.get_running_loop, wait=noted)
    monkeypatch.setattr(store_news, "asyncio", known)
    monkeypatch.setattr(world.store, "versions", answer.wait)
    monkeypatch.setattr(store_news, "PATIENCE", 0.2)
    news = StoreNews(world.collector, world.service.access)
    scope: Any = {"path": STRANGER, "headers": []}

    async def asked() -> float:
        began = time.monotonic()
        for number in range(3):
            waiting = asyncio.create_task(news.before(scope))
            await asyncio.sleep(0)
            assert number or not waiting.done()  # the loop goes on meanwhile
            await waiting
        return time.monotonic() - began

    try:
        assert asyncio.run(asked()) >= 0.2
        assert 0 < sum(waits) < 0.21  # seconds that were waited for, however busy the machine is
    finally:
        answer.set()
        news.stop()


def test_tokens_that_are_known_are_good_enough_while_the_store_is_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise DatabaseAway("the database cannot be reached.")

    monkeypatch.setattr(access, "REFRESH", -1.0)
    monkeypatch.setattr(world.store, "tokens", away)
    assert world.client.get("/metrics", headers=world.headers("analyst")).status_code == 200
    assert world.client.get("/metrics", headers=world.headers("x" * 30)).status_code == 401


@pytest.mark.parametrize(
    "error",
    [
        DatabaseAway("the database secret.example has broken off."),
        sqlite3.OperationalError("disk I/O error"),
        OSError(28, "No space left on device"),
    ],
)
def test_whatever_needs_a_store_that_is_away_is_to_be_tried_again(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    world.now += 20
    world.close_periods()

    def away(*_: Any, **__: Any) -> Any:
        raise error

    for name in ("tallies", "participation", "add_task", "set_token"):
        monkeypatch.setattr(world.store, name, away)
    operator = world.headers("operator")
    name = world.open.name
    for response in (
        world.client.get(f"/v1/tasks/{name}/answers?query=mean&period=1"),
        world.client.post("/v1/tasks", json={"task": TASK}, headers=operator),
        world.client.post(f"/v1/tasks/{name}/tokens?name=lab", headers=operator),
    ):
        assert response.status_code == 503
        assert response.headers["retry-after"] == "5"
        assert "cannot be read or written now" in response.json()["detail"]
        assert "secret.example" not in response.text


def test_nothing_is_changed_while_it_would_be_lost(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(healths, "free_memory", lambda: 5 << 20)
    assert world.client.get("/readyz").status_code == 503
    operator, name = world.headers("operator"), world.open.name
    for method, address in (
        ("POST", f"/v1/tasks/{name}/tokens?name=lab"),
        ("POST", f"/v1/tasks/{name}/keys"),
        ("POST", f"/v1/tasks/{name}/end?confirm={name}"),
        ("DELETE", f"/v1/tasks/{name}?confirm={name}"),
    ):
        response = world.client.request(method, address, headers=operator)
        assert response.status_code == 503, address
        assert "Nothing is changed now: memory is exhausted: 5 MiB are free." in response.text
    published = world.client.post("/v1/tasks", json={"task": TASK}, headers=operator)
    assert published.status_code == 503
    assert len(world.collector.running_tasks) == 2


def test_a_store_elsewhere_is_written_to_now_and_then() -> None:
    now, said = [0.0], ["the database only reads"]
    health = Health(clock=lambda: now[0], probe=lambda: said[0] or None)
    assert health.look() == []
    now[0] = PROBE
    assert health.look() == []  # it may have been a moment
    assert health.look() == [
        "the last attempt to write failed, and nothing can be written (the database only reads)"
    ]
    said[0] = ""
    assert health.look() == []
    now[0] += PROBE / 2
    said[0] = "the database only reads"
    assert health.look() == []


def test_metrics_of_a_deleted_task_are_gone(world: World) -> None:
    headers, name = world.headers("analyst"), world.hidden.name
    assert name in world.client.get("/metrics", headers=headers).text
    world.service.writer.call(lambda: world.collector.delete(world.hidden)).result()
    text = world.client.get("/metrics", headers=headers).text
    assert name not in text
    assert world.open.name in text


def test_metrics_of_a_deleted_task_do_not_come_back(world: World) -> None:
    headers, running, metrics = world.headers("analyst"), world.hidden, world.service.metrics
    metrics.received(running, [Receipt(accepted=2)])  # and nobody has looked at it yet
    world.service.writer.call(lambda: world.collector.delete(running)).result()
    for _ in range(2):
        assert running.name not in world.client.get("/metrics", headers=headers).text
        metrics.received(running, [Receipt(accepted=2)])  # of an upload that was on its way


def test_metrics_that_another_worker_has_of_a_deleted_task_are_not_shown(world: World) -> None:
    headers, running, metrics = world.headers("analyst"), world.hidden, world.service.metrics
    metrics.received(running, [Receipt(accepted=2)])
    before = metrics.figures()
    world.service.writer.call(lambda: world.collector.delete(running)).result()
    metrics.of_workers = lambda: Figures.joined([metrics.figures(), before])
    text = world.client.get("/metrics", headers=headers).text
    assert running.name not in text
    assert 'sfumato_reports_total{outcome="accepted"} 4.0' in text  # all of them came
