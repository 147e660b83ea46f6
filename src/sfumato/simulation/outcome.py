"""The outcome of a simulation: truth, estimates, intervals, and how well they agree."""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np

from sfumato import frames
from sfumato.arrays import Bools, Floats
from sfumato.core.answers import Answers
from sfumato.core.decoded import ONLINE, Decoded
from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Ask, Question, Stream
from sfumato.core.tally import Tallies
from sfumato.errors import ConfigurationError, MismatchError

__all__ = ["HEADS", "Asked", "Metrics", "Simulation", "printed"]


LEVEL: Final = 0.95
QUESTIONS: Final = 60
"""The number of ranges, and of differences, that are asked to see how often intervals cover."""
ENDS: Final = 20
"""The number of different periods in which these ranges end."""


@dataclass(frozen=True)
class Asked:
    """One question, and the number of reports it received."""

    period: int
    question: Question
    received: int

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism of the question; MismatchError for a standing question, which has none."""
        if not isinstance(self.question, Ask):
            raise MismatchError(f"period {self.period} has a standing question; nobody was asked.")
        return self.question.mechanism


@dataclass(frozen=True)
class Metrics:
    """The errors of estimates."""

    tve: float
    """Absolute errors, summed over periods and items (total variation error)."""
    mae: float
    """The largest absolute error."""
    mse: float
    """The mean squared error."""
    expected_mse: float | None
    """The mean squared error that the intervals assume; None if there is no interval."""
    clipping: float
    """The largest bias from what devices may not report; only a simulation knows it."""
    coverage: dict[str, float]
    """The share of intervals that contain the truth, for means, sums over ranges, and differences.
    """

    @property
    def rmse(self) -> float:
        """The root of the mean squared error."""
        return float(self.mse**0.5)

    @property
    def expected_rmse(self) -> float | None:
        """The root of the mean squared error that the intervals assume; None if there is none."""
        return None if self.expected_mse is None else self.expected_mse**0.5

    def plain(self) -> dict[str, Any]:
        """Return the metrics as plain data."""
        return {
            "tve": self.tve,
            "mae": self.mae,
            "mse": self.mse,
            "rmse": self.rmse,
            "expected_rmse": self.expected_rmse,
            "largest_clipping_bias": self.clipping,
            "coverage": self.coverage,
        }


@dataclass(eq=False)
class Simulation:
    """The outcome of a simulation, up to its last period so far."""

    stream: Stream
    """The stream."""
    devices: int
    """The number of devices."""
    releases: list[Any] = field(default_factory=list)
    """The estimate that each period released, of the stream's own type."""
    truth: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """The true value of each entry in each period."""
    seen: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    """The same, counting only what the stream lets devices report."""
    asked: list[Asked] = field(default_factory=list)
    """All questions, in order, with the number of reports received."""
    tallies: Tallies[Any] = field(default_factory=Tallies)
    """The tallies that a server would have, if devices are not asked."""
    seconds: float = 0.0
    memory: int = 0
    """The run time, and the peak memory of all processes in bytes."""

    @property
    def periods(self) -> int:
        """The number of periods so far."""
        return len(self.releases)

    @property
    def values(self) -> Floats:
        """The released values, one row for each period."""
        return np.array([release.values for release in self.releases])

    @property
    def variances(self) -> Floats:
        """The variances that the releases claim."""
        return np.array([release.covariance.variances() for release in self.releases])

    @property
    def published(self) -> float:
        """The share of periods in which something new was released."""
        return float(np.mean([release.published for release in self.releases]))

    @property
    def reports(self) -> float:
        """The average number of reports that a device sent in a period."""
        return sum(asked.received for asked in self.asked) / (self.devices * self.periods)

    @cached_property
    def _decoded(self) -> Decoded:
        if self.stream.decodes:
            return self.stream.decoded(self.tallies, self.periods)
        received = [0] * self.periods
        for asked in self.asked:
            received[asked.period - 1] += asked.received
        variances = self.variances
        values = np.where(np.isfinite(variances), self.values, np.nan)
        return self.stream.released(values, variances, received)

    @property
    def decoders(self) -> tuple[str, ...]:
        """The names of the stream's decoders; the one of the releases comes first."""
        return self._decoded.decoders

    def estimates(self, decoder: str = ONLINE) -> tuple[Floats, Floats]:
        """Return the estimates of each period (rows) and entry (columns), and their variances."""
        if decoder == ONLINE:
            return self.values, self.variances
        return self._decoded.curves(decoder)

    def interval(self, decoder: str = ONLINE, level: float = LEVEL) -> tuple[Floats, Floats]:
        """Return the low and high ends of the intervals of each period and entry."""
        if decoder == ONLINE:
            ends = [release.interval(level) for release in self.releases]
            low, high = (np.array(side) for side in zip(*ends, strict=True))
            return low, high
        return self._decoded.interval(decoder, level)

    def answers(
        self, decoder: str = ONLINE, period: int | None = None, level: float = LEVEL
    ) -> Answers:
        """Return the answers about a period, by default the last one."""
        index = self.periods - 1 if period is None else period - 1
        low, high = self.interval(decoder, level)
        sides = (self.estimates(decoder)[0][index], low[index], high[index])
        about = (sum(asked.received for asked in self.asked), self.stream.guarantee, level)
        return Answers(self.stream.labels, *sides, *about, self.stream.quantity, as_of=index + 1)

    def clipping(self, decoder: str = ONLINE) -> Floats:
        """Return the bias of each period and entry from what devices may not report.

        It is the estimate without noise minus the truth, exactly. Only a simulation can know it,
        and no interval includes it.
        """
        return self._decoded.bias(self.truth, self.seen, decoder)

    def mse(self, decoder: str = ONLINE) -> float:
        """Return the mean squared error over periods and entries that have an estimate."""
        error = self.estimates(decoder)[0] - self.truth
        return float(np.mean(error[~np.isnan(error)] ** 2))

    def coverage(self, decoder: str = ONLINE, level: float = LEVEL) -> float:
        """Return the share of intervals that contain the truth."""
        low, high = self.interval(decoder, level)
        return float(np.mean((low <= self.truth) & (self.truth <= high)))

    def metrics(self, decoder: str = ONLINE, level: float = LEVEL) -> Metrics:
        """Return the errors of the estimates, and how often intervals cover."""
        values, variances = self.estimates(decoder)
        error = np.abs(values - self.truth)
        error = error[~np.isnan(error)]
        known = variances[np.isfinite(variances)]
        means = {"mean": self.coverage(decoder, level)}
        return Metrics(
            tve=float(error.sum()),
            mae=float(error.max(initial=0.0)),
            mse=self.mse(decoder),
            expected_mse=float(known.mean()) if known.size else None,
            clipping=float(np.nanmax(np.abs(self.clipping(decoder)), initial=0.0)),
            coverage=means | self._covered(decoder, level),
        )

    def _covered(self, decoder: str, level: float) -> dict[str, float]:
        """Return how often intervals of sums over ranges and of differences contain the truth.

        The ranges depend only on the number of periods. Final answers are known when a range ends,
        so only a few different ends are used.
        """
        if self.periods < 2:
            return {}
        rng = np.random.default_rng(self.periods)
        ends = rng.integers(2, self.periods, min(QUESTIONS, ENDS), endpoint=True)
        inside: dict[str, list[Bools]] = {"range": [], "difference": []}
        for question in range(QUESTIONS):
            last = int(ends[question * ends.size // QUESTIONS])
            first = int(rng.integers(1, last))
            asked = (dict.fromkeys(range(first, last + 1), 1.0), {first: -1.0, last: 1.0})
            for name, weights in zip(inside, asked, strict=True):
                try:
                    low, high = self._decoded.combined(weights, decoder).estimate.interval(level)
                except (ConfigurationError, MismatchError):  # unknown, or too far to join
                    continue
                rows = [period - 1 for period in weights]
                right = np.array(list(weights.values())) @ self.truth[rows]
                inside[name].append((low <= right) & (right <= high))
        return {name: float(np.concatenate(held).mean()) for name, held in inside.items() if held}

    # ---- tables ----------------------------------------------------------------------------

    def columns(self, level: float = LEVEL) -> dict[str, list[Any]]:
        """Return period, item, truth, and each decoder's estimate, interval and clipping bias."""
        periods, width = self.truth.shape
        columns: dict[str, list[Any]] = {
            "period": np.repeat(np.arange(1, periods + 1), width).tolist(),
            "item": [str(label) for label in self.stream.labels] * periods,
            "truth": self.truth.ravel().tolist(),
        }
        for decoder in self.decoders:
            low, high = self.interval(decoder, level)
            columns[decoder] = _known(self.estimates(decoder)[0])
            columns[f"{decoder}_low"] = _known(low)
            columns[f"{decoder}_high"] = _known(high)
            columns[f"{decoder}_clipping"] = _known(self.clipping(decoder))
        return columns

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return all periods and items as a pandas, polars or pyarrow table."""
        return frames.table(self.columns(), backend)

    def _repr_html_(self) -> str:
        rows = "".join(
            "<tr>" + "".join(f"<td>{cell}</td>" for cell in printed(decoder, self.metrics(decoder)))
            for decoder in self.decoders
        )
        head = "".join(f"<th>{name}</th>" for name in HEADS)
        sentence = f"{self.devices:,} simulated devices. {self.stream.guarantee}"
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
            f"<p>{html.escape(sentence)}</p>"
        )


HEADS: Final = (
    *("decoder", "RMSE", "expected", "largest error", "TVE", "clipping bias"),
    "95% intervals hold",
)
"""The headings of the cells that :func:`printed` returns."""


def printed(decoder: str, metrics: Metrics) -> tuple[str, ...]:
    """Return the printed cells about a decoder: errors, and the share of intervals that cover."""
    expected = metrics.expected_rmse
    return (
        decoder,
        f"{metrics.rmse:.5g}",
        "-" if expected is None else f"{expected:.5g}",
        f"{metrics.mae:.5g}",
        f"{metrics.tve:.4g}",
        f"{metrics.clipping:.5f}",
        ", ".join(f"{name} {share:.1%}" for name, share in metrics.coverage.items()),
    )


def _known(cells: Floats) -> list[float | None]:
    return [float(cell) if np.isfinite(cell) else None for cell in cells.ravel()]
