"""However much others have waiting for a task, a few reports of a new client find room."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.service.fleets import LISTENING, Fleet

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
