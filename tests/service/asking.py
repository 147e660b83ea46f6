"""A collector and devices in one process, for tasks that ask anew in each period."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfumato import catalog
from sfumato.device import Delivery, Device, Limits
from sfumato.device.journal import Journal
from sfumato.randomness import seeded
from sfumato.service import Collector
from sfumato.store import SQLiteStore
from sfumato.wire.questions import Question
from sfumato.wire.task import Task

__all__ = ["SECONDS", "START", "Line", "Scene", "asking"]

START = 1_000_000
SECONDS = 10


def asking(**given: Any) -> Task:
    """Return a task that ends soon."""
    usual: dict[str, Any] = {
        "kind": "window",
        "title": "Where people are",
        "epsilon": 4.0,
        "window": 3,
        "devices": 60,
        "periods": 8,
        "period": f"{SECONDS} seconds",
        "values": {"kind": "category", "items": ["home", "work", "road"]},
        "method": "lpu",
        "keep": "for ever",
    }
    return catalog.task(usual | given)


@dataclass
class Line:
    """Between a device and the collector; it remembers all that was said."""

    scene: Scene
    said: list[bytes] = field(default_factory=list)
    lie: Question | None = None
    cut: bool = False

    def fetch(self, url: str) -> bytes:
        """Return the task, or what is asked now."""
        if not url.endswith("/question"):
            return self.scene.running.published.encode()
        asked = self.lie or self.scene.running.question_at(self.scene.now)
        end = self.scene.running.published.last_period
        return Question.none(end) if asked is None else asked.encode()

    def send(self, url: str, batch: bytes) -> Delivery:
        """Hand a batch to the collector."""
        assert url == self.scene.running.published.endpoint
        self.said.append(batch)
        if self.cut:
            return Delivery()
        receipt = self.scene.collector.take(self.scene.running, batch)
        return Delivery(dict(receipt.refused), receipt.key_id)


class Scene:
    """A collector with a store, and devices with journals, under one clock."""

    def __init__(self, folder: Path, task: Task, grace: int = 6, **more: Any) -> None:
        self.folder, self.now = folder, float(START)
        self.task, self.grace, self.more = task, grace, more
        self.made = 0
        self.open()

    def open(self) -> None:
        """Start the collector, again if need be."""
        self.store = SQLiteStore(self.folder / "collector.db")
        self.collector = Collector(self.store, "http://here", lambda: self.now)
        if self.collector.running_tasks:
            (self.running,) = self.collector.running_tasks.values()
        else:
            self.running = self.collector.publish(self.task, START, grace=self.grace, **self.more)

    def reopen(self) -> None:
        """Stop the collector without a word, and start it again."""
        self.store.close()
        self.open()

    def device(
        self, name: str = ":memory:", epsilon: float = 16.0, tier: int = 0
    ) -> tuple[Device, Line]:
        """Return a device that has joined, and its line."""
        line = Line(self)
        path = name if name == ":memory:" else self.folder / name
        limits = Limits(epsilon, windows=True, unsealed=True)
        self.made += 1
        device = Device(Journal(path), limits, line, lambda: self.now, seeded(self.made))
        device.join("http://here/task", tier)
        return device, line

    def fleet(self, count: int) -> list[tuple[Device, Line]]:
        """Return so many."""
        return [self.device() for _ in range(count)]

    def live(
        self, fleet: Sequence[tuple[Device, Line]], period: int, values: Sequence[Any]
    ) -> None:
        """Let all live through a period and answer what is asked about it."""
        self.now = START + (period - 1) * SECONDS + 1.0
        for (device, _), value in zip(fleet, values, strict=True):
            device.observe(value, strict=True)
        rounds = self.running.protocol.rounds
        for number in range(rounds):
            self.now = START + period * SECONDS + 0.5 + number * self.grace / rounds
            self.collector.close_due()
            for device, _ in fleet:
                device.flush(force=True)
        self.now = START + period * SECONDS + self.grace + 0.5
        self.collector.close_due()

    def close(self) -> None:
        """Let go of the store."""
        self.store.close()
