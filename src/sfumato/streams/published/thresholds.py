"""Thresholds for large values: noise grows with the threshold, and clipping errors shrink.

With k of m values above it, a threshold t causes, in range sums of random length up to r, noise of
standard deviation s t and a bias of r / sqrt(6) times the mean amount cut off. That mean falls by
k/m for each unit of t, so the sum of the two is smallest where k is k* = m s sqrt(6) / r, for any
values: for epsilon 0.1 about one value in 2,000. All scores change by at most one when one value
changes, and in the same direction, so noisy max needs no factor of two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Final, Protocol

import numpy as np

from sfumato.arrays import Bools, Ints
from sfumato.core.field_checks import check_number
from sfumato.core.noise import share_of
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.central import DiscreteLaplace, NoisyMax, SmoothQuantile
from sfumato.randomness import Source

__all__ = [
    "SHARE",
    "Fixed",
    "Quantile",
    "RaisedThreshold",
    "ScaleFree",
    "Threshold",
    "ToPSThreshold",
    "candidates",
    "octaves",
    "pays",
]


_STEPS: Final = 1024  # the units of a score that one value counts for
_MOST_CANDIDATES: Final = 1 << 17
_PER_OCTAVE: Final = 8
SHARE: Final = 0.36  # the part of epsilon for a second and a third look
_RARELY: Final = 10_000  # one second look in so many sees values where there are none
_EACH: Final = 5  # the least count of a full cell, in scales of its noise


class Threshold(Protocol):
    """A method of choosing a threshold from the values held out for it."""

    name: ClassVar[str]

    @property
    def epsilon(self) -> float:
        """The epsilon of the choice; 0 if it uses no value."""

    @property
    def delta(self) -> float:
        """The delta of the choice."""

    def choose(self, values: Ints, bound: int, rng: Source) -> int:
        """Return a threshold in units, at least 1."""


@dataclass(frozen=True)
class Fixed:
    """A threshold that is known already, so that no value is held out.

    Parameters
    ----------
    threshold
        The threshold in units.
    epsilon
        The epsilon of the choice that gave it, if it was chosen from values.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> Fixed(50).choose(np.zeros(0, dtype=np.int64), 1000, seeded(1))
    50

    """

    threshold: int
    epsilon: float = 0.0
    name: ClassVar[str] = "fixed"
    delta: ClassVar[float] = 0.0

    def choose(self, values: Ints, bound: int, rng: Source) -> int:
        """Return the threshold, at most the bound."""
        del values, rng
        return min(self.threshold, bound)


def candidates(bound: int, *, all_integers: bool) -> Ints:
    """Return the candidate thresholds: all integers up to the bound, or a logarithmic grid.

    Examples
    --------
    >>> candidates(5, all_integers=True).tolist()
    [1, 2, 3, 4, 5]
    >>> len(candidates(30_000, all_integers=False))
    102

    """
    if all_integers and bound <= _MOST_CANDIDATES:
        return np.arange(1, bound + 1)
    steps = math.ceil(_PER_OCTAVE * math.log2(bound)) if bound > 1 else 0
    grid = np.floor(bound * 2.0 ** (-np.arange(steps + 1) / _PER_OCTAVE)).astype(np.int64)
    return np.unique(np.maximum(grid, 1))


def _above(values: Ints, grid: Ints) -> Ints:
    """Return the number of values above each candidate."""
    return values.size - _at_most(values, grid)


def _at_most(values: Ints, grid: Ints) -> Ints:
    """Return the number of values up to each candidate."""
    return np.searchsorted(np.sort(values), grid, side="right")


@dataclass(frozen=True)
class ToPSThreshold:
    """The threshold of ToPS: noisy max of -(slope t + the number of values above t).

    Parameters
    ----------
    epsilon
        The privacy of the choice.
    slope
        The cost of one unit of threshold, in values: 3 m sqrt(2 (b - 1) h^3) / (c r epsilon).

    """

    epsilon: float
    slope: float
    name: ClassVar[str] = "tops"
    delta: ClassVar[float] = 0.0

    def choose(self, values: Ints, bound: int, rng: Source) -> int:
        """Return a threshold in units, at least 1."""
        grid = candidates(bound, all_integers=True)
        scores = -np.rint(_STEPS * self.slope * grid).astype(np.int64) - _STEPS * _above(
            values, grid
        )
        return int(grid[NoisyMax(self.epsilon, _STEPS, "laplace").select(scores, rng)])


@dataclass(frozen=True)
class ScaleFree:
    """A threshold that does not depend on the unit: noisy max of -(weight ln t + k).

    Here k is the number of values above t. The score is best where k times the index of the tail
    (the percentage by which k falls for one percent more threshold) equals the weight. With a
    weight of 8 / epsilon, a threshold twice too large costs 5.5 times the scale of the noise, and k
    is near k* for tails between exponential and Pareto. The price is that a few large values far
    above all others, fewer than the weight times the logarithm of the ratio, are clipped.

    Parameters
    ----------
    epsilon
        The privacy of the choice.
    weight
        The number of values that a threshold e times as large must gain.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> values = seeded(1).simulator().exponential(1000, 60_000).astype(np.int64)
    >>> ScaleFree(epsilon=1.0, weight=8).choose(values, 1 << 20, seeded(1))
    10623

    """

    epsilon: float
    weight: float
    name: ClassVar[str] = "scale_free"
    delta: ClassVar[float] = 0.0

    def choose(self, values: Ints, bound: int, rng: Source) -> int:
        """Return a threshold in units, at least 1."""
        grid = candidates(bound, all_integers=False)
        cost = np.rint(_STEPS * self.weight * np.log(grid)).astype(np.int64)
        scores = -cost - _STEPS * _above(values, grid)
        return int(grid[NoisyMax(self.epsilon, _STEPS, "geometric").select(scores, rng)])


@dataclass(frozen=True)
class RaisedThreshold:
    """A scale-free threshold that is raised where large values are seen far above it.

    The score of :class:`ScaleFree` cuts off a few large values far above all others, because it
    weighs them against the logarithm of how far away they are. Where they carry the sum, that is
    most of it. So a part of epsilon is kept for two further looks. The second counts the values of
    all octaves (4 to 8, 8 to 16, and so on) that begin at four times the first threshold or above:
    with noise alone, it sees values where there are none once in 10,000 choices. If it sees some,
    the third look, a noisy histogram of the octaves, tells where they are, and the threshold is
    raised to the end of an octave if that makes the expected squared error of range sums smaller.
    It is never lowered: noisy counts cannot tell how few values an octave has.

    Parameters
    ----------
    epsilon
        The privacy of the choice, of all looks together.
    weight
        The number of values that a threshold e times as large must gain, at the first look.
    above
        The number of values above the threshold of least error if equal amounts were cut off of
        them: a unit of threshold costs as much noise as the amounts cut off of so many values.
    share
        The part of epsilon for the second and the third look, which have half of it each.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> values = np.full(60_000, 5)
    >>> values[::100] = 100_000  # one in a hundred
    >>> ScaleFree(epsilon=0.1, weight=80).choose(values, 1 << 20, seeded(1))
    5
    >>> RaisedThreshold(epsilon=0.2, weight=67, above=20).choose(values, 1 << 20, seeded(1))
    131072

    """

    epsilon: float
    weight: float
    above: float
    share: float = SHARE
    name: ClassVar[str] = "raised"
    delta: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless every look has a part of epsilon."""
        check_number("share", self.share, above=0, below=1)
        _ = self.scored, self.counted, self.located

    @cached_property
    def scored(self) -> ScaleFree:
        """The first look."""
        return ScaleFree(share_of(self.epsilon, 1 - Fraction(repr(self.share))), self.weight)

    @cached_property
    def counted(self) -> DiscreteLaplace:
        """The noise of the second look: changing a value moves the count by one."""
        return DiscreteLaplace(share_of(self.epsilon, Fraction(repr(self.share)) / 2), 1)

    @cached_property
    def located(self) -> DiscreteLaplace:
        """The noise of the histogram: changing a value moves two of its counts by one."""
        return DiscreteLaplace(share_of(self.epsilon, Fraction(repr(self.share)) / 2), 2)

    def choose(self, values: Ints, bound: int, rng: Source) -> int:
        """Return a threshold in units, at least 1."""
        first = self.scored.choose(values, bound, rng)
        cells = np.diff(_at_most(values, octaves(bound))).astype(np.int64)
        far = cells[_far(first, bound)].sum(keepdims=True)
        seen = int(self.counted.add(far, rng)[0])
        return self.raised(first, seen, self.located.add(cells, rng), bound)

    def raised(self, first: int, seen: int, noisy: Ints, bound: int) -> int:
        """Return what the three looks make of the threshold; all of them have their noise."""
        far = _far(first, bound)
        if not far.any() or seen < _visible(self.counted.epsilon):
            return first
        edges = octaves(bound)
        fullest = np.flatnonzero(far)[np.argmax(noisy[far])]
        full = far & (noisy >= _EACH * 2 / self.located.epsilon)
        full[fullest] = True
        counts = np.where(full, np.maximum(noisy, 0), 0)
        middles = np.sqrt(edges[:-1].astype(np.float64) * edges[1:])
        choices = np.concatenate([[first], edges[1:][full]])
        cut_off = (counts * np.maximum(middles - choices[:, None], 0)).sum(axis=1)
        return int(choices[np.argmin((self.above * choices) ** 2 + cut_off**2)])


def octaves(bound: int) -> Ints:
    """Return the ends of the cells of a histogram: 1, 2, 4, ... up to the bound.

    Examples
    --------
    >>> octaves(20).tolist()
    [1, 2, 4, 8, 16, 20]

    """
    ends = np.left_shift(1, np.arange(max((bound - 1).bit_length(), 1) + 1, dtype=np.int64))
    return np.minimum(ends, bound)


def _far(threshold: int, bound: int) -> Bools:
    """Return which octaves begin at four times the threshold or above."""
    return octaves(bound)[:-1] >= 4 * threshold


def _visible(epsilon: float) -> float:
    """Return a count that noise alone reaches once in 10,000 draws.

    Two-sided geometric noise with x = e^-epsilon is n or more with probability x^n / (1 + x).
    """
    return math.log(_RARELY / (1 + math.exp(-epsilon))) / epsilon


def pays(epsilon: float, holdout: int) -> bool:
    """Return whether one in 32 of the values held out would be seen by a second look.

    Examples
    --------
    >>> pays(0.05, 1 << 16), pays(0.05, 1 << 12)
    (True, False)

    """
    return _visible(SHARE / 2 * epsilon) <= holdout / 32


@dataclass(frozen=True)
class Quantile:
    """A quantile by smooth sensitivity; with the safety term it is the threshold of PAK.

    Parameters
    ----------
    epsilon, delta, p, beta
        The fields of :class:`~sfumato.mechanisms.central.SmoothQuantile`.
    clipped
        Whether a result above the public bound is clipped to it, which costs no privacy; in the
        paper it is not.

    """

    epsilon: float
    delta: float
    p: float
    beta: float | None = None
    clipped: bool = True
    name: ClassVar[str] = "quantile"

    def __post_init__(self) -> None:
        """Refuse, before any value comes, what smooth sensitivity cannot keep."""
        _ = self.smooth

    @property
    def smooth(self) -> SmoothQuantile:
        """What draws the quantile."""
        return SmoothQuantile(self.epsilon, self.delta, self.p, self.beta)

    def choose(self, values: Ints, bound: int, rng: Source) -> int:
        """Return a threshold in units, at least 1."""
        drawn = self.smooth.release(values, bound, rng)
        return max(1, min(drawn, bound) if self.clipped else drawn)


KINDS: Final[dict[str, type[Any]]] = {
    kind.name: kind for kind in (Fixed, ToPSThreshold, ScaleFree, RaisedThreshold, Quantile)
}


def from_configuration(configuration: dict[str, Any]) -> Threshold:
    """Return the threshold that plain data describe."""
    rest = dict(configuration)
    kind = KINDS.get(str(rest.pop("kind", None)))
    if kind is None:
        raise ConfigurationError(f"threshold is {configuration!r}; it has no kind that is known.")
    built: Threshold = kind(**rest)
    return built
