"""Any range of a published stream, with an interval: post-processing that costs nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.core.estimate import checked_level
from sfumato.core.guarantee import Guarantee
from sfumato.core.intervals import z_score
from sfumato.errors import InputError
from sfumato.streams.published.publisher import Blocks
from sfumato.streams.published.publishing_plan import PublishingPlan
from sfumato.streams.published.smoothers import smoother, spread

__all__ = ["RangeAnswer", "Released"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RangeAnswer:
    """The sum (or mean) of the values from one place to another.

    ``low`` and ``high`` are the interval of the sum of values *cut to the threshold*; what was cut
    off makes the true sum larger by at most ``cut_off``, and by nothing if no value is that large.
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

    @property
    def mean(self) -> RangeAnswer:
        """The same of the mean value."""
        n = self.last - self.first + 1
        shares = {name: getattr(self, name) / n for name in ("value", "low", "high", "cut_off")}
        return replace(self, **shares)


@dataclass(frozen=True, eq=False)
class Released:
    """What was published of a stream, ready for questions.

    Parameters
    ----------
    release
        How it was published.
    threshold
        Where values were cut, in units; at first, if there are several chapters.
    blocks
        The published blocks, in units.
    unit
        What one unit is worth.
    thresholds
        Where they were cut in each chapter, if there are several.

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

    def cuts(self, first: int, last: int) -> list[tuple[int, int]]:
        """Return where values of a range were cut, in units, and how many they are, in order."""
        ends = self.release.chapter([first, last]).tolist()
        if ends[0] == ends[1]:
            return [(self._cut(ends[0]), last - first + 1)]
        starts = self.release.holdout + np.arange(ends[0] + 1, ends[1] + 1) * self.release.renew
        counts = np.diff([first - 1, *starts.tolist(), last]).tolist()
        return [(self._cut(ends[0] + place), count) for place, count in enumerate(counts)]

    def _cut(self, chapter: int) -> int:
        return self.thresholds[chapter] if self.thresholds else self.threshold

    @property
    def first(self) -> int:
        """The place of the first value that is published; places are counted from 1."""
        return self.release.skipped + 1

    @property
    def last(self) -> int:
        """The place of the last value that is published."""
        return int(self.blocks.to[-1]) if self.blocks.to.size else self.release.skipped

    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        return np.concatenate([[self.release.skipped], self.blocks.to])

    @cached_property
    def _prefix(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.blocks.sums)])

    def _leaves(self, places: ArrayLike) -> Floats:
        """Return places in leaves: after so many values, how many leaves are complete."""
        after = np.asarray(places, dtype=np.int64)
        block = np.searchsorted(self._starts, after, side="right") - 1
        block = np.minimum(block, self.blocks.to.size - 1)
        start, end = self._starts[block], self._starts[block + 1]
        return np.asarray(block + (after - start) / (end - start))

    def sums(self, first: ArrayLike, last: ArrayLike) -> Floats:
        """Return the sums of many ranges at once, without intervals.

        Both ends belong to the range. Inside of a block the sum is interpolated.
        """
        i, j = np.asarray(first, dtype=np.int64), np.asarray(last, dtype=np.int64)
        if i.size and (i.min() < self.first or j.max() > self.last or bool((i > j).any())):
            bad = np.flatnonzero(np.ravel((i < self.first) | (j > self.last) | (i > j)))[0]
            self._refuse(int(np.ravel(i)[bad]), int(np.ravel(j)[bad]))
        return np.asarray((self._before(j) - self._before(i - 1)) * self.unit)

    def _before(self, places: ArrayLike) -> Floats:
        """Return the sum of the first values up to each place, interpolated inside of blocks."""
        leaves = self._leaves(places)
        whole = np.minimum(np.floor(leaves).astype(np.int64), self.blocks.to.size - 1)
        return np.asarray(self._prefix[whole] + (leaves - whole) * self.blocks.sums[whole])

    def sum(self, first: int, last: int, level: float = 0.95) -> RangeAnswer:
        """Return the sum of the values from one place to another, both included."""
        if not self.first <= first <= last <= self.last:
            self._refuse(first, last)
        checked_level(level)
        value = float(self.sums([first], [last])[0])
        reach = self._reach(first, last, level) * self.unit
        bound = self.release.bound
        cut = sum((bound - min(at, bound)) * count for at, count in self.cuts(first, last))
        return RangeAnswer(
            first,
            last,
            value,
            value - reach,
            value + reach,
            level,
            cut * self.unit,
            self.last,
            self.release.guarantee,
        )

    def running(self, window: int, every: int) -> tuple[NDArray[np.int64], Floats]:
        """Return running averages over so many values, at every so many places."""
        if not 1 <= window <= self.last - self.first + 1:
            raise InputError(
                f"window is {window}; the published stream has {self.last - self.first + 1} values."
            )
        ends = np.arange(self.first + window - 1, self.last + 1, every)
        return ends, self.sums(ends - window + 1, ends) / window

    def online(self) -> Floats:
        """Return one number for each value, as it could be said at its time: causal guesses."""
        widths = np.diff(self._starts)
        means = self.blocks.sums / widths
        guess = smoother(self.release.smoother, self.threshold)
        rates = np.concatenate([[guess.rate], guess.push(means)])[:-1]
        return spread(self.blocks.sums, rates, widths) * self.unit

    def _refuse(self, first: int, last: int) -> None:
        if first > last:
            raise InputError(f"the range is {first}..{last}; its first place must not be larger.")
        skipped = self.release.skipped
        why = f"; the first {skipped:,} values chose the threshold" if skipped else ""
        raise InputError(
            f"the range is {first}..{last}; published are the places "
            f"{self.first}..{self.last}{why}."
        )

    def _reach(self, first: int, last: int, level: float) -> float:
        """Return how far the interval reaches: noise by its exact moments, and order in blocks."""
        x, y = self._leaves([first - 1, last]).tolist()
        variance, fourth = self._hidden(x, y), 0.0
        for cut, start, end in self._by_chapters(first, last, x, y):
            moments = self.release.tree.moments(start, end)
            law = self.release.noise(cut).law()
            variance += law.variance * moments.square
            fourth += law.excess_kurtosis * law.variance**2 * moments.fourth
        # Cornish and Fisher: the noise of few nodes has longer tails than a normal number.
        tails = fourth / variance**2
        z = z_score(level)
        return (z + tails * (z**3 - 3 * z) / 24) * math.sqrt(variance)

    def _by_chapters(
        self, first: int, last: int, x: float, y: float
    ) -> Iterator[tuple[int, float, float]]:
        """Yield where values were cut in each chapter of a range, and its ends in that chapter."""
        begin, end = self.release.chapter([first, last]).tolist()
        for chapter in range(begin, end + 1):
            edges = np.searchsorted(self._chapters, [chapter, chapter + 1]).tolist()
            ends = (max(x, edges[0]) - edges[0], min(y, edges[1]) - edges[0])
            yield self._cut(chapter), *ends

    @cached_property
    def _chapters(self) -> NDArray[np.int64]:
        """The chapter of each block."""
        return self.release.chapter(self.blocks.to)

    def _hidden(self, x: float, y: float) -> float:
        """Return the variance of a cut block's part, were its values in no particular order.

        Values from 0 to the threshold with mean a have a variance of at most a (threshold - a).
        """
        total = 0.0
        cuts = (
            [(x, y)] if math.floor(x) == math.floor(y) else [(math.floor(y), y), (x, math.ceil(x))]
        )
        for start, end in cuts:
            share = end - start
            if 0 < share < 1:
                block = math.floor(start)
                width = int(self._starts[block + 1] - self._starts[block])
                cut = float(self._cut(int(self._chapters[block])))
                mean = min(max(self.blocks.sums[block] / width, 0.0), cut)
                values = mean * (cut - mean)
                total += values * share * (1 - share) * width**2 / max(width - 1, 1)
        return float(total)
