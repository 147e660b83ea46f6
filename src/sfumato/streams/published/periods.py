"""Values published by time: noisy sums of the periods of a public grid, and any range of them.

What one row can change
-----------------------
A row has a value and a time. Its value, cut to the threshold theta, counts in the period that its
time lies in; a row whose time is invalid, or outside of the grid, counts nowhere. If a period has a
public maximum of values, the largest of them count. Let s be the vector of all periods' sums.

If times are *private*, neighbouring files have the same number of rows and differ in one row: in
its value, its time or both. So one row leaves a period A, or nowhere, and enters a period B, or
nowhere. The sum of the N largest of some numbers in 0..theta falls by at most theta when one of
them is taken away, because the next largest takes its place, and grows by at most theta when one is
added, because it takes the place of the smallest that counted. So the sum of A falls by theta at
the very most, that of B grows by theta at the very most, and no other sum changes. In each layer of
a tree over the periods the two changes are in at most two nodes, and add up to 2 theta at most:
noise of rate epsilon / (2 theta h) for h layers is epsilon-private. Two periods in different trees
attain it. With *public* times only a value changes, in one period, and half of that noise is
enough.

That holds for the N largest, or for all of them, because neither depends on the order of rows. The
*first* N in the order of the file would not do: where rows are sorted by time, moving one row in
time shifts others. Leaving out a period with more than N values would not do either, as one row
decides whether that happens.

The threshold is chosen from the values of all rows (those that count nowhere as zero) with a share
of epsilon, and s is published with the rest; a choice from the first rows of the file would again
depend on their order. Proof: docs/proofs/time-grid.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sfumato.arrays import Bools, Floats, Ints
from sfumato.core.estimate import checked_level
from sfumato.errors import InputError
from sfumato.randomness import Keyed
from sfumato.streams.published.publisher import Publisher
from sfumato.streams.published.publishing_plan import PublishingPlan
from sfumato.streams.published.ranges import RangeAnswer, Released
from sfumato.streams.published.thresholds import Fixed
from sfumato.streams.published.time_grid import TimeGrid

__all__ = ["ReleasedByTime", "TimedValues", "period_sums", "publish_periods"]


@dataclass(frozen=True, eq=False)
class TimedValues:
    """The values of a file, and the period of each.

    Parameters
    ----------
    units
        The values in units; 0 for those that are in no period.
    periods
        The index of each value's period; -1 if it is in none.
    grid
        The periods.
    rows
        The number of rows in the file, which is public.

    """

    units: Ints
    periods: Ints
    grid: TimeGrid
    rows: int

    @cached_property
    def counts(self) -> Ints:
        """The number of values in each period."""
        return np.bincount(self.periods[self.periods >= 0], minlength=self.grid.periods)


def period_sums(units: Ints, periods: Ints, count: int, most: int | None = None) -> Ints:
    """Return the sum of the values of each period, or of its ``most`` largest values.

    Parameters
    ----------
    units
        The values, cut to the threshold.
    periods
        The index of each value's period; -1 if it is in none.
    count
        The number of periods.
    most
        The largest number of values of a period that count; None if all do.

    Examples
    --------
    >>> period_sums(np.array([5, 1, 4, 9, 7]), np.array([0, 0, 0, 1, -1]), 3, most=2).tolist()
    [9, 9, 0]

    """
    inside = periods >= 0
    units, periods = units[inside], periods[inside]
    if most is not None:
        order = np.lexsort((-units, periods))
        units, periods = units[order], periods[order]
        counted = np.arange(units.size) - np.searchsorted(periods, periods) < most
        units, periods = units[counted], periods[counted]
    sums = np.zeros(count, dtype=np.int64)
    np.add.at(sums, periods, units)
    return sums


def publish_periods(
    release: PublishingPlan, key: bytes, values: TimedValues, most: int | None = None
) -> ReleasedByTime:
    """Return the noisy sums of the periods of a grid, in units.

    With public times noise is drawn for periods with any value only.

    Parameters
    ----------
    release
        The plan; see :func:`sfumato.streams.published.publishing_methods.plan_periods`.
    key
        32 secret bytes, which are used for one file, and never again.
    values
        The values and their periods.
    most
        The largest number of values of a period that count, if times are private.

    """
    if values.units.size * release.bound >= 1 << 62:
        raise InputError(
            f"bound is {release.bound} units, for {values.units.size:,} rows; their sum could need "
            "more than 62 bits, so use a larger unit."
        )
    cut = release.choose(values.units, Keyed(key, "threshold"))
    sums = period_sums(np.minimum(values.units, cut), values.periods, values.grid.periods, most)
    if release.times == "public":
        sums = sums[values.counts > 0]
    known = replace(release, threshold=Fixed(cut), holdout=0)
    stream = Released(release, cut, Publisher(known, key).feed_sums(sums))
    counts = values.counts if release.times == "public" else None
    return ReleasedByTime(stream, values.grid, values.rows, counts, most)


@dataclass(frozen=True, eq=False)
class ReleasedByTime:
    """A stream that was published by time, ready for questions.

    Parameters
    ----------
    stream
        The published sums: of all periods or, if ``counts`` are known, of those with any value.
    grid
        The periods.
    rows
        The number of rows in the file, which is public.
    counts
        The number of values in each period; None if times are private.
    most
        The largest number of values of a period that count; None if all do.

    """

    stream: Released
    grid: TimeGrid
    rows: int
    counts: Ints | None = None
    most: int | None = None

    @cached_property
    def _published(self) -> Bools:
        """Which periods have a published sum."""
        return np.ones(self.grid.periods, np.bool_) if self.counts is None else self.counts > 0

    @cached_property
    def _positions(self) -> Ints:
        """The number of published sums up to each period, from none on."""
        return np.concatenate([[0], np.cumsum(self._published, dtype=np.int64)])

    @property
    def sums(self) -> Floats:
        """The published sum of each period; 0 for one that is known to have no values."""
        sums = np.zeros(self.grid.periods)
        sums[self._published] = self.stream.blocks.sums * self.stream.unit
        return sums

    def between(self, first: str, last: str, level: float = 0.95) -> RangeAnswer:
        """Return the sum from one stretch of time to another, both included.

        A stretch is a year (2026), a month (2026-03), a day (2026-03-07), or a time, which stands
        for the period that it lies in.
        """
        return self.sum(*self.grid.range_of(first, last), level)

    def sum(self, first: int, last: int, level: float = 0.95) -> RangeAnswer:
        """Return the sum from one period to another, both included and counted from 1."""
        if not 1 <= first <= last <= self.grid.periods:
            raise InputError(
                f"the range is {first}..{last}; published are the periods 1..{self.grid.periods}."
            )
        checked_level(level)
        release, count = self.stream.release, self._count(first, last)
        possible = min(self.rows, (self.most or self.rows) * (last - first + 1))
        cut_off = (release.bound - self.stream.threshold) * (possible if count is None else count)
        start, end = self._positions[[first - 1, last]].tolist()
        value = low = high = 0.0  # everybody knows of a range without values
        if start < end:
            noisy = self.stream.sum(start + 1, end, level)
            value, low, high = noisy.value, noisy.low, noisy.high
        return RangeAnswer(
            *(first, last, value, low, high, level, cut_off * self.stream.unit),
            *(self.grid.periods, self.stream.guarantee, count),
        )

    def _count(self, first: int, last: int) -> int | None:
        """Return the number of values from one period to another, if it is known."""
        return None if self.counts is None else int(self.counts[first - 1 : last].sum())
