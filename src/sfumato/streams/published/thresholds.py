"""Where to cut large values: noise grows with the threshold, what is cut off shrinks with it.

With k values of m above it, a threshold t costs, in range sums of random length up to r, noise of
standard deviation s t and a bias of r / sqrt(6) times what is cut off on average. The mean that is
cut off falls by k/m for each unit that t grows, so the sum of the two is least where k is
k* = m s sqrt(6) / r, whatever the values are like: for epsilon 0.1 about one value in 2,000.
All scores here move by at most one when one value changes, and all in the same direction, so that
noisy max needs no factor of two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import ConfigurationError
from sfumato.mechanisms.central import NoisyMax, SmoothQuantile
from sfumato.randomness import Source

__all__ = ["Fixed", "Quantile", "ScaleFree", "Threshold", "ToPSThreshold", "candidates"]

Ints = NDArray[np.int64]

_STEPS: Final = 1024  # of a score: one value more or less counts as so many
_MOST_CANDIDATES: Final = 1 << 17
_PER_OCTAVE: Final = 8


class Threshold(Protocol):
    """Chooses a threshold from the values held out for it."""

    name: ClassVar[str]

    @property
    def epsilon(self) -> float:
        """The epsilon of the choice; 0 if it looks at no value."""

    @property
    def delta(self) -> float:
        """The delta of the choice."""

    def choose(self, values: Ints, bound: int, rng: Source) -> int:
        """Return a threshold from 1 on, in units."""


@dataclass(frozen=True)
class Fixed:
    """A threshold known in advance; no value is held out for it.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> Fixed(50).choose(np.zeros(0, dtype=np.int64), 1000, seeded(1))
    50

    """

    threshold: int
    name: ClassVar[str] = "fixed"
    epsilon: ClassVar[float] = 0.0
    delta: ClassVar[float] = 0.0

    def choose(self, values: Ints, bound: int, rng: Source) -> int:
        """Return the threshold."""
        del values, rng
        return min(self.threshold, bound)


def candidates(bound: int, *, all_integers: bool) -> Ints:
    """Return the thresholds to choose from: all integers up to the bound, or a logarithmic grid.

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
    """Return how many values lie above each candidate."""
    return values.size - np.searchsorted(np.sort(values), grid, side="right")


@dataclass(frozen=True)
class ToPSThreshold:
    """The threshold of ToPS: noisy max of -(slope t + the number of values above t).

    Parameters
    ----------
    epsilon
        Privacy of the choice.
    slope
        What one unit of threshold costs, in values: 3 m sqrt(2 (b - 1) h^3) / (c r epsilon).

    """

    epsilon: float
    slope: float
    name: ClassVar[str] = "tops"
    delta: ClassVar[float] = 0.0

    def choose(self, values: Ints, bound: int, rng: Source) -> int:
        """Return a threshold from 1 on, in units."""
        grid = candidates(bound, all_integers=True)
        scores = -np.rint(_STEPS * self.slope * grid).astype(np.int64) - _STEPS * _above(
            values, grid
        )
        return int(grid[NoisyMax(self.epsilon, _STEPS, "laplace").select(scores, rng)])


@dataclass(frozen=True)
class ScaleFree:
    """A threshold that does not depend on the unit: noisy max of -(weight ln t + k).

    k counts the values above t. The score is best where k times the tail's index (how many percent
    fewer values one percent more threshold leaves) is the weight. With a weight of 8 / epsilon an
    octave too far costs 5.5 times the scale of the noise, and k is near k* for tails between
    exponential and Pareto's. The price: large values that are far from all others and fewer than
    the weight times the logarithm of the ratio are cut.

    Parameters
    ----------
    epsilon
        Privacy of the choice.
    weight
        How many values a threshold e times as large must save.

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
        """Return a threshold from 1 on, in units."""
        grid = candidates(bound, all_integers=False)
        cost = np.rint(_STEPS * self.weight * np.log(grid)).astype(np.int64)
        scores = -cost - _STEPS * _above(values, grid)
        return int(grid[NoisyMax(self.epsilon, _STEPS, "geometric").select(scores, rng)])


@dataclass(frozen=True)
class Quantile:
    """A quantile by smooth sensitivity: with the safety term, the threshold of PAK.

    Parameters
    ----------
    epsilon, delta, p, beta
        Of :class:`~sfumato.mechanisms.central.SmoothQuantile`.
    clipped
        Whether a result above the public bound is cut to it, which costs nothing; as published it
        is not.

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
        """Return a threshold from 1 on, in units."""
        drawn = self.smooth.release(values, bound, rng)
        return max(1, min(drawn, bound) if self.clipped else drawn)


KINDS: Final[dict[str, type[Any]]] = {
    kind.name: kind for kind in (Fixed, ToPSThreshold, ScaleFree, Quantile)
}


def from_configuration(configuration: dict[str, Any]) -> Threshold:
    """Return the threshold that its plain data describe."""
    rest = dict(configuration)
    kind = KINDS.get(str(rest.pop("kind", None)))
    if kind is None:
        raise ConfigurationError(f"threshold is {configuration!r}; it has no kind that is known.")
    built: Threshold = kind(**rest)
    return built
