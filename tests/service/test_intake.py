"""Everybody finds room, and no trouble with one upload ends the way of the others."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.service.fleets import LISTENING, Fleet

from sfumato.errors import SfumatoError
from sfumato.service import Collector
from sfumato.service.first_door import Upload
from sfumato.service.intake import Busy, Intake
from sfumato.service.metrics import CollectorMetrics
from sfumato.service.writer import Writer
from sfumato.store import SQLiteStore


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
