"""CoCo: like Collision, with the two signs of an entry in the two buckets of a pair."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import ceil, comb, exp, lcm, tanh
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.arrays import Array, Bools, Floats
from sfumato.core.contrast import Contrasts
from sfumato.core.exact import exp_below
from sfumato.mechanisms.sparse.hashed import hashed_contrast
from sfumato.mechanisms.sparse.hashed.bucket_law import BucketLaw, Buckets, in_order, step_over
from sfumato.mechanisms.sparse.hashed.hashed_vector import HashedVector
from sfumato.mechanisms.sparse.hashed.pool import occupied
from sfumato.randomness import ONE, Source

__all__ = ["CoCo"]


@dataclass(frozen=True)
class CoCo(HashedVector):
    """A hashed pair of buckets for each entry, of which the one for its sign is favoured.

    Every entry j is hashed to one of t/2 pairs of buckets, with a sign that says which of the two
    stands for plus. Pair and sign are one number G(j) below t: the bucket of plus is G(j), and that
    of minus is G(j) + t/2 mod t. Each pair that the input's s non-zeros take has probability T/s: K
    of it for the bucket of its owner's symbol and 1 - K for the other; if several non-zeros take
    one pair, its owner is one of them at random. The remaining probability is spread evenly over
    the other buckets. K = e^epsilon/(e^epsilon + 1) and T = s (e^epsilon + 1)/Omega, with Omega = s
    (e^epsilon + 1) + t - 2 s, are rounded down to 64 bits.

    With o = t (1 - (1 - 2/t)^s)/(2 s), the probability that a non-zero owns its pair, a report
    supports its symbol with p_true = (T/s)(o K + (1 - o)/2), the opposite one with p_opposite =
    (T/s)(o (1 - K) + (1 - o)/2), and either symbol of a zero entry with 1/t.

    Parameters
    ----------
    hash_range
        The number of buckets t, even, at least 2 s (2 s + 2 for frequencies); by default the one of
        least exact error.
    paper
        Whether to use the hash range printed in the paper, e^epsilon s + s + 2 (for frequencies
        e^epsilon s + 5 s), rounded up to an even number.

    Error
    -----
    Unbiased, with the stated variances, if any s + 2 entries have independent buckets: this is
    exact if seeds number the hashes of :class:`LinearHash` (small vectors), and otherwise as good
    as the generator that makes a hash from a seed. With contrast p_true - p_opposite the variance
    of a mean is (2/t)/contrast^2 at a zero entry and (p_true + p_opposite)/contrast^2 - 1 at
    another.

    Cost
    ----
    Device O(s) hashes, up to 10 bytes; server d hashes of a nanosecond or less per report where
    numba is installed (a few without it), or O(1) with a pool of seeds.

    Examples
    --------
    >>> mechanism = CoCo(epsilon=1.0, dimension=12, sparsity=2)
    >>> mechanism.buckets, mechanism.report_bytes
    (6, 5)
    >>> from sfumato.mechanisms import Collision
    >>> round(mechanism.mse / Collision(1.0, 12, 2).mse, 2)
    0.81

    References
    ----------
    The CoCo mechanism (correlated Collision) for sparse numerical vectors, with one sign for each
    entry instead of one for each symbol, and its range by exact minimisation. The hash family is
    this project's.

    """

    name: ClassVar[str] = "coco"
    summary: ClassVar[str] = "sparse signed vectors; a few bytes, a bucket of a pair for each sign"
    range_step: ClassVar[int] = 2

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(1.0, 3, 1, hash_range=2)
        yield cls(1.0, 3, 1, hash_range=4)
        yield cls(1.0, 3, 2, hash_range=4, exact_sparsity=True)
        yield cls(2.0, 3, 2, hash_range=4)
        yield cls(2.0, 3, 2, hash_range=6, exact_sparsity=True, goal="frequency")

    @property
    def least_range(self) -> int:
        """The smallest number of buckets: a pair for each non-zero, one more for frequencies."""
        return 2 * self.sparsity + (0 if self.goal == "value" else 2)

    @property
    def _printed_range(self) -> int:
        favour, s = exp(self.epsilon), self.sparsity
        printed = favour * s + s + 2 if self.goal == "value" else favour * s + 5 * s
        return 2 * ceil(ceil(printed) / 2)

    @property
    def _symbols(self) -> int:
        return self.padded_dimension

    @property
    def _rows(self) -> int:
        return self.dimension

    @property
    def _pairs(self) -> int:
        return self.buckets // 2

    # ---- the law ---------------------------------------------------------------------------

    @cached_property
    def own(self) -> int:
        """K, the probability of the bucket of the owner's symbol within its pair, times 2^64."""
        favour = exp_below(self.epsilon)
        return int(ONE * favour / (favour + 1))

    @cached_property
    def hit(self) -> int:
        """T, the probability of choosing one of the input's pairs, in units of 2^-64.

        It is rounded down, so that no other bucket is less likely than the less likely one of a
        pair.
        """
        taken, spare = self.sparsity * ONE, self.buckets - 2 * self.sparsity
        return ONE * taken // (taken + spare * (ONE - self.own))

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of a bucket's probabilities: under one sign against under the other."""
        return Fraction(self.own, ONE - self.own)

    def _owned(self, t: Any) -> Any:
        """Return the probability that a non-zero owns its pair: E[1/(1 + others in it)]."""
        return t * (1 - (1 - 2 / t) ** self.sparsity) / (2 * self.sparsity)

    def _entry_law(self, pair: Any, lean: float, presence: Any, t: Any) -> BucketLaw:
        """Return the law of an entry, given T/s and 2 K - 1."""
        contrast = pair * self._owned(t) * lean
        return BucketLaw(
            self.sparsity,
            (pair + contrast) / 2,
            (pair - contrast) / 2,
            1 / t,
            contrast,
            presence,
            0.0,
            0.0,
        )

    def _ideal(self, ranges: Floats) -> BucketLaw:
        favour, s = exp(self.epsilon), self.sparsity
        norm = s * (favour + 1) + ranges - 2 * s
        presence = np.expm1(self.epsilon) * (ranges - 2 * s) / (norm * ranges)
        return self._entry_law((favour + 1) / norm, tanh(self.epsilon / 2), presence, ranges)

    @cached_property
    def probabilities(self) -> BucketLaw:
        """The law in use, computed from the integers of the sampler."""
        pair = Fraction(self.hit, ONE * self.sparsity)
        presence = max(pair - Fraction(2, self.buckets), Fraction(0))
        lean = Fraction(2 * self.own - ONE, ONE)
        return self._entry_law(float(pair), float(lean), float(presence), self.buckets)

    @cached_property
    def _denominator(self) -> int:
        s, t = self.sparsity, self.buckets
        shared = lcm(*range(1, s + 1))
        return ONE * ONE * s * shared * lcm(*(t - 2 * c for c in range(1, s + 1) if t > 2 * c))

    def _chances(self, hashed: Sequence[int]) -> list[Fraction]:
        half = self._pairs
        members: dict[int, list[int]] = {}
        for bucket in hashed:
            members.setdefault(bucket % half, []).append(bucket)
        pair = Fraction(self.hit, ONE * self.sparsity)
        own = Fraction(self.own, ONE)
        free = self.buckets - 2 * len(members)
        rest = (1 - len(members) * pair) / free if free else Fraction(0)
        chances = [rest] * self.buckets
        for buckets in members.values():
            for bucket in (buckets[0], (buckets[0] + half) % self.buckets):
                share = Fraction(buckets.count(bucket), len(buckets))
                chances[bucket] = pair * (share * own + (1 - share) * (1 - own))
        return chances

    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return the contrasts of two inputs, for every hash and on average over random ones."""
        s, half, ratio = self.sparsity, self._pairs, self.worst_ratio
        first, second = set(range(s)), set(range(half, half + s))
        other = {(s + i) % half + half * (i % 2) for i in range(s)}
        every = hashed_contrast.any_hash(ratio, self.buckets, first, second, other)
        exact = self._independent(2 * s)
        if not (exact or self._random):
            return (every,)
        pair = Fraction(self.hit, ONE * s)
        least = pair * Fraction(ONE - self.own, ONE)
        here = hashed_contrast.members(s, half)
        counts = occupied(s, half - 1) if here[0] else np.zeros(1)
        # A pair with n members, j of them in this bucket, has the factor 1 + (e^epsilon - 1) j/n.
        gain, listed = float(ratio) - 1, min(s, hashed_contrast.MEMBERS)
        met = [(n, j) for n in range(1, listed + 1) for j in range(n + 1)]
        free = [c for c in range(1, min(s, half - 1) + 1) if counts[c]]
        rest = [float((1 - c * pair) / (self.buckets - 2 * c) / least) for c in free]
        own = np.array([1 + gain * j / n for n, j in met] + rest)
        back = np.array([1 + gain * (n - j) / n for n, j in met] + rest)
        shares = np.array(
            [here[n] * comb(n, j) / 2**n for n, j in met] + [here[0] * counts[c] for c in free]
        )
        # With more members than are listed, half of them are here on average; at worst all or none.
        many = float(here[listed + 1 :].sum())
        worst = hashed_contrast.opposed(
            np.append(own, [1, 1 + gain]), np.append(shares, [many / 2, many / 2])
        )
        own, back = np.append(own, 1 + gain / 2), np.append(back, 1 + gain / 2)
        shares = np.append(shares, many)
        room = self.dimension >= 2 * s and (self._random or self._independent(2 * s))
        others = hashed_contrast.fewer(own, shares) if room else None
        average = hashed_contrast.random_hash(
            self.buckets * least, worst, [(own, back, shares)], others, exact=exact
        )
        return (every, average)

    # ---- the device ------------------------------------------------------------------------

    def _hashed(self, encoded: Array, seeds: Array) -> Buckets:
        positions, signs = (np.ascontiguousarray(encoded[name].T) for name in ("position", "sign"))
        return self._opposite(self.family.hash(positions, seeds), signs < 0)

    def _opposite(self, buckets: Buckets, which: Bools) -> Buckets:
        """Return the other bucket of the pair where ``which`` is true, else the same bucket."""
        moved = buckets + np.uint16(self._pairs) * which
        moved -= np.uint16(self.buckets) * (moved >= self.buckets)
        return moved

    def _choose(self, hashed: Buckets, rng: Source) -> Buckets:
        s, n = hashed.shape
        half = np.uint16(self._pairs)
        people, slot = np.arange(n), rng.below(s, n)
        pairs, mine = hashed - half * (hashed >= half), hashed[slot, people]
        members = (pairs == pairs[slot, people]).sum(axis=0, dtype=np.int16)
        # A pair with m members is chosen m times as often, so it is kept, with this owner, once in
        # m times.
        kept = rng.bernoulli(self.hit, n) & (rng.below_each(members, 1, s) == 0)
        own = self._opposite(mine, ~rng.bernoulli(self.own, n))
        ordered, repeated = in_order(pairs)
        # If every pair is taken, no other bucket is left, and the rank is never used.
        fewest, most = max(self._pairs - s, 1), max(self._pairs - 1, 1)
        free = self._pairs - s + repeated.sum(axis=0, dtype=np.int16)
        ranks = rng.below_each(np.maximum(free, 1), fewest, most)
        other = step_over(ranks, ordered, repeated) + half * rng.bits(n)
        return np.where(kept, own, other)

    # ---- the server ------------------------------------------------------------------------

    def _targets(self, buckets: Array) -> list[Array]:
        # Plus is in the hashed bucket, minus in the other bucket of the pair.
        return [buckets, (buckets.astype(np.int64) + self._pairs) % self.buckets]

    def _weights(self, hashed: Buckets) -> Floats:
        n, half = hashed.shape[1], self._pairs
        members = np.zeros((n, self.buckets))
        np.add.at(members, (np.arange(n), hashed), 1.0)
        pairs = members[:, :half] + members[:, half:]
        share = members / np.tile(np.maximum(pairs, 1), 2)
        own, pair = self.own / ONE, self.hit / ONE / self.sparsity
        taken = (pairs > 0).sum(axis=1, keepdims=True)
        rest = (1 - taken * pair) / np.maximum(self.buckets - 2 * taken, 1)
        owned = pair * (share * own + (1 - share) * (1 - own))
        return np.asarray(np.where(np.tile(pairs > 0, 2), owned, rest))

    def _between(self) -> tuple[float, float]:
        law, s, t = self.probabilities, self.sparsity, self.buckets
        if self.goal == "value":
            # The mean of m random signs has a mean square of 1/m.
            owned = self._owned(t)
            met = 1.0 if t == 2 else 0.0  # a single pair is always hit, by the only non-zero
            chance = (1 - 2 / t) ** s
            for m in range(1, s + 1) if t > 2 else ():
                chance *= 2 * (s - m + 1) / ((t - 2) * m)  # the probability of m members
                met += chance / m
            return float(met / owned**2), float(1 / owned - 1)
        pair = law.p_true + law.p_opposite
        taken = np.arange(s + 1)
        rest = 2 * (1 - taken * pair) / np.maximum(t - 2 * taken, 1)
        squares = (2 * taken * pair**2 + (t - 2 * taken) * rest**2) / t
        absent = float(occupied(s, self._pairs) @ squares) - (2 / t) ** 2
        return absent / law.presence**2, 0.0

    def facts(self) -> dict[str, Any]:
        """Return the general facts, the opposite sign's probability and the frequency error."""
        law = self.probabilities
        return super().facts() | {
            "p_opposite": law.p_opposite,
            "mse_frequency": law.mse("frequency", self.dimension),
        }
