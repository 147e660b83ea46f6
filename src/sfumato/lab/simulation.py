"""A whole fleet on a protocol: truth, estimates, intervals, and how well they agree."""

from __future__ import annotations

import html
import resource
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache, cached_property
from multiprocessing import get_context
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import frames
from sfumato.core.intervals import z_score
from sfumato.core.tally import Tallies, Tally
from sfumato.errors import ConfigurationError
from sfumato.lab.fleets import Fleet
from sfumato.lab.streams import collect, freeze
from sfumato.randomness import seeded
from sfumato.streams.weave.curve import Curve, Reports
from sfumato.streams.weave.protocol import Weave
from sfumato.streams.weave.threads import SNAPSHOT
from sfumato.streams.weave.tree import path, tree

__all__ = ["DECODERS", "Metrics", "Simulation", "simulate"]

Floats = NDArray[np.float64]

LEVEL: Final = 0.95
QUESTIONS: Final = 60
"""Ranges, and as many differences, that are asked to see how often intervals cover."""
ENDS: Final = 20
"""So many periods they end in, online."""

DECODERS: Final = {
    "online": "each period by the reports due until then",
    "smoothed": "each period by all reports",
    "filtered": "online, by a prior that curves move slowly",
    "path": "the papers' sum of the fewest nodes",
    "tree": "nodes fused from below",
}


@dataclass(frozen=True)
class Metrics:
    """How far estimates are from the truth.

    Parameters
    ----------
    tve
        Absolute errors, summed over periods and items (total variation error).
    mae
        The largest absolute error.
    mse
        The mean squared error.
    expected_mse
        What the intervals count on.
    clipping
        The largest bias by changes that difference threads do not see; known here only.
    coverage
        How many intervals hold the truth, of means, of sums over ranges, of differences.

    """

    tve: float
    mae: float
    mse: float
    expected_mse: float
    clipping: float
    coverage: dict[str, float]

    def plain(self) -> dict[str, Any]:
        """Return the metrics as plain data."""
        return {
            "tve": self.tve,
            "mae": self.mae,
            "mse": self.mse,
            "rmse": self.mse**0.5,
            "expected_rmse": self.expected_mse**0.5,
            "largest_clipping_bias": self.clipping,
            "coverage": self.coverage,
        }


@dataclass(frozen=True, eq=False)
class Simulation:
    """What came of a simulated fleet.

    Parameters
    ----------
    protocol
        The public design.
    tallies
        What a server would have.
    truth
        The mean of each entry in each period.
    seen
        The same of the streams as difference threads see them: frozen after the last change.
    devices
        How many devices took part.
    seconds, memory
        How long it took, and the peak of memory in bytes (all processes).

    """

    protocol: Weave
    tallies: Tallies[Any]
    truth: Floats
    seen: Floats
    devices: int
    seconds: float
    memory: int
    _curves: dict[str, Curve] = field(default_factory=dict, repr=False)
    _estimates: dict[str, tuple[Floats, Floats]] = field(default_factory=dict, repr=False)

    @cached_property
    def _reports(self) -> Reports:
        return Reports(self.protocol, self.tallies)

    @property
    def decoders(self) -> tuple[str, ...]:
        """How these reports can be decoded."""
        return tuple(DECODERS) if self.protocol.aligned else ("online", "smoothed", "filtered")

    def curve(self, decoder: str = "online") -> Curve:
        """Return the estimated curve; of ``filtered``, the raw one."""
        self._known(decoder)
        if decoder not in self._curves:
            weigh: dict[str, Callable[[], Curve]] = {
                "online": self._reports.online,
                "filtered": lambda: self.curve("online"),
                "smoothed": self._reports.smoothed,
                "path": lambda: self._reports.curve(path, None),
                "tree": lambda: self._reports.curve(tree, None),
            }
            self._curves[decoder] = weigh[decoder]()
        return self._curves[decoder]

    def _known(self, decoder: str) -> None:
        if decoder not in self.decoders:
            raise ConfigurationError(
                f"decoder is {decoder!r}; {', '.join(self.decoders)} are there."
            )

    def estimates(self, decoder: str = "online") -> tuple[Floats, Floats]:
        """Return the estimate of each period and entry, and its variance."""
        self._known(decoder)
        if decoder not in self._estimates:
            if decoder == "filtered":
                posterior = self._reports.filtered()
                self._estimates[decoder] = posterior.values, posterior.variances
            else:
                curve = self.curve(decoder)
                self._estimates[decoder] = curve.values, curve.variances()
        return self._estimates[decoder]

    def interval(self, decoder: str = "online", level: float = LEVEL) -> tuple[Floats, Floats]:
        """Return the ends of each period's and entry's interval."""
        values, variances = self.estimates(decoder)
        reach = z_score(level) * np.sqrt(variances)
        return values - reach, values + reach

    def clipping(self, decoder: str = "online") -> Floats:
        """Return the bias of each period and entry by changes that no difference thread sees.

        It is exactly what the estimate would be without noise, less the truth: nobody but a
        simulation can know it, and no interval holds it.
        """
        curve = self.curve(decoder)
        bias = np.empty_like(self.truth)
        before = np.zeros((1, self.truth.shape[1]))
        seen, truth = np.concatenate([before, self.seen]), np.concatenate([before, self.truth])
        for entries, weights, edges in curve.blocks:
            looked = (edges.span == SNAPSHOT)[:, None]
            mean = np.where(
                looked,
                truth[edges.end][:, entries],
                seen[edges.end][:, entries] - seen[edges.start][:, entries],
            )
            bias[:, entries] = weights @ mean - self.truth[:, entries]
        return bias

    def mse(self, decoder: str = "online") -> float:
        """Return the mean squared error over periods and entries."""
        return float(((self.estimates(decoder)[0] - self.truth) ** 2).mean())

    def metrics(self, decoder: str = "online", level: float = LEVEL) -> Metrics:
        """Return how far the estimates are from the truth, and how often intervals cover."""
        values, variances = self.estimates(decoder)
        error = values - self.truth
        low, high = self.interval(decoder, level)
        inside = (low <= self.truth) & (self.truth <= high)
        coverage = {"mean": float(inside.mean())}
        if decoder in ("online", "smoothed"):
            coverage |= self._covered(decoder, level)
        return Metrics(
            tve=float(np.abs(error).sum()),
            mae=float(np.abs(error).max()),
            mse=self.mse(decoder),
            expected_mse=float(variances.mean()),
            clipping=float(np.abs(self.clipping(decoder)).max()),
            coverage=coverage,
        )

    def _covered(self, decoder: str, level: float) -> dict[str, float]:
        """Return how often intervals of sums over ranges and of differences hold the truth.

        The same ranges are asked of every simulation of so many periods; online as of their end.
        """
        periods = self.protocol.periods
        rng = np.random.default_rng(periods)
        ends = rng.integers(2, periods, min(QUESTIONS, ENDS), endpoint=True)
        inside: dict[str, list[NDArray[np.bool_]]] = {"range": [], "difference": []}
        curve = self.curve("smoothed")
        for question in range(QUESTIONS):
            if decoder == "online" and question % (QUESTIONS // ends.size) == 0:
                curve = self._reports.smoothed(int(ends[question * ends.size // QUESTIONS]))
            last = curve.periods if decoder == "online" else int(rng.integers(2, periods + 1))
            first = int(rng.integers(1, last))
            weights = np.zeros((2, curve.periods))
            weights[0, first - 1 : last] = 1.0
            weights[1, [first - 1, last - 1]] = -1.0, 1.0
            for name, asked in zip(inside, weights, strict=True):
                low, high = curve.combine(asked).interval(level)
                right = asked @ self.truth[: curve.periods]
                inside[name].append((low <= right) & (right <= high))
        return {name: float(np.concatenate(held).mean()) for name, held in inside.items()}

    # ---- tables ----------------------------------------------------------------------------

    def columns(self, level: float = LEVEL) -> dict[str, Any]:
        """Return period, item, truth, and by each decoder estimate, interval and clipping bias."""
        periods, width = self.truth.shape
        labels = self.protocol.values.labels
        found: dict[str, Any] = {
            "period": np.repeat(np.arange(1, periods + 1), width).tolist(),
            "item": [str(label) for label in labels] * periods,
            "truth": self.truth.ravel().tolist(),
        }
        for decoder in self.decoders:
            low, high = self.interval(decoder, level)
            found[decoder] = self.estimates(decoder)[0].ravel().tolist()
            found[f"{decoder}_low"] = low.ravel().tolist()
            found[f"{decoder}_high"] = high.ravel().tolist()
            found[f"{decoder}_clipping"] = self.clipping(decoder).ravel().tolist()
        return found

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return all periods and items as a pandas, polars or pyarrow table."""
        return frames.table(self.columns(), backend)

    def _repr_html_(self) -> str:
        rows = []
        for decoder in self.decoders:
            found = self.metrics(decoder)
            covered = ", ".join(f"{name} {share:.1%}" for name, share in found.coverage.items())
            rows.append(
                f"<tr><td>{decoder}</td><td>{found.mse**0.5:.5f}</td>"
                f"<td>{found.expected_mse**0.5:.5f}</td><td>{found.mae:.5f}</td>"
                f"<td>{found.tve:.4f}</td><td>{found.clipping:.5f}</td><td>{covered}</td></tr>"
            )
        heads = ("decoder", "RMSE", "expected", "largest error", "TVE", "clipping bias", "covered")
        head = "".join(f"<th>{name}</th>" for name in heads)
        said = f"{self.devices:,} simulated devices. {self.protocol.guarantee}"
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"
            f"<p>{html.escape(said)}</p>"
        )


def simulate(
    protocol: Weave,
    fleet: Fleet,
    *,
    seed: int = 1,
    workers: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Simulation:
    """Let a whole fleet take part, some thousand devices at a time.

    The outcome is the same for the same seed, whatever the number of workers (processes).

    Examples
    --------
    >>> from sfumato.lab.synthetic import Synthetic
    >>> from sfumato.streams.kinds import Binary
    >>> protocol = Weave.best(Binary(), periods=8, changes=2, epsilon=1.0)
    >>> outcome = simulate(protocol, Synthetic(Binary(), 8, 2, devices=20_000))
    >>> outcome.truth.shape, bool(np.abs(outcome.curve().values - outcome.truth).max() < 0.2)
    ((8, 1), True)

    """
    began = time.perf_counter()
    shape = (protocol.periods, protocol.values.width)
    truth, seen = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    tallies: Tallies[Any] = Tallies()
    busy = min(workers, fleet.chunk_count)
    for part in _parts(protocol, fleet, seed, busy):
        tallies = tallies + Tallies(part[0])
        truth += part[1]
        seen += part[2]
        if progress is not None:
            progress(part[3])
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    others = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss if busy > 1 else 0
    return Simulation(
        protocol,
        tallies,
        truth / fleet.devices,
        seen / fleet.devices,
        fleet.devices,
        time.perf_counter() - began,
        1024 * (own + busy * others),
    )


Part = tuple[dict[Any, Tally], NDArray[np.int64], NDArray[np.int64], int]


def _parts(protocol: Weave, fleet: Fleet, seed: int, workers: int) -> Iterator[Part]:
    if workers <= 1:
        for place in range(fleet.chunk_count):
            yield _part(protocol, fleet, seed, place)
        return
    # Fresh processes: a fork of one that shows progress would copy its threads' locks.
    with ProcessPoolExecutor(
        workers, get_context("spawn"), _remember, (protocol, fleet, seed)
    ) as pool:
        yield from pool.map(_remembered, range(fleet.chunk_count))


@cache
def _memory() -> dict[str, Any]:
    return {}


def _remember(protocol: Weave, fleet: Fleet, seed: int) -> None:
    _memory().update(protocol=protocol, fleet=fleet, seed=seed)


def _remembered(place: int) -> Part:
    return _part(place=place, **_memory())


def _part(protocol: Weave, fleet: Fleet, seed: int, place: int) -> Part:
    """Return tallies, the sums of the true and of the frozen streams, and how many there are."""
    streams = fleet.chunk(place)
    rng = seeded((seed << 32) + place)
    truth = np.zeros((protocol.periods, protocol.values.width), dtype=np.int64)
    seen = np.zeros_like(truth)
    step = max(1, (1 << 25) // truth.size)
    for start in range(0, len(streams), step):
        bits = protocol.values.encode_streams(streams[start : start + step])
        truth += bits.sum(axis=0, dtype=np.int64)
        seen += freeze(bits, protocol.changes).sum(axis=0, dtype=np.int64)
    return dict(collect(protocol, streams, rng)), truth, seen, len(streams)
