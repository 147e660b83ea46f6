"""SUCCINCT: the sum of a vector's entries with random public signs, clipped and noised."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from math import comb, log, sqrt
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np

from sfumato.arrays import Array, Bools, Ints
from sfumato.core.estimate import Covariance, Estimate
from sfumato.core.field_checks import check_one_of
from sfumato.core.law import Law
from sfumato.core.tally import Tally
from sfumato.mechanisms.sparse.hashed.hash_family import HashFamily
from sfumato.mechanisms.sparse.hashed.linear_hash import family_for
from sfumato.mechanisms.sparse.rivals.laplace_scale import LaplaceScale
from sfumato.mechanisms.sparse.rivals.rival import Rival
from sfumato.mechanisms.sparse.sparse_mechanism import EntryLaw, weight_above
from sfumato.randomness import ONE, Source, Wheel

__all__ = ["Succinct"]

LISTED_SEEDS: Final = 1 << 16
_SHRUNK: Final = 2.5  # the divisor of the clip in the authors' own implementation


@dataclass(frozen=True)
class SumLaw(EntryLaw):
    """The law of the number sent, times the public sign of one entry.

    Parameters
    ----------
    contrast
        The mean for an entry of 1; that of a zero is 0.
    square
        The mean square, which is the same for all entries.

    """

    sparsity: int
    contrast: float
    square: float
    p_false: float = 0.5
    presence: float = 0.0

    def value_variances(self) -> tuple[float, float]:
        """Return the variance of the value estimate at a zero and at a non-zero entry."""
        scale = self.square / self.contrast**2
        return scale, scale - 1

    def presence_variances(self) -> tuple[float, float]:
        """Return infinite variances, because signs tell no frequencies."""
        return np.inf, np.inf


@dataclass(frozen=True)
class Succinct(Rival):
    """A vector's entries are added up with random public signs; the sum is clipped and noised.

    A public seed gives each entry a sign. The sum B of the s non-zeros, each times its public sign,
    is clipped to [-c, c], c = sqrt(s log n)/2.5, put on an integer grid and sent with noise. Times
    the public sign of an entry it estimates that entry; what clipping takes away on average is
    known exactly and is given back.

    Parameters
    ----------
    noise
        Integer noise with the Laplace law (laplace), or rounding of the sum to one of two numbers
        by chance (rounding), which is better.
    debiased
        Whether estimates are divided by what clipping leaves of an entry; if not, as papers
        compare with it, they are too small.
    devices
        The number n of devices that the clip is chosen for.
    steps
        The number of steps of the grid from 0 to the clip; by default up to 1,024, and fewer for
        small epsilon.
    seed_bits
        The largest number of bits of a seed.

    Guarantee
    ---------
    epsilon-LDP for the whole vector, for every seed: two sums differ by at most 2c.

    Error
    -----
    With r = E[B clip(B)]/s the variance is (E[clip(B)^2] + 8 c^2/epsilon^2)/r^2 - x^2 for an entry
    x; with rounding (c (e^epsilon + 1)/(e^epsilon - 1))^2/r^2 - x^2.

    Cost
    ----
    A seed and a number; device O(s), server O(d) per report.

    Examples
    --------
    >>> for noise in ("laplace", "rounding"):
    ...     law = Succinct(1.0, 64, 8, noise=noise, steps=1 << 24).probabilities
    ...     print(noise, *(f"{variance:.6g}" for variance in law.value_variances()))
    laplace 162.635 161.635
    rounding 90.2598 89.2598

    References
    ----------
    Zhou, Wang, Chan, Fanti, Shi, "Locally Differentially Private Sparse Vector Aggregation" (2022),
    with one bucket, and the clip of the authors' own implementation.

    """

    noise: Literal["laplace", "rounding"] = "laplace"
    debiased: bool = True
    devices: int = 10_000
    steps: int | None = None
    seed_bits: int = 64

    size: ClassVar[int] = 1
    """The number of numbers that one person sends."""
    name: ClassVar[str] = "succinct"
    summary: ClassVar[str] = "a rival for sparse signed vectors: a noisy sum with public signs"

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(3.0, 2, 1, exact_sparsity=True, steps=1)
        yield cls(2.0, 3, 2, exact_sparsity=True, steps=2, noise="rounding")
        yield cls(1.0, 2, 1, noise="rounding", steps=3)

    def _check_options(self) -> None:
        check_one_of("noise", self.noise, ("laplace", "rounding"))
        self._check_flag("debiased")
        self._check_whole("devices", 2, 1 << 40)
        if self.steps is not None:
            self._check_whole("steps", 1, 1 << 24)
        self._check_whole("seed_bits", 1, 64)

    # ---- the law ---------------------------------------------------------------------------

    @property
    def clip(self) -> float:
        """The largest absolute sum that is not clipped."""
        return min(sqrt(self.sparsity * log(self.devices)) / _SHRUNK, float(self.sparsity))

    @cached_property
    def grid(self) -> int:
        """The number of steps of the grid from 0 to the clip."""
        return self.steps or min(max(int(4_000 * self.epsilon), 32), 1_024)

    @cached_property
    def _clipped(self) -> tuple[int, ...]:
        """The clipped sum on the grid, for sums of -s, -s + 2, ..., s."""
        s, clip = self.sparsity, self.clip
        return tuple(
            int(np.sign(b)) * round(min(abs(b) / clip, 1.0) * self.grid)
            for b in range(-s, s + 1, 2)
        )

    @cached_property
    def _thresholds(self) -> tuple[int, ...]:
        """The probability of rounding to the larger number, in units of 2^-64, for each sum."""
        low, grid = weight_above(-Fraction(self.epsilon)), self.grid
        whole = 2 * grid * (ONE + low)
        above = [grid * (ONE + low) + abs(c) * (ONE - low) for c in self._clipped]
        chances = [ONE * each // whole for each in above]
        return tuple(
            chance if c >= 0 else ONE - chance
            for c, chance in zip(self._clipped, chances, strict=True)
        )

    @cached_property
    def _scale(self) -> LaplaceScale:
        return LaplaceScale(Fraction(self.epsilon) / (2 * self.grid))

    @cached_property
    def _tails(self) -> tuple[int, ...]:
        """The weight of all noise of 0 or more, 1 or more, ..., on one side."""
        return tuple(accumulate(reversed(self._scale.weights)))[::-1]

    @property
    def _reach(self) -> int:
        """The largest number sent; larger ones are cut off."""
        return len(self._scale.weights) - 1 - self.grid

    @cached_property
    def probabilities(self) -> SumLaw:
        """The law in use, for one entry."""
        s = self.sparsity
        rounded = self.noise == "rounding"
        means = (
            [Fraction(2 * t - ONE, ONE) for t in self._thresholds]
            if rounded
            else [Fraction(c) for c in self._clipped]
        )
        ways = [comb(s, plus) for plus in range(s + 1)]
        slope = sum(w * (2 * plus - s) * means[plus] for plus, w in enumerate(ways))
        square = sum(w * mean**2 for w, mean in zip(ways, means, strict=True)) / (1 << s)
        return SumLaw(
            s, float(slope / (s << s)), 1.0 if rounded else float(square) + self._scale.variance
        )

    @property
    def shrinkage(self) -> float:
        """What clipping leaves of an entry, on average."""
        low = weight_above(-Fraction(self.epsilon)) / ONE
        unit = (
            self.clip * (1 + low) / (1 - low)
            if self.noise == "rounding"
            else (self.clip / self.grid)
        )
        return self.probabilities.contrast * unit

    @cached_property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of two sums' probabilities of one number."""
        if self.noise == "rounding":
            return Fraction(self._thresholds[-1], self._thresholds[0])
        weights, sums, grid = self._scale.weights, self._clipped, self.grid
        worst = Fraction(self._tails[self._reach - grid], self._tails[self._reach + grid])
        for sent in range(self._reach):
            after = bisect_left(sums, sent)
            near = min(abs(sent - c) for c in sums[max(after - 1, 0) : after + 1])
            worst = max(worst, Fraction(weights[near], weights[sent + grid]))
        return worst

    @cached_property
    def family(self) -> HashFamily:
        """The family of public signs, under which those of any s + 2 entries are independent."""
        symbols = self.padded_dimension
        return family_for(symbols, 2, min(self.sparsity + 2, symbols), self.seed_bits)

    def publics(self) -> Sequence[int]:
        """Return all seeds; raise ConfigurationError if there are too many to list."""
        return self.family.listed(LISTED_SEEDS)

    def law(self, value: Any, public: Any = None) -> Law:
        """Return the exact law over the numbers, given a seed (by default 0)."""
        seeds = np.array([public or 0], dtype=np.uint64)
        total = int(self._sums_of(self.encode(np.asarray([value])), seeds)[0])
        numerators, whole = self._chances(total)
        outputs = np.zeros(len(numerators), dtype=self.report_dtype)
        outputs["seed"], outputs["number"] = seeds[0], np.arange(len(numerators))
        return Law(outputs, numerators, whole)

    def _chances(self, index: int) -> tuple[tuple[int, ...], int]:
        """Return the weight of each number, and their total, for one of the possible sums."""
        if self.noise == "rounding":
            chance = self._thresholds[index]
            return (ONE - chance, chance), ONE
        weights, tails, c = self._scale.weights, self._tails, self._clipped[index]
        inner = range(1 - self._reach, self._reach)
        numerators = (
            tails[self._reach + c],
            *(weights[abs(sent - c)] for sent in inner),
            tails[self._reach - c],
        )
        return numerators, 2 * tails[0] - weights[0]

    # ---- reports ---------------------------------------------------------------------------

    @property
    def _last(self) -> int:
        """The largest code of a number."""
        return 1 if self.noise == "rounding" else 2 * self._reach

    @property
    def report_dtype(self) -> np.dtype[Any]:
        """The numpy dtype of a report: the seed of the public signs, and the code of a number."""
        number = np.min_scalar_type(self._last).newbyteorder("<")
        return np.dtype([("seed", self.family.seed_dtype), ("number", number)])

    def valid(self, reports: Array) -> Bools:
        """Return a mask of the reports whose seed and number are in range."""
        good = reports["number"] <= self._last
        if self.family.seeds < 1 << 64:
            good &= reports["seed"] < self.family.seeds
        return np.asarray(good)

    @property
    def chunk(self) -> int:
        """How many people are handled at once: about a megabyte."""
        return min(max((1 << 20) // self.padded_dimension, 64), 1 << 15)

    def _sums_of(self, encoded: Array, seeds: Array) -> Ints:
        """Return how many non-zeros of each person have the sign that the seed gives them."""
        bits = self.family.hash(encoded["position"].T, seeds)
        return np.asarray((encoded["sign"].T * (1 - 2 * bits.astype(np.int8)) > 0).sum(axis=0))

    @cached_property
    def _wheel(self) -> Wheel:
        weights = self._scale.weights
        return Wheel(lambda: (*weights[:0:-1], *weights))

    def _randomize(self, encoded: Array, rng: Source, reports: Array) -> None:
        seeds = self.family.draw(len(encoded), rng)
        sums = self._sums_of(encoded, seeds)
        reports["seed"] = seeds
        if self.noise == "rounding":
            reports["number"] = rng.bernoulli_each(np.array(self._thresholds, np.uint64)[sums])
            return
        drawn = rng.spin(self._wheel, len(encoded)).astype(np.int64)
        noisy = np.array(self._clipped)[sums] + drawn - (self._reach + self.grid)
        reports["number"] = np.clip(noisy, -self._reach, self._reach) + self._reach

    def _sums(self, reports: Array) -> Ints:
        """Return the sums of all positive and of all negative numbers, times the public signs."""
        if self.noise == "rounding":
            plus = self.family.counts(self.dimension, reports["seed"], [1 - reports["number"]])[0]
            return np.stack([plus, len(reports) - plus])
        numbers = reports["number"].astype(np.int64) - self._reach
        turned = self.family.table(self.dimension, reports["seed"]) != (numbers < 0)
        minus = (turned @ np.abs(numbers).astype(np.float64)).astype(np.int64)
        return np.stack([np.abs(numbers).sum() - minus, minus])

    def _estimate(self, tally: Tally) -> Estimate:
        estimate = super()._estimate(tally)
        if self.debiased:
            return estimate
        shrunk = self.shrinkage
        noise = estimate.covariance.diagonal * shrunk**2
        return replace(
            estimate, values=estimate.values * shrunk, covariance=Covariance(noise, joint=False)
        )

    @property
    def mse(self) -> float:
        """The total error over the real entries, for a vector with s non-zeros.

        Without debiasing it has the squared bias of the declared number of devices, all of which
        hold that vector.
        """
        if self.debiased:
            return super().mse
        left = 1 - self.shrinkage
        return super().mse * self.shrinkage**2 + self.devices * self.sparsity * left**2

    @property
    def influence(self) -> float:
        """The most by which one forged report can change the estimated total of an entry."""
        largest = 1 if self.noise == "rounding" else self._reach
        return super().influence * largest * (1.0 if self.debiased else self.shrinkage)

    def facts(self) -> dict[str, Any]:
        """Return the general facts, the clip and what it leaves of an entry."""
        return super().facts() | {
            "padded_dimension": self.padded_dimension,
            "clip": self.clip,
            "shrinkage": self.shrinkage,
            "mse_value": self.mse,
        }
