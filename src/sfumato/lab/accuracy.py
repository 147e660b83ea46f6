"""The accuracy of protocols on known streams: exact figures, with simulated ones beside them.

The error of a period is the sum of its reports' variances, each times the square of its weight in
the estimate. A report's variance depends on the data only through how many streams change between
its two looks (or, of a snapshot, hold an item): this is counted, so that no noise has to be drawn.
What is left out are covariances between the reports of one device, which are far smaller; the
simulated figures have them in.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Floats
from sfumato.core.fleet import Population
from sfumato.simulation import simulate
from sfumato.simulation.made_up_lives import LIVES, Life, Synthetic
from sfumato.streams.kinds import Binary, Category, Items, Values
from sfumato.streams.weave.aligned_tree import path, tree
from sfumato.streams.weave.fusion import Fusion
from sfumato.streams.weave.passing import squared_weights
from sfumato.streams.weave.threads import SNAPSHOT, Thread
from sfumato.streams.weave.weave import Weave
from sfumato.streams.weave.weave_fleet import freeze

__all__ = ["DATA", "FULL", "PRINTED", "Comparison", "Densities", "Exact", "fan_out_errors"]


COUNTED: Final = 5_000
"""Devices whose streams are counted for exact figures."""


class Densities:
    """The shares of a fleet's streams that change between two periods, for difference threads."""

    def __init__(self, values: Values, changes: int, periods: int, fleet: Population) -> None:
        self._shape = (periods, values.width)
        self._values = values
        self._changes = changes
        self._fleet = fleet
        self._moved: dict[int, Floats] = {}
        self.mean = self._averaged(lambda bits: bits)

    def _averaged(self, what: Callable[[NDArray[np.int8]], Array]) -> Floats:
        total: Any = 0
        step = max(1, (1 << 25) // (self._shape[0] * self._shape[1]))
        for index in range(self._fleet.parts):
            streams = self._fleet.part(index).streams()
            for start in range(0, len(streams), step):
                bits = self._values.encode_streams(streams[start : start + step])
                total = total + what(freeze(bits, self._changes)).sum(axis=0, dtype=np.int64)
        return np.asarray(total / self._fleet.devices)

    def between(self, start: int, end: int) -> Floats:
        """Return the share of streams that change from one period to another, entry by entry."""
        if start == 0:
            return np.asarray(self.mean[end - 1])
        span = end - start
        if span not in self._moved:
            self._moved[span] = self._averaged(lambda bits: bits[:, span:] != bits[:, :-span])
        return np.asarray(self._moved[span][start - 1])


def _edges(protocol: Weave) -> Iterator[tuple[Thread, float, int, int]]:
    for thread, share in protocol.threads():
        for start, end in protocol.edges(thread) if share else ():
            yield thread, share, start, end


def _working(protocol: Weave, thread: Thread) -> float:
    if thread.span == SNAPSHOT:
        return protocol.snapshots[0].variance
    return protocol.strand(thread).variance


Learnt = tuple[float, ...]
"""The noise of each span's reports in units of the plan, where weights have learnt it."""


def _fusion(protocol: Weave, learnt: Learnt) -> Fusion:
    ratios = dict(zip(protocol.spans, learnt, strict=True))
    edges = [
        (start, end, share / (_working(protocol, thread) * ratios[thread.span]))
        for thread, share, start, end in _edges(protocol)
    ]
    start, end, conductance = map(np.array, zip(*edges, strict=True))
    return Fusion(protocol.periods, start, end, conductance)


@lru_cache(maxsize=6)
def weights(protocol: Weave, workload: str, learnt: Learnt) -> Floats:
    """Return the weight of each edge in the estimate of each period."""
    fusion = _fusion(protocol, learnt)
    if workload == "history":
        return fusion.weights(protocol.periods)
    if workload == "path":
        return path(fusion)
    if protocol.aligned:
        return tree(fusion)  # the same as online, and sooner
    if protocol.spans == (SNAPSHOT,):
        return np.eye(protocol.periods)
    return fusion.online()


@lru_cache(maxsize=6)
def mean_squares(protocol: Weave, workload: str, learnt: Learnt) -> Floats:
    """Return the mean square, over periods, of each edge's weight in the estimate of a period."""
    if workload != "online" or protocol.aligned or protocol.spans == (SNAPSHOT,):
        return np.asarray((weights(protocol, workload, learnt) ** 2).mean(axis=0))
    fusion = _fusion(protocol, learnt)
    order = np.argsort(fusion.end, kind="stable")
    parts = np.split(order, np.searchsorted(fusion.end[order], np.arange(2, protocol.periods + 1)))
    ended = [(fusion.start[part], 1 / fusion.conductance[part]) for part in parts]
    weighed = squared_weights(ended, "online")
    squares = np.full(order.size, np.nan)
    if weighed is not None:
        squares[order] = np.concatenate(weighed)
    return squares


def sum_weights(protocol: Weave, workload: str, learnt: Learnt) -> Iterator[Floats]:
    """Yield the weights of all sums that end in a period."""
    fusion = _fusion(protocol, learnt)
    along = path(fusion) if workload.endswith("of paths") else None
    for period in range(1, protocol.periods + 1):
        rows = fusion.weights(period) if along is None else along[:period]
        summed = np.cumsum(rows[::-1], axis=0)
        yield summed[-1:] if workload.startswith("prefix") else summed


@dataclass(frozen=True, eq=False)
class Exact:
    """The exact error of a protocol on the streams of a fleet.

    Without densities, of streams that make as many changes as they may: what a plan counts on.
    With moments, of another mechanism: a function of a thread that returns the second moments of
    its reports, for a zero and for a non-zero entry.

    Examples
    --------
    >>> fleet = Synthetic(Binary(), 8, 2, devices=1000)
    >>> protocol = Weave(Binary(), 8, 2, 1.0, spans=(0,), shares=(1.0,))
    >>> exact = Exact(protocol, Densities(Binary(), 2, 8, fleet))
    >>> round(exact.error("online"), 1)
    8.3

    """

    protocol: Weave
    densities: Densities | None
    moments: Callable[[Thread], tuple[float, float]] | None = None

    @cached_property
    def noise(self) -> Floats:
        """The variance of each edge's observation, entry by entry, times n."""
        return np.array(
            [
                self._noise(thread, start, end) / share
                for thread, share, start, end in _edges(self.protocol)
            ]
        )

    def _noise(self, thread: Thread, start: int, end: int) -> Floats:
        if self.densities is None:
            return np.full(1, _working(self.protocol, thread))
        mean = self.densities.mean
        if thread.span == SNAPSHOT:
            return self.protocol.snapshots[0].variance_at_share(mean[end - 1])
        own = self.protocol.strand(thread).moments
        zero, other = own if self.moments is None else self.moments(thread)
        moment = zero + self.densities.between(start, end) * (other - zero)
        rise = mean[end - 1] - (mean[start - 1] if start else 0)
        return np.asarray(moment - rise**2)

    @cached_property
    def learnt(self) -> Learnt:
        """What learnt weights come to count on after many reports; planned ones stay at 1."""
        planned = dict.fromkeys(self.protocol.spans, 1.0)
        if self.protocol.weights == "planned" or self.densities is None:
            return tuple(planned.values())
        ratios: dict[int, list[float]] = {}
        for (thread, share, _, _), noise in zip(_edges(self.protocol), self.noise, strict=True):
            ratio = share * float(noise.mean()) / _working(self.protocol, thread)
            ratios.setdefault(thread.span, []).append(ratio)
        shown = {span: float(np.mean(each)) for span, each in ratios.items()}
        return tuple((planned | shown).values())

    def errors(self, workload: str) -> Floats:
        """Return n times the variance of each query and entry.

        ``online``, ``history`` (smoothed), ``path``; or ``prefix`` and ``ranges``, sums asked
        when their last period closes.
        """
        if workload in ("online", "history", "path"):
            return weights(self.protocol, workload, self.learnt) ** 2 @ self.noise
        sums = sum_weights(self.protocol, workload, self.learnt)
        return np.concatenate([row**2 @ self.noise for row in sums])

    def error(self, workload: str) -> float:
        """Return n times the mean squared error of the workload's queries."""
        if workload in ("online", "history", "path"):
            squares = mean_squares(self.protocol, workload, self.learnt)
            return float((squares @ self.noise).mean())
        return float(self.errors(workload).mean())


Ways = dict[str, float]
"""n times the mean squared error of each way.

``papers``: their hierarchy as printed, by one path. ``tree``: its aligned levels at their best, by
causal least squares; ``tree with ExSub``: the same with the papers' mechanism. ``snapshots``: one
look of every device. ``online`` and ``smoothed``: Weave.
"""

DATA: Final[dict[str, Values]] = {
    "binary item": Binary(),
    "12-way category": Category(12),
    "12-item sets": Items(12),
}

FULL: Final = "all changes made"


@dataclass(frozen=True)
class Comparison:
    """One kind of values, number of changes and horizon, with the protocols that are compared."""

    data: str
    changes: int
    periods: int
    epsilon: float = 1.0

    @property
    def plan(self) -> tuple[Values, int, int, float]:
        """The parameters that all protocols share."""
        return DATA[self.data], self.periods, self.changes, self.epsilon

    @cached_property
    def papers(self) -> Weave:
        """The papers' hierarchy, as they print it."""
        return Weave.papers(*self.plan)

    @cached_property
    def best(self) -> Weave:
        """The mix of threads that this package chooses."""
        return Weave.best(*self.plan)

    @cached_property
    def alone(self) -> Weave:
        """Snapshots of all devices."""
        return Weave(*self.plan, (SNAPSHOT,), (1.0,))

    @cached_property
    def trees(self) -> tuple[Weave, Weave]:
        """Aligned levels at their best, with ExSub and with the better mechanism."""
        return Weave.tree(*self.plan, mechanism="exsub"), Weave.tree(*self.plan)

    def exact(self, life: str, devices: int = COUNTED) -> Ways:
        """Return the exact errors on streams of a kind, or if all devices make all changes."""
        counted = self._counted(life, devices)
        tree_exsub, tree = self.trees
        return {
            "papers": Exact(self.papers, counted).error("path"),
            "tree with ExSub": Exact(tree_exsub, counted).error("online"),
            "tree": Exact(tree, counted).error("online"),
            "snapshots": Exact(self.alone, counted).error("online"),
            "online": Exact(self.best, counted).error("online"),
            "smoothed": Exact(self.best, counted).error("history"),
        }

    def sums(self, workload: str, life: str, devices: int = COUNTED) -> Ways:
        """Return the exact errors of sums, prefix or ranges, with a mix chosen for them."""
        counted = self._counted(life, devices)
        best = Weave.best(*self.plan, workload=workload)
        return {
            "papers": Exact(self.papers, counted).error(f"{workload} of paths"),
            "snapshots": Exact(self.alone, counted).error(workload),
            "online": Exact(best, counted).error(workload),
        }

    def simulated(
        self, life: Life, devices: int = 20_000, repeats: int = 8
    ) -> dict[str, tuple[float, float]]:
        """Return simulated errors of the papers' way and ours, each with its standard error.

        Every cell, life and way has coins of its own.
        """
        measured: dict[str, list[float]] = {"papers": [], "online": [], "smoothed": []}
        own = zlib.crc32(f"{self.data} {self.changes} {self.periods} {life}".encode())
        fleet = Synthetic(*self._streams(life, devices))
        for run in range(repeats):
            seeds = own + 2 * run, own + 2 * run + 1
            printed = simulate(self.papers, fleet, seed=seeds[0])
            ours = simulate(self.best, fleet, seed=seeds[1])
            measured["papers"].append(printed.mse("path") * devices)
            measured["online"].append(ours.mse("online") * devices)
            measured["smoothed"].append(ours.mse("smoothed") * devices)
        return {
            way: (float(np.mean(errors)), float(np.std(errors, ddof=1) / repeats**0.5))
            for way, errors in measured.items()
        }

    def of_means(self, repeats: int = 0) -> dict[str, Any]:
        """Return the errors of means as plain data, also simulated so often if asked for."""
        record = self._compared("means", {name: self.exact(name) for name in (*LIVES, FULL)})
        if repeats:
            record["simulated"] = {life: self._simulated(life, repeats) for life in LIVES}
        return record

    def _simulated(self, life: Life, repeats: int) -> dict[str, dict[str, float]]:
        errors = self.simulated(life, repeats=max(repeats, 2))
        return {way: {"error": mean, "standard_error": se} for way, (mean, se) in errors.items()}

    def of_sums(self, workload: str) -> dict[str, Any]:
        """Return the errors of sums, prefix or ranges, as plain data."""
        exact = {name: self.sums(workload, name) for name in (*LIVES, FULL)}
        return self._compared(workload, exact)

    def _compared(self, queries: str, errors: dict[str, Ways]) -> dict[str, Any]:
        """Return errors, and the largest multiple of the papers' over all kinds of streams.

        ``best`` is the way of least error among those whose answers are final, on each kind of
        streams, and ``behind`` is the error of ``online`` as a multiple of it.
        """
        ratios = {
            name: {way: error / ways["papers"] for way, error in ways.items() if way != "papers"}
            for name, ways in errors.items()
        }
        full = ratios.pop(FULL)
        final = {
            name: {way: error for way, error in ways.items() if way != "smoothed"}
            for name, ways in errors.items()
        }
        return {
            "data": self.data,
            "changes": self.changes,
            "periods": self.periods,
            "epsilon": self.epsilon,
            "queries": queries,
            "best": {name: min(ways, key=ways.__getitem__) for name, ways in final.items()},
            "behind": {name: ways["online"] / min(ways.values()) for name, ways in final.items()},
            "errors": errors,
            "ratios": {way: max(ways[way] for ways in ratios.values()) for way in full},
            "full": full,
        }

    def _streams(self, life: Any, devices: int) -> tuple[Values, int, int, int, Any]:
        return DATA[self.data], self.periods, self.changes, devices, life

    def _counted(self, life: str, devices: int) -> Densities | None:
        if life == FULL:
            return None
        fleet = Synthetic(*self._streams(life, devices))
        return Densities(DATA[self.data], self.changes, self.periods, fleet)


# ---- the papers' table of fan-outs -------------------------------------------------------------

PRINTED: Final[dict[float, dict[int, float]]] = {
    0.1: {2: 1.13, 4: 1.19, 8: 1.22, 16: 1.31},
    1.0: {2: 0.0982, 4: 0.0983, 8: 0.103, 16: 0.107},
}
"""Table III of the conference version: the largest error over all periods, by epsilon, fan-out."""


PRINTED_FLEET: Final = (Binary(), 128, 8, 1_000_000)
"""Of which values, periods, changes and devices the table speaks."""


def fan_out_errors(epsilon: float, fan_out: int, *, repeats: int = 400) -> tuple[float, float]:
    """Return the mean largest error over all periods: as printed, and with usable levels only.

    The papers spread devices over the levels 0..ceil(log T) to the base of the fan-out; unless T
    is a power of it, those of the last one never complete a span, and their reports are lost.
    Sums of so many reports are normal: they are drawn, with their exact variances, not every
    device.
    """
    values, periods, changes, devices = PRINTED_FLEET
    protocol = Weave.papers(values, periods, changes, epsilon, fan_out=fan_out)
    fleet = Synthetic(values, periods, changes, COUNTED, "uniform")
    exact = Exact(protocol, Densities(values, changes, periods, fleet))
    noise = np.sqrt(exact.noise[:, 0] / devices)
    drawn = np.random.default_rng(fan_out).normal(size=(repeats, noise.size)) * noise
    usable = float(np.abs(drawn @ weights(protocol, "path", exact.learnt).T).max(axis=1).mean())
    levels = len(protocol.spans)
    lost = protocol.spans[-1] < periods
    return usable * ((levels + lost) / levels) ** 0.5, usable
