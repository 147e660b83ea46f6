"""The watch on the clock closes what is due, and nothing while nothing can be uploaded."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.service.world import START, World

from sfumato.service import health, steady_clock
from sfumato.service.steady_clock import OpenTime
from sfumato.store import SQLiteStore
from sfumato.store.interface import Count


def test_nothing_closes_while_nothing_is_taken_nor_until_a_grace_after(tmp_path: Path) -> None:
    world = World(tmp_path)
    watch = world.service._watch  # noqa: SLF001
    steady = [0.0]
    watch._open = OpenTime(lambda: steady[0])  # noqa: SLF001
    watch._clock = lambda: world.now  # type: ignore[assignment]  # noqa: SLF001
    world.now = START + 100.0  # all is due

    def closed_after(seconds: int) -> int:
        for _ in range(seconds):
            steady[0] += 1.0
            asyncio.run(watch.look())
        return world.open.closed

    with capture_logs() as lines:
        assert closed_after(4) == 0
    said = [line for line in lines if line["event"].startswith("period waits for a grace")]
    tasks = (world.open, world.hidden)
    assert {(line["task"], line["period"], line["seconds"]) for line in said} == {
        (task.name, 1, task.grace - 1.0) for task in tasks
    }
    assert len(said) == len(tasks)
    world.service.health.troubles = ["the disk is full"]
    assert closed_after(30) == 0
    world.service.health.troubles = []
    assert closed_after(4) == 0  # its grace is 5 s
    assert closed_after(2) > 0
    watch.stop()
    world.store.close()


def test_a_close_that_takes_long_is_neither_a_break_nor_trouble(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    watch, store = world.service._watch, world.store  # noqa: SLF001
    monkeypatch.setattr(steady_clock, "LONGEST_GAP", 0.4)
    monkeypatch.setattr(health, "STUCK", 0.4)
    start = time.monotonic() - 100.0
    watch._open = OpenTime(lambda: time.monotonic() - start)  # noqa: SLF001
    watch._open._since = 0.0  # noqa: SLF001
    watch._clock = lambda: world.now  # type: ignore[assignment]  # noqa: SLF001
    world.now = START + 10.0 + 5.0
    settle = store.settle
    troubles: list[str] = []

    def settled(task_id: bytes, period: int, count: Count) -> int:
        for _ in range(20):  # as it has very much to read
            time.sleep(0.05)
            store.versions()
            troubles.extend(world.service.health.look())
        return settle(task_id, period, count)

    monkeypatch.setattr(store, "settle", settled)
    asyncio.run(watch.look())
    assert world.open.closed == 1
    assert troubles == []
    assert watch._open.look() > 100.0  # noqa: SLF001

    def stuck(task_id: bytes, period: int, count: Count) -> int:
        time.sleep(0.8)
        troubles.extend(world.service.health.look())
        return settle(task_id, period, count)

    monkeypatch.setattr(store, "settle", stuck)
    world.now += 10.0
    asyncio.run(watch.look())
    assert troubles
    assert set(troubles) == {"the clock has not closed periods for 1 s"}
    watch.stop()
    store.close()


def test_what_another_worker_deletes_is_gone_while_a_period_takes_long_to_close(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    watch, store = world.service._watch, world.store  # noqa: SLF001
    watch._open._since = -1000.0  # noqa: SLF001
    watch._clock = lambda: world.now  # type: ignore[assignment]  # noqa: SLF001
    world.now = START + 10.0 + 5.0
    settle, known = store.settle, world.collector.running_tasks

    def settled(task_id: bytes, period: int, count: Count) -> int:
        with closing(SQLiteStore(tmp_path / "collector.db", claimed=True)) as other:
            other.delete_task(world.hidden.task_id)
        patience = time.monotonic() + 5
        while world.hidden.task_id in known and time.monotonic() < patience:
            time.sleep(0.01)
        assert set(known) == {world.open.task_id}
        return settle(task_id, period, count)

    monkeypatch.setattr(store, "settle", settled)
    asyncio.run(watch.look())
    assert world.open.closed == 1
    watch.stop()
    store.close()


def test_what_is_due_and_may_not_close_is_not_looked_at_without_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path)
    watch, collector = world.service._watch, world.collector  # noqa: SLF001
    watch._clock = lambda: world.now  # type: ignore[assignment]  # noqa: SLF001
    world.now = START + 100.0  # but no grace is over since the start
    looks: list[float] = []
    close_due = collector.close_due

    def looked(**given: Any) -> Any:
        looks.append(time.monotonic())
        return close_due(**given)

    monkeypatch.setattr(collector, "close_due", looked)

    async def went_on() -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(watch.run(), 1.5)

    asyncio.run(went_on())
    assert 2 < len(looks) < 10
    watch._open._since = -1000.0  # noqa: SLF001
    asyncio.run(went_on())
    assert world.open.closed == collector.running_task(world.open.name).periods
    watch.stop()
    world.store.close()


def test_what_another_process_is_about_to_close_is_looked_at_often(tmp_path: Path) -> None:
    world = World(tmp_path)
    watch = world.service._watch  # noqa: SLF001
    due = world.open.next_at
    pauses = [watch._soonest(due + late, 1e9) for late in (-0.1, 0.0, 0.08, 9.0)]  # noqa: SLF001
    assert pauses == pytest.approx([0.1, 0.0, 0.005, 0.5], abs=1e-6)
    assert watch._soonest(due + 4.0, 3.0) == pytest.approx(2.0)  # noqa: SLF001
    watch.stop()
    world.store.close()
