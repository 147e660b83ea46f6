"""Metrics for the operator, in the format of Prometheus."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from sfumato.service.collector import Collector
from sfumato.service.running_task import RunningTask
from sfumato.wire.receipts import REASONS, Receipt

__all__ = ["CollectorMetrics"]


class CollectorMetrics:
    """The counters of one collector."""

    def __init__(self, collector: Collector) -> None:
        self.registry = CollectorRegistry()
        self._reports = Counter(
            "sfumato_reports",
            "Reports by what became of them.",
            ["outcome"],
            registry=self.registry,
        )
        for outcome in ("accepted", "repeated", *REASONS):
            self._reports.labels(outcome)
        self._commits = Histogram(
            "sfumato_commit_seconds", "Time of a group commit.", registry=self.registry
        )
        self._group = Histogram(
            "sfumato_commit_batches",
            "Batches of a group commit.",
            buckets=(1, 2, 4, 8, 16, 32, 64),
            registry=self.registry,
        )
        self.busy = Counter(
            "sfumato_turned_away", "Requests that were told to come back.", registry=self.registry
        )
        self._closed = Counter(
            "sfumato_periods_closed", "Periods that have closed.", registry=self.registry
        )
        self.waiting = Gauge(
            "sfumato_batches_waiting", "Batches that wait for a commit.", registry=self.registry
        )
        ids = Gauge(
            "sfumato_ids_in_memory", "Ids of open periods in memory.", registry=self.registry
        )
        ids.set_function(lambda: collector.ids_in_memory)
        tasks = Gauge("sfumato_tasks", "Tasks that have not ended.", registry=self.registry)
        tasks.set_function(
            lambda: sum(not running.is_over for running in collector.running_tasks.values())
        )
        self._refused: dict[bytes, Counts[str]] = {}
        self.strangers: Counts[str] = Counts()
        """Counts of refused uploads that belong to no task, by reason, since the start."""

    def received(self, running: RunningTask, receipts: Iterable[Receipt]) -> None:
        """Count the reports of some uploads by what became of them."""
        counts: Counts[str] = Counts()
        for receipt in receipts:
            if receipt.refused:
                counts.update(reason for _, reason in receipt.refused)
            counts["accepted"] += receipt.accepted
            counts["repeated"] += receipt.repeated
        for outcome, n in counts.items():
            if n:
                self._reports.labels(outcome).inc(n)
        reasons = Counts({reason: counts[reason] for reason in REASONS if counts[reason]})
        self.strangers.update(wrong_task=reasons.pop("wrong_task", 0))
        self._refused.setdefault(running.task_id, Counts()).update(reasons)

    def turned_away(self, problem: str) -> None:
        """Count an upload that was refused as a whole, by the name of the problem."""
        if problem == "too-many":
            self.busy.inc()
        elif problem != "busy":
            self.strangers[problem] += 1

    def refused(self, running: RunningTask) -> Counts[str]:
        """Return how many reports of a task were refused since the start, by reason."""
        return self._refused.get(running.task_id, Counts())

    def committed(self, batches: int, seconds: float) -> None:
        """Count a group commit."""
        self._commits.observe(seconds)
        self._group.observe(batches)

    def closed(self, periods: int) -> None:
        """Count periods that have closed."""
        self._closed.inc(periods)

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self.registry)
