"""Metrics of several workers as those of one collector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final, Self

from prometheus_client import CollectorRegistry
from prometheus_client.metrics_core import Metric

__all__ = ["Figures", "Samples"]

COUNTED: Final = ("counter", "histogram")
"""The types of metrics that only grow; a worker's successor goes on from them."""

RULES: Final[dict[str, Callable[[float, float], float]]] = {
    "sfumato_ready": min,
    "sfumato_worker_up": min,
    "sfumato_task_lag_seconds": max,
    "sfumato_tasks": max,
    "sfumato_task_flagged_periods": max,
    "sfumato_engine_waiting_seconds": max,
    "sfumato_engine_reports": max,
}
"""How the gauges of workers become one; all others are added up."""

TASK: Final = "task"
"""The label that says which task a sample is about."""

Key = tuple[str, tuple[tuple[str, str], ...]]
"""The name and the labels of a sample."""


@dataclass
class Figures:
    """Metrics as plain data, which other processes can read.

    Parameters
    ----------
    kinds
        The type and the description of each metric, by name.
    samples
        The values of each metric, by the name and the labels of the sample.

    Examples
    --------
    >>> one = Figures({"a": ("counter", "")}, {"a": {("a_total", ()): 2.0}})
    >>> Figures.joined([one, Figures.parse(one.plain())]).samples
    {'a': {('a_total', ()): 4.0}}

    """

    kinds: dict[str, tuple[str, str]] = field(default_factory=dict)
    samples: dict[str, dict[Key, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, registry: CollectorRegistry) -> Self:
        """Return what a registry has now."""
        figures = cls()
        for family in registry.collect():
            figures.kinds[family.name] = (family.type, family.documentation)
            figures.samples[family.name] = {
                (sample.name, tuple(sample.labels.items())): sample.value
                for sample in family.samples
            }
        return figures

    @classmethod
    def parse(cls, plain: Any) -> Self:
        """Return figures from what :meth:`plain` has made of them."""
        figures = cls()
        for name, kind, words, samples in plain:
            figures.kinds[name] = (kind, words)
            figures.samples[name] = {
                (sample, tuple((label, text) for label, text in labels)): value
                for sample, labels, value in samples
            }
        return figures

    def plain(self) -> list[Any]:
        """Return the figures as lists of texts and numbers."""
        return [
            [name, *kind, [[*key, value] for key, value in self.samples[name].items()]]
            for name, kind in self.kinds.items()
        ]

    @classmethod
    def joined(cls, parts: Sequence[Figures]) -> Self:
        """Return the figures of several workers as those of one."""
        total = cls()
        for part in parts:
            for name, kind in part.kinds.items():
                total.kinds.setdefault(name, kind)
                known = total.samples.setdefault(name, {})
                rule = RULES.get(name, float.__add__)
                for key, value in part.samples[name].items():
                    how = min if key[0].endswith("_created") else rule
                    known[key] = how(known[key], value) if key in known else value
        return total

    def counted(self) -> Figures:
        """Return only what a worker's successor goes on from."""
        kept = {name: kind for name, kind in self.kinds.items() if kind[0] in COUNTED}
        return Figures(kept, {name: self.samples[name] for name in kept})

    @property
    def tasks(self) -> set[str]:
        """The names of the tasks that some samples are about."""
        every = (labels for samples in self.samples.values() for _, labels in samples)
        return {text for labels in every for label, text in labels if label == TASK}

    def only_of(self, tasks: AbstractSet[str]) -> Figures:
        """Return the samples that are about one of these tasks, or about none."""
        gone = {(TASK, name) for name in self.tasks - tasks}
        return Figures(
            self.kinds,
            {
                name: {key: value for key, value in samples.items() if gone.isdisjoint(key[1])}
                for name, samples in self.samples.items()
            },
        )

    def totals(self, name: str) -> Iterator[tuple[dict[str, str], float]]:
        """Yield the labels and the values of the samples of a name."""
        family = name.removesuffix("_total")
        for (sample, labels), value in self.samples.get(family, {}).items():
            if sample == name:
                yield dict(labels), value

    def collect(self) -> Iterable[Metric]:
        """Yield the metrics as a registry does."""
        for name, (kind, words) in self.kinds.items():
            metric = Metric(name, words, kind)
            for (sample, labels), value in self.samples[name].items():
                metric.add_sample(sample, dict(labels), value)
            yield metric


@dataclass(frozen=True)
class Samples:
    """The metrics of a registry at one moment, by name and labels."""

    at: float
    values: Mapping[str, Sequence[tuple[Mapping[str, str], float]]]
    words: Mapping[str, str]

    @classmethod
    def of(cls, figures: Figures, at: float) -> Samples:
        """Return figures in a form in which they are looked up."""
        values: dict[str, list[tuple[Mapping[str, str], float]]] = {}
        words = {}
        for family in figures.collect():
            words[family.name] = family.documentation
            for sample in family.samples:
                if not sample.name.endswith("_created"):
                    values.setdefault(sample.name, []).append((sample.labels, sample.value))
        return cls(at, values, words)

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of the samples of a name that have these labels."""
        return sum(
            value
            for own, value in self.values.get(name, ())
            if all(own.get(label) == text for label, text in labels.items())
        )

    def quantile(self, name: str, share: float) -> float | None:
        """Return an upper bound of a quantile of a histogram; None if nothing was observed."""
        buckets: dict[float, float] = {}
        for labels, count in self.values.get(f"{name}_bucket", ()):
            end = float(labels["le"])
            buckets[end] = buckets.get(end, 0.0) + count
        most = max(buckets.values(), default=0.0)
        if not most:
            return None
        return min(end for end, count in buckets.items() if count >= share * most)
