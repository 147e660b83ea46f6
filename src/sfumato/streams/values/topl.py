"""ToPL: range sums of a stream that nobody is trusted with; each device blurs its own value.

Wang et al., "Continuous Release of Data Streams under both Centralized and Local Differential
Privacy" (2021): the first periods' devices report with the square wave mechanism, the distribution
behind their reports tells where to cut, and all later devices cut their value there and report it
with the hybrid mechanism.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.exact import is_finite_number
from sfumato.core.guarantee import Guarantee
from sfumato.core.intervals import z_score
from sfumato.core.protocol import Ask, Curator, Due, Protocol
from sfumato.core.tally import Tallies, Tally
from sfumato.errors import ConfigurationError, InputError, MismatchError
from sfumato.mechanisms.density import SquareWave
from sfumato.mechanisms.mean import Hybrid
from sfumato.randomness import ONE, Source

__all__ = ["Learnt", "PeriodSums", "Summed", "ToPL", "ToPLCurator", "ToPLDevice"]

Floats = NDArray[np.float64]

_SMALL: Final = 1e-4  # a density below this, so many times in a row, is taken for none
_IN_A_ROW: Final = 5


@dataclass(frozen=True)
class Learnt:
    """A period whose reports only went into the threshold; the last one also tells it."""

    n: int
    threshold: float | None = None


@dataclass(frozen=True)
class Summed:
    """The sum of the cut values of one period or of several, and its variance."""

    n: int
    total: float
    variance: float

    def __add__(self, other: Summed) -> Summed:
        return Summed(self.n + other.n, self.total + other.total, self.variance + other.variance)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the interval of the sum of the cut values."""
        reach = z_score(level) * self.variance**0.5
        return self.total - reach, self.total + reach


class PeriodSums:
    """The sums of all periods so far, ready for questions about any range of them.

    Reports are independent, so variances add up: a range is the difference of two running totals,
    whatever its length.

    Examples
    --------
    >>> periods = PeriodSums()
    >>> for release in (Learnt(10, 50.0), Summed(10, 80.0, 4.0), Summed(5, 30.0, 2.0)):
    ...     periods.append(release)
    >>> periods.sum(2, 3)
    Summed(n=15, total=110.0, variance=6.0)

    """

    def __init__(self) -> None:
        self._before = [Summed(0, 0.0, 0.0)]
        self._learning = 0

    def append(self, release: Learnt | Summed) -> None:
        """Take in what the next period released."""
        last = self._before[-1]
        if isinstance(release, Learnt):
            self._learning += 1
            self._before.append(last)
        else:
            self._before.append(last + release)

    def sum(self, first: int, last: int) -> Summed:
        """Return the sum of the cut values of the periods from one to another, both included."""
        start, end = self._learning + 1, len(self._before) - 1
        if not start <= first <= last <= end:
            raise InputError(
                f"the range is {first}..{last}; summed are the periods {start}..{end}."
            )
        before, after = self._before[first - 1], self._before[last]
        return Summed(
            after.n - before.n, after.total - before.total, after.variance - before.variance
        )


@dataclass(frozen=True)
class ToPL(Protocol):
    """Sums of amounts over any periods, each value epsilon-private on its device.

    Parameters
    ----------
    epsilon
        Privacy of each value.
    bound
        The public bound of a value; larger ones are cut to it.
    learning
        How many first periods choose the threshold; their values are not summed.
    limit
        How many values a long range has: what is cut off counts by its square.
    variant
        ``white`` prunes a density fitted without smoothing (SW-W); ``plain`` smooths it (SW).

    Guarantee
    ---------
    epsilon-LDP for each value: a device answers once for each, whoever asks.

    Error
    -----
    Of a sum of n values: n times the worst variance of the hybrid mechanism on [0, threshold], and
    what is cut off.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> protocol = ToPL(epsilon=2.0, bound=1000.0)
    >>> device = protocol.device(seeded(1))
    >>> device.observe(37.5)
    >>> len(device.answer(Ask(protocol.learner, 1.0), seeded(2)))
    2

    """

    epsilon: float
    bound: float
    learning: int = 1
    limit: int = 1 << 20
    variant: Literal["white", "plain"] = "white"

    def __post_init__(self) -> None:
        """Refuse what cannot be."""
        if not is_finite_number(self.bound) or self.bound <= 0:
            raise ConfigurationError(f"bound is {self.bound!r}; a number above 0 is expected.")
        if self.learning < 1:
            raise ConfigurationError(f"learning is {self.learning}; it must be at least 1.")
        if self.limit < 1:
            raise ConfigurationError(f"limit is {self.limit}; it must be at least 1.")
        if self.variant not in {"white", "plain"}:
            raise ConfigurationError(f"variant is {self.variant!r}; white or plain is expected.")
        _ = self.learner  # refuses an epsilon that cannot be

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to a device for each value."""
        return Guarantee("local", "each value", self.epsilon)

    @cached_property
    def learner(self) -> SquareWave:
        """What the first periods report with."""
        return SquareWave(self.epsilon, 0, self.bound, clip=True)

    def summer(self, threshold: float) -> Hybrid:
        """Return what later periods report with."""
        return Hybrid(self.epsilon, 0, threshold, clip=True)

    def device(self, rng: Source) -> ToPLDevice:
        """Return a new device; it draws nothing in advance."""
        del rng
        return ToPLDevice(self)

    def curator(self) -> ToPLCurator:
        """Return a curator that learns the threshold and then sums."""
        return ToPLCurator(self)

    def threshold(self, tally: Tally) -> float:
        """Return where cutting costs least: noise of r/3 reports against what is cut off, squared.

        A random range within r values has r/3 of them on average, and r^2/6 in the mean square.
        """
        shares = self.shares(tally)
        grid = self.learner.grid
        places = self.bound * np.arange(1, grid + 1) / grid
        above = np.cumsum(shares[::-1])[::-1]  # of each bucket and all beyond it
        # What is cut off above a place is the integral of how many are beyond each later one.
        beyond = np.append(above[1:], 0.0)
        between = (above + beyond) / 2
        cut = np.append(np.cumsum(between[:0:-1])[::-1], 0.0) * self.bound / grid
        noise = self.limit / 3 * self._noise * places**2
        return float(places[np.argmin(noise + self.limit**2 / 6 * cut**2)])

    @cached_property
    def _noise(self) -> float:
        """The worst variance of a report of a value up to one."""
        return self.summer(1.0).worst_variance

    def shares(self, tally: Tally) -> Floats:
        """Return the estimated distribution over the learner's grid, pruned if that is asked."""
        fitted = self.learner.distribution(tally, smooth=self.variant == "plain").shares
        if self.variant == "plain":
            return fitted
        small = (fitted < _SMALL).astype(int)
        runs = np.convolve(small, np.ones(_IN_A_ROW, dtype=int), mode="valid") == _IN_A_ROW
        if not runs.any():
            return fitted
        pruned = fitted.copy()
        pruned[int(np.argmax(runs)) :] = 0
        return pruned / pruned.sum() if pruned.sum() else fitted


@dataclass
class ToPLDevice:
    """One device: it holds the current value, and answers once for it."""

    protocol: ToPL
    value: float | None = None

    def observe(self, value: float) -> None:
        """Take in the next value; the one before is forgotten, answered or not."""
        if not is_finite_number(value) or value < 0:
            raise InputError(f"value is {value!r}; a number from 0 on is expected.")
        self.value = float(value)

    def answer(self, ask: Ask, rng: Source) -> bytes:
        """Return the report of the current value, empty if its coin or its budget says so.

        Questions that the protocol cannot ask, whoever sends them, are refused.
        """
        self._refuse(ask)
        value, threshold = self.value, ask.mechanism.high  # type: ignore[attr-defined]
        if value is None or not bool(rng.bernoulli(round(ask.probability * ONE), 1)[0]):
            return b""
        self.value = None
        return ask.mechanism.randomize(min(value, threshold), rng).tobytes()

    def _refuse(self, ask: Ask) -> None:
        asked, protocol = ask.mechanism, self.protocol
        fits = asked == protocol.learner or (
            isinstance(asked, Hybrid)
            and 0 < asked.high <= protocol.bound
            and asked == protocol.summer(asked.high)
        )
        if not fits or not 0 <= ask.probability <= 1:
            raise MismatchError(
                f"{asked.name} with epsilon {asked.epsilon:g} is asked; this is none of the "
                "protocol's questions."
            )


class ToPLCurator(Curator):
    """Learns the threshold from the first periods and sums the others."""

    def __init__(self, protocol: ToPL) -> None:
        self.protocol = protocol
        self.threshold: float | None = None
        self._learnt: Tally | None = None

    def timestep(self, period: int) -> Generator[Due | Ask, Tallies[Any] | Tally, Learnt | Summed]:
        """Ask everybody; release nothing but the threshold at first, and then each period's sum."""
        protocol = self.protocol
        if self.threshold is None:
            tally = yield Ask(protocol.learner, 1.0)
            if not isinstance(tally, Tally):
                raise MismatchError(f"period {period} brought tallies; one tally was asked for.")
            self._learnt = tally if self._learnt is None else self._learnt + tally
            if period < protocol.learning:
                return Learnt(tally.n)
            self.threshold = protocol.threshold(self._learnt)
            return Learnt(tally.n, self.threshold)
        mechanism = protocol.summer(self.threshold)
        tally = yield Ask(mechanism, 1.0)
        if not isinstance(tally, Tally):
            raise MismatchError(f"period {period} brought tallies; one tally was asked for.")
        if not tally.n:
            return Summed(0, 0.0, 0.0)
        estimate = mechanism.estimate(tally)
        variance = float(estimate.covariance.variances()[0])
        return Summed(tally.n, tally.n * float(estimate.values[0]), tally.n**2 * variance)
