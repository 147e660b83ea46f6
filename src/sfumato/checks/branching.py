"""All paths of a sampler: every coin falls both ways, which gives its law in exact fractions.

Many draws show a law to a few hundredths; all paths show it to the last of the 64 bits, even for
rare paths. All coins of a sampler come from the few draws of :class:`~sfumato.randomness.Source`
that have a law of their own. :class:`Branching` makes each of them a choice, the sampler runs once
for every sequence of choices, and the probabilities of those with the same reports are added up.
The tests of the sources show that the draws themselves follow their laws.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import combinations, permutations
from math import comb, factorial
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Bools, Ints
from sfumato.checks.drawn import PathCoins
from sfumato.checks.paths import MOST_CHOICES, Abandoned, Path, Unlisted, paths
from sfumato.errors import ConfigurationError
from sfumato.randomness import ONE, Source, Wheel

__all__ = ["STEP", "Branching", "PathLaw", "path_law"]


REACH: Final = 7  # the largest absolute value of noise that is followed
STEP: Final = 10  # the factor by which noise becomes less likely per unit; see Branching


@dataclass(frozen=True)
class PathLaw:
    """The law of a sampler, computed from its paths."""

    chances: dict[Any, Fraction]
    """The exact probability of each outcome."""
    paths: int
    """The number of paths that were followed."""
    left: Fraction
    """The total probability of the paths that were not followed to their end, which are long loops
    and large noise."""


def path_law(run: Callable[[Branching], Any], unit: Fraction | None = None) -> PathLaw:
    """Return the exact law of a sampler's results, by following all of its paths.

    Raises :class:`Unlisted` if there are too many. With a ``unit``, noise is followed as well; see
    :class:`Branching`.

    Examples
    --------
    >>> path_law(lambda rng: int(rng.below(2, 3).sum())).chances
    {0: Fraction(1, 8), 1: Fraction(3, 8), 2: Fraction(3, 8), 3: Fraction(1, 8)}

    """
    sums: dict[tuple[Any, int], int] = {}
    count = 0
    for outcome, path in paths(lambda path: run(Branching(path, unit)), Path, MOST_CHOICES):
        count += 1
        key = (outcome, path.denominator)
        sums[key] = sums.get(key, 0) + path.numerator
    chances: dict[Any, Fraction] = {}
    for (outcome, denominator), numerator in sums.items():
        chances[outcome] = chances.get(outcome, Fraction(0)) + Fraction(numerator, denominator)
    return PathLaw(chances, count, 1 - sum(chances.values(), Fraction(0)))


class Branching(Source):
    """A source whose draws follow a path: each draw with a law of its own is one choice.

    Raw bytes and words have too many values to follow, so a sampler that takes them is refused.

    Parameters
    ----------
    path
        The path, which decides every draw.
    unit
        The rate of the noise, if any is drawn. The probabilities of such noise are powers of x =
        e^-rate, which is irrational; 1/10 is used instead, because claims about the noise must hold
        for every x.

    """

    def __init__(self, path: Path, unit: Fraction | None = None) -> None:
        self.path, self.unit = path, unit

    def take(self, size: int) -> NoReturn:
        """Raise Unlisted, because the outcomes of raw bytes cannot be listed."""
        raise Unlisted(
            f"it takes {size} raw bytes; draw coins by bernoulli, bits, below and their like, "
            "each of which has a law that can be followed"
        )

    def _coins(self, weights: Sequence[int], n: int) -> list[int]:
        return [self.path.weigh(weights) for _ in range(n)]

    def coins(self) -> PathCoins:
        """Return coins that draw whole numbers, one at a time, along the path."""
        return PathCoins(self.path)

    def bernoulli(self, threshold: int, n: int) -> Bools:
        """Return n coins, as the path decides."""
        return np.array(self._coins(_two_ways(threshold, ONE), n), dtype=bool)

    def bernoulli_each(self, thresholds: NDArray[np.uint64]) -> Bools:
        """Return a coin for each threshold, as the path decides."""
        tossed = [self.path.weigh(_two_ways(t, ONE)) for t in thresholds.tolist()]
        return np.array(tossed, dtype=bool)

    def rational(self, numerator: Array | int, denominator: int, n: int) -> Bools:
        """Return n coins with rational probabilities, as the path decides."""
        each = np.clip(np.broadcast_to(numerator, n), 0, denominator).tolist()
        return np.array([self.path.weigh(_two_ways(t, denominator)) for t in each], dtype=bool)

    def bits(self, n: int) -> NDArray[np.uint8]:
        """Return n fair bits, as the path decides."""
        return np.array(self._coins((1, 1), n), dtype=np.uint8)

    def bit_lanes(self, k: int, n: int) -> NDArray[np.uint64]:
        """Return n rows of k fair bits, as the path decides."""
        return _lanes([self._coins((1, 1), k) for _ in range(n)], k)

    def bernoulli_lanes(self, threshold: int, k: int, n: int) -> NDArray[np.uint64]:
        """Return n rows of k coins, as the path decides."""
        weights = _two_ways(threshold, ONE)
        return _lanes([self._coins(weights, k) for _ in range(n)], k)

    def below(self, k: int, n: int, dtype: Any = np.int64) -> Array:
        """Return n integers below k, as the path decides."""
        return np.array([self.path.uniform(k) for _ in range(n)], dtype=dtype)

    def below_each(self, sizes: Array, least: int, most: int) -> Ints:
        """Return an integer below each of the sizes, as the path decides."""
        outside = [size for size in sizes.tolist() if not least <= size <= most]
        if outside:
            raise ConfigurationError(f"a size is {outside[0]}; they lie in {least}..{most}.")
        return np.array([self.path.uniform(size) for size in sizes.tolist()], dtype=np.int64)

    def permutation(self, k: int) -> Ints:
        """Return an order of 0..k-1, as the path decides."""
        if factorial(k) > MOST_CHOICES:
            raise Unlisted(f"it draws an order of {k} things, too many to list")
        order = list(permutations(range(k)))[self.path.uniform(factorial(k))]
        return np.array(order, dtype=np.int64)

    def subset_columns(self, k: int, m: int, n: int) -> Array:
        """Return n subsets, as the path decides, in an order that depends on the subset."""
        kinds = _subsets(k, m)
        chosen = np.empty((m, n), dtype=np.min_scalar_type(max(k - 1, 0)))
        for column in range(n):
            index = self.path.uniform(len(kinds))
            chosen[:, column] = np.roll(kinds[index], index)
        return chosen

    def subset_lanes(self, k: int, m: int, n: int) -> NDArray[np.uint64]:
        """Return n subsets, as the path decides."""
        kinds = _subsets(k, m)
        drawn = [kinds[self.path.uniform(len(kinds))] for _ in range(n)]
        return _lanes([[int(item in kind) for item in range(k)] for kind in drawn], k)

    def outside(self, lanes: NDArray[np.uint64], k: int) -> Ints:
        """Return an item outside of each subset, as the path decides."""
        items = []
        for column in lanes.T.tolist():
            free = [item for item in range(k) if not column[item >> 6] >> (item & 63) & 1]
            items.append(free[self.path.uniform(len(free))])
        return np.array(items, dtype=np.int64)

    def spin(self, wheel: Wheel, n: int) -> Array:
        """Return n outcomes of a wheel, as the path decides."""
        weights = list(wheel.weights())
        return np.array(self._coins(weights, n), dtype=np.min_scalar_type(len(weights)))

    # ---- noise -----------------------------------------------------------------------------

    def geometric(self, rate: Fraction | int, n: int) -> Ints:
        """Return n geometric numbers within reach, as the path decides."""
        return self._noise(rate, n, range(REACH + 1))

    def discrete_laplace(self, rate: Fraction | int, n: int) -> Ints:
        """Return n two-sided geometric numbers within reach, as the path decides."""
        return self._noise(rate, n, range(-REACH, REACH + 1))

    def _noise(self, rate: Fraction | int, n: int, numbers: range) -> Ints:
        times = Fraction(rate) / self.unit if self.unit else Fraction(0)
        if times.denominator != 1 or times < 1:
            raise Unlisted(f"it draws noise of rate {rate}; {self.unit} is expected")
        base = STEP ** int(times)  # P[z] is proportional to base^-|z|
        weights = [base ** (REACH - abs(z)) for z in numbers]
        # Numbers beyond reach weigh 1/(base - 1) on each side; multiplying by that makes all
        # weights whole.
        weights = [weight * (base - 1) for weight in weights] + [1 if numbers[0] == 0 else 2]
        indices = self._coins(weights, n)
        if len(numbers) in indices:
            raise Abandoned
        return np.array([numbers[index] for index in indices], dtype=np.int64)


def _two_ways(threshold: int, whole: int) -> tuple[int, int]:
    if not 0 <= threshold <= whole:
        raise ConfigurationError(f"threshold is {threshold}; it must lie in 0..{whole}.")
    return whole - threshold, threshold


def _lanes(rows: list[list[int]], k: int) -> NDArray[np.uint64]:
    """Return rows of k bits as lanes: columns of 64-bit words."""
    lanes = np.zeros(((k + 63) // 64, len(rows)), dtype=np.uint64)
    for column, row in enumerate(rows):
        for item, bit in enumerate(row):
            lanes[item >> 6, column] |= np.uint64(bit << (item & 63))
    return lanes


@lru_cache(maxsize=64)
def _subsets(k: int, m: int) -> list[tuple[int, ...]]:
    if comb(k, m) > MOST_CHOICES:
        raise Unlisted(f"it draws {m} of {k} things, too many ways to list")
    return list(combinations(range(k), m))
