"""Collision: hash the signed entries into a few buckets and favour those that the input hits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import exp, floor, lcm
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.arrays import Array, Floats
from sfumato.core.contrast import Contrasts
from sfumato.core.exact import exp_below
from sfumato.mechanisms.sparse.hashed import hashed_contrast
from sfumato.mechanisms.sparse.hashed.bucket_law import BucketLaw, Buckets, in_order, step_over
from sfumato.mechanisms.sparse.hashed.hashed_vector import HashedVector
from sfumato.mechanisms.sparse.hashed.pool import occupied
from sfumato.randomness import ONE, Source

__all__ = ["Collision"]


@dataclass(frozen=True)
class Collision(HashedVector):
    """Hashed buckets, of which those that the input's symbols hit are favoured.

    Every signed entry is hashed into t buckets by a hash drawn for each report. A bucket hit by
    some of the input's s symbols has probability T/s, and the remaining probability is spread
    evenly over the others: (1 - T c/s)/(t - c) each if c different buckets are hit. T is the
    largest multiple of 2^-64 up to s e^epsilon/Omega, with Omega = s e^epsilon + t - s.

    A report supports the symbols in its bucket: a symbol of the input with probability T/s,
    whichever other symbols share its bucket, and any other symbol with 1/t.

    Parameters
    ----------
    hash_range
        The number of buckets t, at least s + 1; by default the one of least exact error.
    goal
        What is estimated: the mean of each entry (value) or how often it is not zero (frequency);
        the supports of the two signs are independent, so both have the same error.
    paper
        Whether to use the hash range printed in the paper, floor(s e^epsilon + 2 s - 1).

    Error
    -----
    Unbiased, with the stated variances, if any s + 2 symbols have independent buckets: this is
    exact if seeds number the hashes of :class:`LinearHash` (small vectors), and otherwise as good
    as the generator that makes a hash from a seed. With contrast p_true - 1/t the variance is
    (2/t)(1 - 1/t)/contrast^2 at a zero entry and (p_true (1 - p_true) + (1/t)(1 - 1/t))/contrast^2
    at another.

    Cost
    ----
    Device O(s) hashes, up to 10 bytes; server 2 d hashes of a nanosecond or less per report where
    numba is installed (a few without it), or O(1) with a pool of seeds.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> mechanism = Collision(epsilon=1.0, dimension=12, sparsity=2)
    >>> mechanism.buckets, mechanism.report_bytes
    (9, 5)
    >>> tally = mechanism.tally(mechanism.randomize([{3: 1, 7: -1}] * 40_000, seeded(1)))
    >>> mechanism.estimate(tally).values.round()[[3, 7]].tolist()
    [1.0, -1.0]

    References
    ----------
    The Collision mechanism for sparse numerical vectors, with its range by exact minimisation.
    The hash family is this project's.

    """

    name: ClassVar[str] = "collision"
    summary: ClassVar[str] = "sparse signed vectors; a few bytes, one hashed bucket"

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(1.0, 3, 1, hash_range=2)
        yield cls(1.0, 3, 1, hash_range=3)
        yield cls(1.0, 3, 2, hash_range=3)
        yield cls(2.0, 3, 1, hash_range=7, exact_sparsity=True, goal="frequency")

    @property
    def least_range(self) -> int:
        """The smallest number of buckets: one more than the input can hit."""
        return self.sparsity + 1

    @property
    def _printed_range(self) -> int:
        return floor(self.sparsity * exp(self.epsilon) + 2 * self.sparsity - 1)

    @property
    def _symbols(self) -> int:
        return self.dimension + self.padded_dimension  # padding entries are always positive

    @property
    def _rows(self) -> int:
        return 2 * self.dimension

    # ---- the law ---------------------------------------------------------------------------

    @cached_property
    def hit(self) -> int:
        """T, the probability of choosing one of the input's buckets, in units of 2^-64."""
        favour = self.sparsity * exp_below(self.epsilon)
        return int(ONE * favour / (favour + self.buckets - self.sparsity))

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of a bucket's probabilities: hit by the input against not hit."""
        s = self.sparsity
        return Fraction(self.hit * (self.buckets - s), (ONE - self.hit) * s)

    def _entry_law(self, p_true: Any, contrast: Any, t: Any) -> BucketLaw:
        # Presence is p_true + 1/t - 2/t; the buckets of the two signs are independent.
        p_false = 1 / t
        return BucketLaw(
            self.sparsity, p_true, p_false, p_false, contrast, contrast, p_false**2, p_true / t
        )

    def _ideal(self, ranges: Floats) -> BucketLaw:
        favour, s = exp(self.epsilon), self.sparsity
        norm = s * favour + ranges - s
        contrast = np.expm1(self.epsilon) * (ranges - s) / (norm * ranges)
        return self._entry_law(favour / norm, contrast, ranges)

    @cached_property
    def probabilities(self) -> BucketLaw:
        """The law in use, computed from the integers of the sampler."""
        p_true = Fraction(self.hit, ONE * self.sparsity)
        contrast = p_true - Fraction(1, self.buckets)
        return self._entry_law(float(p_true), float(contrast), self.buckets)

    @cached_property
    def _denominator(self) -> int:
        s, t = self.sparsity, self.buckets
        return ONE * s * lcm(*(t - c for c in range(1, s + 1)))

    def _chances(self, hashed: Sequence[int]) -> list[Fraction]:
        taken = set(hashed)
        favoured = Fraction(self.hit, ONE * self.sparsity)
        rest = (1 - len(taken) * favoured) / (self.buckets - len(taken))
        return [favoured if bucket in taken else rest for bucket in range(self.buckets)]

    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return the contrasts of two inputs, for every hash and on average over random ones."""
        s, t, ratio = self.sparsity, self.buckets, self.worst_ratio
        apart = [{(turn * s + i) % t for i in range(s)} for turn in range(3)]
        every = hashed_contrast.any_hash(ratio, t, *apart)
        exact = self._independent(2 * s)
        if not (exact or self._random):
            return (every,)
        hit = Fraction(self.hit, ONE * s)
        rest = [(1 - c * hit) / (t - c) for c in range(s + 1)]
        factors = [each / rest[s] for each in rest]
        counts = occupied(s, t)
        levels = np.array([float(ratio), *map(float, factors[1:])])
        taken = np.arange(s + 1) / t
        shares = np.append(counts @ taken, (counts * (1 - taken))[1:])
        if hashed_contrast.disjoint_is_worst(factors, ratio, t):
            bounding = hashed_contrast.unrelated(*hashed_contrast.spread(levels, shares))
        else:
            bounding = hashed_contrast.opposed(levels, shares)
        few = hashed_contrast.fewer(levels, shares)
        pair = hashed_contrast.unrelated(*few)
        room = 2 * self.dimension >= 3 * s and (self._random or self._independent(3 * s))
        others = few if room else None
        average = hashed_contrast.random_hash(t * rest[s], bounding, [pair], others, exact=exact)
        return (every, average)

    # ---- the device ------------------------------------------------------------------------

    def _hashed(self, encoded: Array, seeds: Array) -> Buckets:
        positions, signs = (np.ascontiguousarray(encoded[name].T) for name in ("position", "sign"))
        # Plus signs come first, then minus signs, then padding entries.
        symbols = positions + positions.dtype.type(self.dimension) * (
            (signs < 0) | (positions >= self.dimension)
        )
        return self.family.hash(symbols, seeds)

    def _choose(self, hashed: Buckets, rng: Source) -> Buckets:
        s, n = hashed.shape
        ordered, repeated = in_order(hashed)
        people, slot = np.arange(n), rng.below(s, n)
        # A symbol whose bucket was counted before gives its probability to the buckets that are not
        # hit.
        kept = rng.bernoulli(self.hit, n) & ~repeated[slot, people]
        fewest = self.buckets - s
        ranks = rng.below_each(
            fewest + repeated.sum(axis=0, dtype=np.int16), fewest, self.buckets - 1
        )
        return np.where(kept, ordered[slot, people], step_over(ranks, ordered, repeated))

    # ---- the server ------------------------------------------------------------------------

    def _targets(self, buckets: Array) -> list[Array]:
        return [buckets]

    def _weights(self, hashed: Buckets) -> Floats:
        favoured = self.probabilities.p_true
        hit = np.zeros((hashed.shape[1], self.buckets), dtype=bool)
        hit[np.arange(len(hit)), hashed] = True
        taken = hit.sum(axis=1, keepdims=True)
        rest = (1 - taken * favoured) / (self.buckets - taken)
        return np.asarray(np.where(hit, favoured, rest))

    def _between(self) -> tuple[float, float]:
        # Given that c buckets are hit, a bucket is one of them with probability c/t; its mean
        # probability is 1/t for every c.
        favoured, t = self.probabilities.p_true, self.buckets
        taken = np.arange(self.sparsity + 1)
        rest = (1 - taken * favoured) / (t - taken)
        squares = (taken * favoured**2 + (t - taken) * rest**2) / t
        one = float(occupied(self.sparsity, t) @ squares) - 1 / t**2
        # The symbol of a non-zero is hit under every hash; only the other symbol's bucket varies.
        one /= self.probabilities.contrast**2
        return 2 * one, one

    @property
    def influence(self) -> float:
        """The most by which a forged report can change the estimated total of an entry."""
        most = 1 if self.goal == "value" else 2  # both signs may share a bucket
        return float(most / self.probabilities.contrast)
