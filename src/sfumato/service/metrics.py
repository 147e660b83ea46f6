"""Metrics for the operator, in the format of Prometheus."""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Iterable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from sfumato.service.collector import Collector
from sfumato.service.joined_metrics import Figures
from sfumato.service.running_task import RunningTask
from sfumato.wire.receipts import REASONS, Receipt

__all__ = ["CollectorMetrics"]

NOT_STRANGE: Final = ("too-many", "busy")
"""Problems of uploads that say nothing about who sent them."""
OWN_REASONS: Final = frozenset(REASONS) - {"wrong_task"}
"""The reasons for which a report of a task is refused."""


class CollectorMetrics:
    """The counters of one collector."""

    def __init__(self, collector: Collector) -> None:
        self.registry = CollectorRegistry()
        self._collector = collector
        self._reports = self._counter("reports", "Reports by what became of them.", "outcome")
        for outcome in ("accepted", "repeated", *REASONS):
            self._reports.labels(outcome)
        self._by_task = self._counter(
            "task_reports", "Reports of each task by what became of them.", "task", "outcome"
        )
        self._uploads = self._counter(
            "refused_uploads", "Uploads that were refused as a whole, by problem.", "problem"
        )
        self.busy = self._counter("turned_away", "Requests that were told to come back.")
        self._closed = self._counter("periods_closed", "Periods that have closed.")
        self._latency = self._times("upload_seconds", "Time from a whole upload to its receipt.")
        self._settling = self._times("settle_seconds", "Time of closing what was due.")
        self._commits = self._times("commit_seconds", "Time of a group commit.")
        self._group = Histogram(
            "sfumato_commit_batches",
            "Uploads that were joined in a commit.",
            buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256, 512),
            registry=self.registry,
        )
        self.waiting = self._gauge("reports_waiting", "Reports that wait for a commit.")
        self.ready = self._gauge(
            "ready", "1 while reports are taken, 0 if nothing can be acknowledged."
        )
        self._lag = self._gauge(
            "task_lag_seconds", "For how long the next period of a task has been due.", "task"
        )
        engine = (
            "engine_waiting_seconds",
            "For how long a closed period has waited for an engine.",
        )
        self._engine_lag = self._gauge(*engine, "task")
        self._engine_reports = self._gauge(
            "engine_reports", "Reports that an engine has counted or refused.", "task", "outcome"
        )
        self._flagged = self._gauge(
            "task_flagged_periods",
            "Periods whose reports are not what honest devices send.",
            "task",
        )
        ids = self._gauge("ids_in_memory", "Ids of open periods in memory.")
        ids.set_function(lambda: collector.ids_in_memory)
        tasks = self._gauge("tasks", "Tasks that have not ended.")
        tasks.set_function(
            lambda: sum(not running.is_over for running in collector.running_tasks.values())
        )
        self._workers = self._gauge(
            "worker_up", "1 while a worker gives signs of life, 0 if it is down.", "worker"
        )
        self.of_workers: Callable[[], Figures] = self.figures
        """Returns the metrics of all workers of the collector, as far as they are known here."""

    def _counter(self, name: str, words: str, *labels: str) -> Counter:
        return Counter(f"sfumato_{name}", words, labels, registry=self.registry)

    def _gauge(self, name: str, words: str, *labels: str) -> Gauge:
        return Gauge(f"sfumato_{name}", words, labels, registry=self.registry)

    def _times(self, name: str, words: str) -> Histogram:
        return Histogram(f"sfumato_{name}", words, registry=self.registry)

    def worker_up(self, name: str, is_up: Callable[[], float]) -> None:
        """Show whether a worker gives signs of life."""
        self._workers.labels(name).set_function(is_up)

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
                self._by_task.labels(running.name, outcome).inc(n)

    def turned_away(self, problem: str) -> None:
        """Count an upload that was refused as a whole, by the name of the problem."""
        self._uploads.labels(problem).inc()
        if problem == "too-many":
            self.busy.inc()

    @property
    def strangers(self) -> Counts[str]:
        """Counts of refused uploads that belong to no task, by reason, since the start."""
        together, counts = self.together(), Counts[str]()
        for labels, n in together.totals("sfumato_refused_uploads_total"):
            if labels["problem"] not in NOT_STRANGE:
                counts[labels["problem"]] += int(n)
        for labels, n in together.totals("sfumato_reports_total"):
            if labels["outcome"] == "wrong_task" and n:
                counts["wrong_task"] += int(n)
        return counts

    def refusals(self) -> dict[str, Counts[str]]:
        """Return how many reports of each task were refused since the start, by task and reason."""
        counts: dict[str, Counts[str]] = {}
        for labels, n in self.together().totals("sfumato_task_reports_total"):
            if labels["outcome"] in OWN_REASONS:
                counts.setdefault(labels["task"], Counts())[labels["outcome"]] += int(n)
        return counts

    def refused(self, running: RunningTask) -> Counts[str]:
        """Return how many reports of a task were refused since the start, by reason."""
        return self.refusals().get(running.name, Counts())

    def committed(self, batches: int, seconds: float) -> None:
        """Count a group commit."""
        self._commits.observe(seconds)
        self._group.observe(batches)

    def waited(self, seconds: Iterable[float]) -> None:
        """Count how long some uploads took from their last byte to their receipt."""
        for each in seconds:
            self._latency.observe(each)

    def closed(self, periods: int, seconds: float) -> None:
        """Count periods that have closed, and the time that it took."""
        self._closed.inc(periods)
        self._settling.observe(seconds)

    def _forget(self, name: str) -> None:
        """Drop the metrics of a task that is not there any more."""
        for gauge in (self._lag, self._flagged, self._engine_lag):
            gauge.remove_by_labels({"task": name})
        for metric in (self._by_task, self._engine_reports):
            metric.remove_by_labels({"task": name})

    def figures(self) -> Figures:
        """Return the metrics of this process."""
        now = self._collector.clock()
        for running in list(self._collector.running_tasks.values()):
            lag = 0.0 if running.is_over else max(0.0, now - running.next_at)
            self._lag.labels(running.name).set(lag)
            self._flagged.labels(running.name).set(len(running.suspicions()))
            if running.progress is not None:
                waits = 0.0 if running.lag is None else max(0.0, now - running.lag.since)
                self._engine_lag.labels(running.name).set(waits)
                for outcome in ("counted", "refused"):
                    n = getattr(running.progress, outcome)
                    self._engine_reports.labels(running.name, outcome).set(n)
        figures = Figures.of(self.registry)
        for name in figures.tasks - self._tasks():
            self._forget(name)
        return figures

    def together(self) -> Figures:
        """Return the metrics of all workers, without those of tasks that are not there any more."""
        return self.of_workers().only_of(self._tasks())

    def _tasks(self) -> set[str]:
        """Return the names of the tasks that are there."""
        return {running.name for running in list(self._collector.running_tasks.values())}

    def text(self) -> bytes:
        """Return all metrics in the text format of Prometheus."""
        return generate_latest(self.together())
