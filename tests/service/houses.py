"""A collector in one process whose tasks release given values, for tests of its pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from sfumato import catalog
from sfumato.core.answers import Answers
from sfumato.core.decoded import ONLINE
from sfumato.pages.task_page import TaskPage
from sfumato.pages.wanted import Wanted
from sfumato.service import Collector, RunningTask, query_parameters
from sfumato.service.metrics import CollectorMetrics
from sfumato.service.rereading import Lens, Rereader
from sfumato.service.task_subject import TaskSubject
from sfumato.store import Release, SQLiteStore

START = 1_000_000


class House:
    """A collector in one process, whose tasks release what a test says."""

    def __init__(self, folder: Path) -> None:
        self.now = float(START)
        self.store = SQLiteStore(folder / "collector.db")
        self.collector = Collector(self.store, "http://here", lambda: self.now)
        self.metrics = CollectorMetrics(self.collector)
        self.rereader = Rereader()

    def publish(self, task: dict[str, Any], **more: Any) -> RunningTask:
        given = catalog.task({"title": "A task"} | task)
        return self.collector.publish(given, START, grace=5, sealed=False, **more)

    def release(
        self, running: RunningTask, *rows: Any, variance: float = 0.0001, cut: bool = False
    ) -> None:
        """Let periods release values of our own, with a standard error of 0.01 or another one.

        With ``cut``, intervals are cut to 0..1, as those of shares over a horizon are.
        """
        for row in rows:
            values = np.broadcast_to(np.array(row, dtype=float), len(running.labels)).copy()
            variances = np.where(np.isnan(values), np.inf, variance)
            period = len(running.releases) + 1
            reach = 2 * np.sqrt(variances)
            ends = (np.clip(values - reach, 0, 1), np.clip(values + reach, 0, 1)) if cut else None
            running.releases.append(Release(period, 900 * period, values, variances, ends))
            self.now = running.closes_at(period) + 1

    def page(self, running: RunningTask, **choices: str) -> str:
        """Return the page of a task with a visitor's choices, moments as plain words."""
        text = self.shown(running, **choices).html()
        return " ".join(re.sub(r"</?time[^>]*>", "", text).split(" "))

    def shown(self, running: RunningTask, **choices: str) -> TaskPage:
        """Return the same page before it is rendered; it shows what was released by default."""
        wanted = Wanted.of(choices.items())
        fields = {name: to for name, to in choices.items() if name in ("decoder", "projection")}
        lens = Lens.of(running, {"decoder": ONLINE} | fields)
        seen = self.rereader.read(running, lens)
        subject = TaskSubject(running, self.metrics, lens, seen)
        return TaskPage(subject, wanted, self.now)

    def running_answer(self, running: RunningTask, first: int, last: int) -> dict[str, str]:
        """Return what the API answers about the averages of a range, as printed."""
        asked = {"query": "range", "first": str(first), "last": str(last), "average": "true"}
        answers = Answers.of_plain(query_parameters.answer(running, asked))
        return {
            str(label): answers.quantity.text(float(value), 1)
            for label, value in zip(answers.labels, answers.values, strict=True)
        }
