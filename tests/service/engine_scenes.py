"""A collector with a task that an engine counts, and with its twin, which it counts itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.service.fleets import Fleet, batch

from sfumato.catalog import parse
from sfumato.core.tally import Place, Tallies
from sfumato.engines.log_following import LogFollower
from sfumato.service import Collector, RunningTask
from sfumato.store import SQLiteStore

__all__ = ["ENGINE", "GRACE", "LENGTH", "PERIODS", "START", "TEXT", "VALUES", "Scene"]

START, GRACE, LENGTH, PERIODS = 1_000_000, 5, 10, 4
TEXT = """
title = "Where people listen"
epsilon = 2
periods = 4
period = "10 seconds"
changes = 3
mix = {snapshot = 0.5, 1 = 0.5}
values = {kind = "category", items = ["home", "work", "road"]}
"""
ENGINE = parse(TEXT + 'counts = "engine"\n')
VALUES = ["home"] * 150 + ["work"] * 100 + ["road"] * 50


class Scene:
    """A collector with one task that an engine counts, and another one that it counts itself."""

    def __init__(self, folder: Path, **how: Any) -> None:
        self.now = START + 0.5
        self.path = folder / "collector.db"
        self.store = SQLiteStore(self.path, claimed=True)
        self.collector = Collector(self.store, "http://here", lambda: self.now)
        self.running = self.collector.publish(ENGINE, START, grace=GRACE, **how)
        self.twin = self.collector.publish(parse(TEXT), START, grace=GRACE, **how)
        self.fleet = Fleet(self.running, len(VALUES))

    def end_of(self, period: int, more: float = 1.0) -> None:
        self.now = START + LENGTH * period + more

    def live(self, period: int) -> list[tuple[bytes, int, bytes]]:
        """Let the devices send what they say about a period to both tasks."""
        self.end_of(period)
        messages = self.fleet.messages(VALUES)
        for running in (self.running, self.twin):
            receipt = self.collector.take(running, batch(running, messages))
            assert (receipt.accepted, receipt.refused) == (len(messages), [])
        return messages

    def close(self, period: int) -> list[tuple[RunningTask, Any]]:
        self.end_of(period, GRACE)
        return self.collector.close_due()

    def counted(self) -> list[Any]:
        """Let an engine count beside the collector; return its epochs."""
        beside = SQLiteStore(self.path, claimed=True)
        try:
            return list(LogFollower(beside).catch_up())
        finally:
            beside.close()

    def tallies(self, running: RunningTask) -> Tallies[Place]:
        return self.store.tallies(running.task_id)
