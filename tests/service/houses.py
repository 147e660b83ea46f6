"""A collector in one process whose tasks release what a test says, for tests of what is shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from sfumato import catalog
from sfumato.service import Collector, Desk, page
from sfumato.service.metrics import Metrics
from sfumato.store import Release, SQLiteStore

START = 1_000_000


class House:
    """A collector in one process, whose tasks release what a test says."""

    def __init__(self, folder: Path) -> None:
        self.now = float(START)
        self.store = SQLiteStore(folder / "collector.db")
        self.collector = Collector(self.store, "http://here", lambda: self.now)
        self.metrics = Metrics(self.collector)

    def publish(self, task: dict[str, Any], **more: Any) -> Desk:
        given = catalog.task({"title": "A task"} | task)
        return self.collector.publish(given, START, grace=5, sealed=False, **more)

    def release(self, desk: Desk, *rows: Any, variance: float = 0.0001) -> None:
        """Let periods release values of our own, with a standard error of 0.01 or another one."""
        for row in rows:
            values = np.broadcast_to(np.array(row, dtype=float), len(desk.labels)).copy()
            variances = np.where(np.isnan(values), np.inf, variance)
            period = len(desk.releases) + 1
            desk.releases.append(Release(period, 900 * period, values, variances))
            self.now = desk.closes_at(period) + 1

    def page(self, desk: Desk) -> str:
        return page.of_task(desk, self.now, self.metrics)
