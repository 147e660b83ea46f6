"""Everybody finds room, and no trouble with one upload ends the way of the others."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from tests.service.fleets import LISTENING, Fleet, batch

from sfumato.errors import SfumatoError
from sfumato.service import Collector
from sfumato.service.assembly import ServicePlan
from sfumato.service.first_door import Upload
from sfumato.service.intake import Busy, Intake
from sfumato.service.metrics import CollectorMetrics
from sfumato.service.writer import Writer
from sfumato.store import Full, SQLiteStore


def test_a_task_that_others_have_filled_takes_a_single_report(tmp_path: Path) -> None:
    collector = Collector(SQLiteStore(tmp_path / "c.db"), clock=lambda: 1_000_011.0)
    running = collector.publish(LISTENING, 1_000_000)
    body = Fleet(running, 60).body(["home"] * 60)

    async def scene() -> None:
        writer = Writer(collector, CollectorMetrics(collector))
        intake = Intake(collector, writer, most=100_000)
        room = intake._by_task  # noqa: SLF001
        assert room.take(running.task_id, 50_000)
        large = Upload.of(running, body)
        large.batch = type(large.batch)(
            large.batch.task_id, large.batch.key_id, large.batch.reports.repeat(100)
        )
        with pytest.raises(Busy, match="of this task"):
            await intake.take(large, "heavy")
        writer.start()
        intake.start()
        receipt = await intake.take(Upload.of(running, body), "new")
        assert b'"refused":[]' in receipt
        assert intake.waiting == 0
        intake.stop()
        writer.stop()

    asyncio.run(scene())


def test_a_task_with_all_ids_that_an_operator_allows_stops_no_other(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    plan = ServicePlan(str(path), "http://here", most_ids=20)
    collector = plan.service(SQLiteStore(path)).collector
    collector.clock = lambda: 1_000_011.0
    full = collector.publish(LISTENING, 1_000_000)
    other = collector.publish(replace(LISTENING, title="Another"), 1_000_000)
    messages = Fleet(full, 200).messages(["home"] * 200)
    assert collector.take(full, batch(full, messages[:20])).accepted == 20
    with pytest.raises(Full, match="up to 20 are possible until a period closes"):
        collector.take(full, batch(full, messages[20:21]))
    assert collector.take(other, Fleet(other, 40).body(["home"] * 40)).accepted
    collector.store.close()


@pytest.mark.parametrize("door", ["first", "second"])
def test_trouble_that_nobody_expected_ends_no_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, door: str
) -> None:
    collector = Collector(SQLiteStore(tmp_path / "c.db"), clock=lambda: 1_000_011.0)
    running = collector.publish(LISTENING, 1_000_000)
    body = Fleet(running, 20).body(["home"] * 20)

    def broken(*_: object) -> None:
        raise RuntimeError("nobody expected this")

    async def scene() -> None:
        metrics = CollectorMetrics(collector)
        writer = Writer(collector, metrics)
        intake = Intake(collector, writer)
        writer.start()
        intake.start()
        owner, name = (intake, "_screened") if door == "first" else (metrics, "committed")
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, broken)
            with pytest.raises(SfumatoError, match="try again"):
                await intake.take(Upload.of(running, body), "a")
        receipt = await intake.take(Upload.of(running, body), "a")
        assert b'"refused":[]' in receipt
        intake.stop()
        writer.stop()

    asyncio.run(scene())
