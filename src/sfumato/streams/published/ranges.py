"""Any range of a published stream, with an interval, by post-processing without cost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sfumato.arrays import Floats, Ints
from sfumato.core.estimate import checked_level
from sfumato.core.field_checks import check_one_of
from sfumato.core.guarantee import Guarantee
from sfumato.core.intervals import z_score
from sfumato.errors import InputError
from sfumato.streams.published.block_motion import BlockMotion
from sfumato.streams.published.noise_tree import Tree, WeightMoments
from sfumato.streams.published.publisher import Blocks
from sfumato.streams.published.publishing_plan import PublishingPlan
from sfumato.streams.published.smoothers import smoother, spread

__all__ = ["ORDERS", "RangeAnswer", "Released"]

ORDERS: Final = ("steady", "any")


class _Part(NamedTuple):
    """A part of a block that a range covers."""

    share: float
    width: int
    cut: float
    total: float
    chapter: int

    @property
    def spread(self) -> float:
        """The largest variance of values from 0 to the threshold with the mean of the block."""
        mean = self.total / self.width
        return mean * (self.cut - mean)

    @property
    def extremes(self) -> tuple[float, float]:
        """How far below and above its even share the sum of the part can lie, in any order."""
        even, most = self.share * self.total, self.cut * self.width
        least = max(0.0, self.total - (1 - self.share) * most)
        return least - even, min(self.total, self.share * most) - even


@dataclass(frozen=True)
class RangeAnswer:
    """The sum (or mean) of the values from one position to another.

    ``low`` and ``high`` are the interval of the sum of values *clipped to the threshold*; clipping
    makes the true sum larger by at most ``cut_off``, and by nothing if no value is that large.
    Where positions are periods, ``count`` is the number of values in them; None if it is private.
    """

    first: int
    last: int
    value: float
    low: float
    high: float
    level: float
    cut_off: float
    as_of: int
    guarantee: Guarantee
    count: int | None

    @property
    def mean(self) -> RangeAnswer:
        """The same answer for the mean value instead of the sum, if it is known how many are in."""
        if not self.count:
            raise InputError("there is no mean, as it is not known how many values are in.")
        shares = {
            name: getattr(self, name) / self.count for name in ("value", "low", "high", "cut_off")
        }
        return replace(self, **shares)


@dataclass(frozen=True, eq=False)
class Released:
    """A published stream, ready for questions.

    Parameters
    ----------
    release
        The plan by which it was published.
    threshold
        The threshold in units; that of the first chapter if there are several.
    blocks
        The published blocks, in units.
    unit
        The size of one unit.
    thresholds
        The threshold of each chapter, if there are several.
    assumptions
        What the promise assumes beyond what the plan does.

    Attributes
    ----------
    motions
        How the values of each chapter move, as far as it was asked for.

    Examples
    --------
    >>> from sfumato.streams.published.publisher import Publisher
    >>> from sfumato.streams.published.publishing_methods import plan
    >>> release = plan(epsilon=1.0, bound=100, threshold=50, limit=1000, block=10)
    >>> publisher = Publisher(release, bytes(32))
    >>> blocks = publisher.feed(np.arange(1000) % 50)
    >>> released = Released(release, 50, blocks)
    >>> answer = released.sum(101, 500)
    >>> answer.low < 9800 < answer.high
    True

    """

    release: PublishingPlan
    threshold: int
    blocks: Blocks
    unit: float = 1.0
    thresholds: tuple[int, ...] = ()
    assumptions: tuple[str, ...] = ()
    motions: dict[int, BlockMotion] = field(default_factory=dict, init=False, repr=False)

    def cuts(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return the thresholds within a range, in units, each with its number of values."""
        ends = self.release.chapter([first, last]).tolist()
        if ends[0] == ends[1]:
            return [(self._cut(ends[0]), last - first + 1)]
        starts = self.release.holdout + np.arange(ends[0] + 1, ends[1] + 1) * self.release.renew
        counts = np.diff([first - 1, *starts.tolist(), last]).tolist()
        return [(self._cut(ends[0] + index), count) for index, count in enumerate(counts)]

    def _cut(self, chapter: int) -> int:
        return self.thresholds[chapter] if self.thresholds else self.threshold

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to the person behind a value, or to a person."""
        one = self.release.guarantee
        return replace(one, assumptions=(*one.assumptions, *self.assumptions))

    @property
    def first(self) -> int:
        """The position of the first published value; positions are counted from 1."""
        return self.release.skipped + 1

    @property
    def last(self) -> int:
        """The position of the last published value."""
        return int(self.blocks.to[-1]) if self.blocks.to.size else self.release.skipped

    @cached_property
    def _starts(self) -> Ints:
        return np.concatenate([[self.release.skipped], self.blocks.to])

    @cached_property
    def _prefix(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.blocks.sums)])

    def _leaves(self, positions: ArrayLike) -> Floats:
        """Return positions in leaves: the number of complete leaves after each position."""
        after = np.asarray(positions, dtype=np.int64)
        block = np.searchsorted(self._starts, after, side="right") - 1
        block = np.minimum(block, self.blocks.to.size - 1)
        start, end = self._starts[block], self._starts[block + 1]
        return np.asarray(block + (after - start) / (end - start))

    def sums(self, first: ArrayLike, last: ArrayLike) -> Floats:
        """Return the sums of many ranges at once, without intervals.

        Both ends belong to the range. Within a block the sum is interpolated.
        """
        i, j = np.asarray(first, dtype=np.int64), np.asarray(last, dtype=np.int64)
        if i.size and (i.min() < self.first or j.max() > self.last or bool((i > j).any())):
            bad = np.flatnonzero(np.ravel((i < self.first) | (j > self.last) | (i > j)))[0]
            self._refuse(int(np.ravel(i)[bad]), int(np.ravel(j)[bad]))
        return np.asarray((self._before(j) - self._before(i - 1)) * self.unit)

    def _before(self, positions: ArrayLike) -> Floats:
        """Return the sum of all values up to each position, interpolated within blocks."""
        leaves = self._leaves(positions)
        whole = np.minimum(np.floor(leaves).astype(np.int64), self.blocks.to.size - 1)
        return np.asarray(self._prefix[whole] + (leaves - whole) * self.blocks.sums[whole])

    def sum(self, first: int, last: int, level: float = 0.95, order: str = "steady") -> RangeAnswer:
        """Return the sum of the values from one position to another, both included.

        Where a range covers a part of a block, its interval depends on the order of the values in
        it. If that is ``steady``, parts of a block differ by no more than the published blocks show
        that values move; a cycle shorter than a block cannot be seen there. With ``any`` order the
        interval holds in whatever order values are, and is longer.
        """
        if not self.first <= first <= last <= self.last:
            self._refuse(first, last)
        checked_level(level)
        check_one_of("order", order, ORDERS)
        value = float(self.sums([first], [last])[0])
        below, above = self._reaches(first, last, level, order)
        low, high = value - below * self.unit, value + above * self.unit
        bound, cuts = self.release.bound, self.cuts(first, last)
        if order == "any":  # an end that no values have is no end of the interval
            most = sum(at * count for at, count in cuts) * self.unit
            low, high = min(max(low, 0.0), most), max(min(high, most), 0.0)
        cut = sum((bound - min(at, bound)) * count for at, count in cuts)
        return RangeAnswer(
            first,
            last,
            value,
            low,
            high,
            level,
            cut * self.unit,
            self.last,
            self.guarantee,
            last - first + 1,
        )

    def running(self, window: int, every: int) -> tuple[Ints, Floats]:
        """Return running averages over ``window`` values, at every ``every``-th position."""
        if not 1 <= window <= self.last - self.first + 1:
            raise InputError(
                f"window is {window}; the published stream has {self.last - self.first + 1} values."
            )
        ends = np.arange(self.first + window - 1, self.last + 1, every)
        return ends, self.sums(ends - window + 1, ends) / window

    def online(self) -> Floats:
        """Return a guess of each value that only uses what was known at its time."""
        widths = np.diff(self._starts)
        means = self.blocks.sums / widths
        guess = smoother(self.release.smoother, self.threshold)
        rates = np.concatenate([[guess.rate], guess.push(means)])[:-1]
        return spread(self.blocks.sums, rates, widths) * self.unit

    def _refuse(self, first: int, last: int) -> None:
        if first > last:
            raise InputError(
                f"the range is {first}..{last}; its first position must not be larger."
            )
        skipped = self.release.skipped
        why = f"; the first {skipped:,} values chose the threshold" if skipped else ""
        raise InputError(
            f"the range is {first}..{last}; published are the positions "
            f"{self.first}..{self.last}{why}."
        )

    def _reaches(self, first: int, last: int, level: float, order: str) -> tuple[float, float]:
        """Return how far an interval reaches below and above its value."""
        x, y = self._leaves([first - 1, last]).tolist()
        if order == "steady":
            reach = self._reach(first, last, (x, y), level, self._hidden(x, y))
            return reach, reach
        # Whether a part counts wholly or not at all depends on the noisy sum of its block.
        ends = itertools.product({math.floor(x), x, math.ceil(x)}, {math.floor(y), y, math.ceil(y)})
        noise = max(self._reach(first, last, pair, level) for pair in ends if pair[0] < pair[1])
        below, above = np.sum([(0.0, 0.0), *(part.extremes for part in self._parts(x, y))], axis=0)
        return noise - float(below), noise + float(above)

    def _reach(
        self, first: int, last: int, ends: tuple[float, float], level: float, hidden: float = 0.0
    ) -> float:
        """Return the half width of an interval, from exact moments of noise and a variance."""
        variance, fourth = hidden, 0.0
        for cut, start, end in self._by_chapters(first, last, *ends):
            law, tree = self.release.noise(cut), self.release.tree
            if not (law.excess_kurtosis and isinstance(tree, Tree)):
                variance += law.variance * float(tree.mean_square(start, end))
                continue
            moments = _moments(tree, start, end)
            variance += law.variance * moments.square
            fourth += law.excess_kurtosis * law.variance**2 * moments.fourth
        # Cornish and Fisher: the noise of few nodes has longer tails than a normal law.
        tails = fourth / variance**2
        z = z_score(level)
        return (z + tails * (z**3 - 3 * z) / 24) * math.sqrt(variance)

    def _by_chapters(
        self, first: int, last: int, x: float, y: float
    ) -> Iterator[tuple[int, float, float]]:
        """Yield the threshold of each chapter in a range, and the range's ends in that chapter."""
        begin, end = self.release.chapter([first, last]).tolist()
        for chapter in range(begin, end + 1):
            edges = np.searchsorted(self._chapters, [chapter, chapter + 1]).tolist()
            ends = (max(x, edges[0]) - edges[0], min(y, edges[1]) - edges[0])
            yield self._cut(chapter), *ends

    @cached_property
    def _chapters(self) -> Ints:
        """The chapter of each block."""
        return self.release.chapter(self.blocks.to)

    def _parts(self, x: float, y: float) -> Iterator[_Part]:
        """Yield the parts of blocks that a range covers, given its ends in leaves."""
        whole = math.floor(x) == math.floor(y)
        for start, end in [(x, y)] if whole else [(math.floor(y), y), (x, math.ceil(x))]:
            if 0 < end - start < 1:
                block = math.floor(start)
                width = int(self._starts[block + 1] - self._starts[block])
                chapter = int(self._chapters[block])
                cut = float(self._cut(chapter))
                total = min(max(float(self.blocks.sums[block]), 0.0), cut * width)
                yield _Part(end - start, width, cut, total, chapter)

    def _hidden(self, x: float, y: float) -> float:
        """Return the variance of the parts of blocks that a range covers.

        For values in no particular order it is that of a sample without replacement. Values that
        move slowly differ more between parts: by as much as the motion of the blocks says, or as if
        all values of a part were alike, whichever is less.
        """
        total = 0.0
        for part in self._parts(x, y):
            even = part.share * (1 - part.share)
            shuffled = part.spread * even * part.width**2 / max(part.width - 1, 1)
            alike = part.spread * (even * part.width) ** 2
            total += max(shuffled, min(self._motion(part.chapter).hidden(part.share), alike))
        return total

    def _motion(self, chapter: int) -> BlockMotion:
        """Return how the values of a chapter move, as far as its published blocks show it."""
        if chapter not in self.motions:
            first, last = np.searchsorted(self._chapters, [chapter, chapter + 1]).tolist()
            full = np.diff(self._starts)[first:last] == self.release.block
            sums = self.blocks.sums[first : first + int(full.sum())]  # only the last can be short
            variance = self.release.noise(self._cut(chapter)).variance
            self.motions[chapter] = BlockMotion.of(sums, self.release.tree, variance)
        return self.motions[chapter]


# Many ranges share their ends, and these take longer than all the rest of an answer.
@lru_cache(maxsize=4096)
def _moments(tree: Tree, first: float, last: float) -> WeightMoments:
    return tree.moments(first, last)
