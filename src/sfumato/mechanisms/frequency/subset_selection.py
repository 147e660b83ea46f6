"""Subset selection: send a random set of items, which often contains the own item."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb, gcd
from typing import Any, ClassVar, Final, Self

import numpy as np

from sfumato.arrays import Array, Bools, Floats, Ints
from sfumato.core.estimate import Covariance
from sfumato.core.exact import exp_below
from sfumato.core.law import Law
from sfumato.core.occurrences import occurrences
from sfumato.core.size_ranges import SizeRange
from sfumato.core.tally import Tally
from sfumato.mechanisms.frequency.oracle import FrequencyOracle, bit_counts, kept_threshold
from sfumato.randomness import ONE, Source, holds

__all__ = ["SubsetSelection"]

# The largest number of people for numpy's hypergeometric distribution.
_DRAWN_AT_ONCE: Final = 10**9


@dataclass(frozen=True)
class SubsetSelection(FrequencyOracle):
    """Subset selection: a set of w items is sent; it has the least error if d bits can be sent.

    With probability k the set is uniform among those that hold the item, otherwise among all sets
    of w items: P[Z | x] = k [x in Z]/C(d-1, w-1) + (1 - k)/C(d, w), with
    k = (e^epsilon - 1)/(e^epsilon - 1 + d/w) rounded down to 64 bits. With w = 1 this is GRR.

    The sampler draws a uniform set of w - 1 items and one more item, uniform among the rest. The
    own item replaces the last one if it is to be kept and is not among the first. This gives the
    right law: the items drawn make up a uniform w-set, which covers the case that the own item is
    not kept. If it is kept, the other items in the report are the first w - 1 (if the item is not
    among them) or the first w - 1 without the item and with the last one (if it is); both are
    uniform sets of w - 1 among the d - 1 other items, because the draw favours none of these. All
    coins are tossed without looking at the item, so their number reveals nothing about it.

    Parameters
    ----------
    subset_size
        The size w of the set; by default the one of least variance, near d/(e^epsilon + 1).

    Guarantee
    ---------
    epsilon-LDP: a set is 1 + (d/w) k/(1-k) <= e^epsilon times as likely under its members as
    under all other items, exactly over the integers used.

    Error
    -----
    n Var = q (1-q)/(p-q)^2 + f (1-p-q)/(p-q) for a share f, with p = k + (1-k) w/d and
    q = k (w-1)/(d-1) + (1-k) w/d. The mean over all items is about
    ((d-1)/d)^2 4 e^epsilon/(e^epsilon - 1)^2 - (d-1)/d^2: below OUE and, for w > 1, below GRR.

    Cost
    ----
    Device O(d), server O(d) per report of d/8 bytes; if w items take fewer bytes than d bits
    (epsilon above about 2), the report lists them, and device and server need O(w).

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> mechanism = SubsetSelection(epsilon=1.0, domain=10)
    >>> mechanism.members, mechanism.report_bytes
    (3, 2)
    >>> reports = mechanism.randomize([7] * 5000, seeded(1))
    >>> int(mechanism.estimate(mechanism.tally(reports)).values.argmax())
    7

    References
    ----------
    Ye, Barg, "Optimal Schemes for Discrete Distribution Estimation under Locally Differential
    Privacy" (2018). Wang, Huang, Wang, Nie, Xu, Yang, Li, Qiao, "Mutual Information Optimally
    Local Private Discrete Distribution Estimation" (2016).

    """

    subset_size: int | None = None

    name: ClassVar[str] = "subset_selection"
    summary: ClassVar[str] = "a random set of items that favours the own one; least error"

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless the size of the set is allowed."""
        super().__post_init__()
        if self.subset_size is not None:
            self._check_whole("subset_size", 1, self.size - 1)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks; the last one lists its items."""
        yield cls(1.0, 2)
        yield cls(1.0, 6)
        yield cls(0.5, ("red", "green", "blue"))
        yield cls(1.0, 5, subset_size=3)
        yield cls(2.0, 17)

    @cached_property
    def members(self) -> int:
        """The number of items in a report: as given, or the one with the least mean variance."""
        if self.subset_size is not None:
            return self.subset_size
        near = int(self.size / (exp_below(self.epsilon) + 1))
        tried = range(max(near - 1, 1), min(near + 2, self.size - 1) + 1)
        return min(tried, key=self._mean_variance)

    def sizes(self) -> Iterator[SizeRange]:
        """Yield the numbers of items in a report, unless one was given."""
        if self.subset_size is None:
            yield SizeRange("subset_size", 1, self.size - 1)

    def _mean_variance(self, members: int) -> Fraction:
        p, q = self._supports(members)
        return (p * (1 - p) + (self.size - 1) * q * (1 - q)) / (p - q) ** 2

    def _kept(self, members: int) -> int:
        return kept_threshold(self.epsilon, Fraction(self.size, members))

    def _supports(self, members: int) -> tuple[Fraction, Fraction]:
        kept = Fraction(self._kept(members), ONE)
        anyhow = (1 - kept) * Fraction(members, self.size)
        return kept + anyhow, kept * Fraction(members - 1, self.size - 1) + anyhow

    @cached_property
    def kept(self) -> int:
        """The probability that the own item is in the set for certain, in units of 2^-64."""
        return self._kept(self.members)

    @cached_property
    def supports(self) -> tuple[Fraction, Fraction]:
        """The probabilities that the set contains the own item, and any other given item."""
        return self._supports(self.members)

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of a set's probabilities: under a member against under another item."""
        return 1 + Fraction(self.kept * self.size, (ONE - self.kept) * self.members)

    def meets(self, count: int) -> Fraction:
        """Return the share of sets of w items that contain ``count`` given items."""
        chance = Fraction(1)
        for held in range(min(count, self.members + 1)):
            chance *= Fraction(self.members - held, self.size - held)
        return chance

    def law(self, value: Any, public: Any = None) -> Law:
        """Return the exact law over all sets of w items, for small domains only."""
        del public
        code = int(self.encode([value])[0])
        sets = np.array(list(combinations(range(self.size), self.members)))
        outputs = np.empty(len(sets), dtype=self.report_dtype)
        held = np.zeros((len(sets), self.size), dtype=np.uint8)
        np.put_along_axis(held, sets, 1, axis=1)
        if self._listed:
            outputs["items"] = sets
        else:
            outputs["bits"] = np.packbits(held, axis=1, bitorder="little")
        # The denominator has C(d, w) = (d/w) C(d-1, w-1); all is multiplied by w to be whole.
        anyhow, own = (ONE - self.kept) * self.members, self.kept * self.size
        numerators = tuple(anyhow + own * int(holds) for holds in held[:, code])
        return Law(outputs, numerators, ONE * self.members * comb(self.size, self.members))

    @cached_property
    def _listed(self) -> bool:
        """Whether a report lists its items, because that takes fewer bytes than one bit each."""
        return self.members * self._code.itemsize < (self.size + 7) // 8

    @property
    def _code(self) -> np.dtype[Any]:
        return np.min_scalar_type(self.size - 1).newbyteorder("<")

    @cached_property
    def report_dtype(self) -> np.dtype[Any]:
        """The numpy dtype of a report: sorted items or, if shorter, one bit for each item."""
        if self._listed:
            return np.dtype([("items", self._code, (self.members,))])
        return np.dtype([("bits", "u1", ((self.size + 7) // 8,))])

    @property
    def chunk(self) -> int:
        """How many people are handled at once: about half a megabyte of bits or items."""
        rows = (1 << 16) // self.members if self._listed else (1 << 22) // self.size
        return min(max(rows, 1), 1 << 15)

    def _randomize(self, encoded: Array, rng: Source, reports: Array) -> None:
        kept = rng.bernoulli(self.kept, encoded.size)
        if self._listed:
            self._list_items(encoded, kept, rng, reports)
        else:
            self._raise_bits(encoded, kept, rng, reports)

    def _list_items(self, encoded: Array, kept: Bools, rng: Source, reports: Array) -> None:
        chosen = rng.subsets(self.size, self.members, encoded.size)
        last = rng.below(self.members, encoded.size)  # any member of a uniform set may be the last
        absent = np.flatnonzero(kept & (chosen != encoded[:, None]).all(axis=1))
        chosen[absent, last[absent]] = encoded[absent]
        chosen.sort(axis=1)  # so that the position of an item reveals nothing
        reports["items"] = chosen

    def _raise_bits(self, encoded: Array, kept: Bools, rng: Source, reports: Array) -> None:
        lanes = rng.subset_lanes(self.size, self.members - 1, encoded.size)
        last = rng.outside(lanes, self.size)
        everyone = np.arange(encoded.size)
        last = np.where(kept & ~holds(lanes, encoded, everyone), encoded, last)
        lanes[last >> 6, everyone] |= np.uint64(1) << (last & 63).astype(np.uint64)
        rows = np.ascontiguousarray(lanes.T).astype("<u8", copy=False)
        reports["bits"] = rows.view("u1")[:, : self.report_bytes]

    def valid(self, reports: Array) -> Bools:
        """Return a mask of the reports that are sets of the right size in canonical form."""
        if self._listed:
            items = reports["items"]
            rising = (items[:, :-1] < items[:, 1:]).all(axis=1)
            return np.asarray(rising & (items[:, -1] < self.size))
        bits = reports["bits"]
        words = bits.view(f"u{gcd(self.report_bytes, 8)}")
        good = np.bitwise_count(words).sum(axis=1, dtype=np.uint32) == self.members
        if self.size % 8:
            good &= bits[:, -1] >> self.size % 8 == 0
        return np.asarray(good)

    def _sums(self, reports: Array) -> Ints:
        if self._listed:
            return occurrences(reports["items"], self.size)
        return bit_counts(reports["bits"], self.size)

    @cached_property
    def _together(self) -> tuple[float, float]:
        """The covariance of two supports in one report, and how much more it is for a holder."""
        # P[u and v in Z] is (w-1)/(d-1) if a holder of u keeps it, (w-1)(w-2)/((d-1)(d-2)) if
        # somebody keeps another item, and w(w-1)/(d(d-1)) if nothing is kept.
        d, w = self.size, self.members
        kept, (p, q) = Fraction(self.kept, ONE), self.supports
        anyhow = (1 - kept) * Fraction(w * (w - 1), d * (d - 1))
        held = kept * Fraction(w - 1, d - 1) + anyhow - p * q
        apart = kept * Fraction((w - 1) * (w - 2), (d - 1) * max(d - 2, 1)) + anyhow - q * q
        return float(apart), float(held - apart)

    def _covariance(self, share: Floats, n: int) -> Covariance:
        return self._covariance_of_pairs(share, n, *self._together)

    def sample_tally(self, histogram: Ints, rng: Source) -> Tally:
        """Return a tally drawn from its exact joint law, in about d sqrt(d) steps for any n.

        Items are drawn one after another. All that matters of a report is how many members it still
        has to name, so reports are counted by that number: a set with s members left for r items
        names the next item with probability s/r. Reports that keep a later item have had the same
        law so far, whichever item that is; so those that keep the next item are a uniform choice
        among them.
        """
        held = np.asarray(histogram, dtype=np.int64)
        n = int(held.sum())
        if n >= _DRAWN_AT_ONCE:
            half = held // 2
            return self.sample_tally(half, rng) + self.sample_tally(held - half, rng)
        draw = rng.simulator()
        keep = draw.binomial(held, self.kept / ONE)
        bound, free = np.zeros((2, self.members + 1), dtype=np.int64)
        bound[-2], free[-1] = keep.sum(), n - keep.sum()
        sums = np.empty(self.size, dtype=np.int64)
        for item, left in enumerate(range(self.size, 0, -1)):
            open_ = np.flatnonzero(bound)
            own = np.zeros_like(bound)
            own[open_] = draw.multivariate_hypergeometric(bound[open_], keep[item])
            bound -= own
            sums[item] = keep[item] + _name(bound, left - 1, draw) + _name(free, left, draw)
            free += own
        return Tally(n, sums)


def _name(reports: Ints, left: int, draw: np.random.Generator) -> int:
    """Draw how many reports name the next item; ``reports`` counts them by members left."""
    members = np.flatnonzero(reports)
    if not members.size or not left:
        return 0
    named = draw.binomial(reports[members], members / left)
    reports[members] -= named
    moved = members > 0
    reports[members[moved] - 1] += named[moved]
    return int(named.sum())
