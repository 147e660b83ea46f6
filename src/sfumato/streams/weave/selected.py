"""Selected queries of a long horizon, which stand for all of them.

The variance of an answer hardly changes from one period to the next, except where the first reports
of a span begin or end. So a few last periods, dense at first and in even ratios later, represent
all: in between, variances are interpolated by cubics of the logarithm that never cross such an end.
That of a sum over a range is as smooth in its length, so that few ranges represent all that end in
one period.

In an aligned hierarchy the variance jumps from one period to the next instead, so that queries of
periods that are spread evenly stand for all, with errors of a few percent.

The potential of a query solves the least squares of all reports that have ended by its last period.
Conjugate gradients find it in about ten rounds, because a horizon without ends would be solved by
a Fourier transform. They use the one of periods that are reflected at the last one, and with the
opposite sign before the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from sfumato.arrays import Array, Floats, Ints

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.mix import Network

__all__ = ["Queries", "Selected", "last_periods", "periods_of_all", "queries_of"]

FIRST: Final = 16
"""The first periods, all of which are selected."""
RATIO: Final = 1.15
"""The largest ratio of a selected period to the one before, among the later ones."""
WIDE: Final = 1.4
"""The same where each selected period needs the reports of all."""
SPREAD: Final = 96
"""The number of evenly spread periods that stand for all of an aligned hierarchy."""
SPREAD_RANGES: Final = 8
"""The number of evenly spread lengths of ranges that end in each of them."""
RANGES: Final = 20
"""The number of lengths that stand for those of all ranges that end in one period."""
EXACT: Final = 1e-5
"""The residual, relative to the query, at which a potential counts as solved."""
TINY: Final = 1e-300
"""What is divided by where nothing is left of a residual."""
TOGETHER: Final = 1 << 15
"""The number of periods of queries that are solved together: they fit into the caches."""


class Queries(NamedTuple):
    """Selected queries: each adds up the periods from ``first`` to ``last``."""

    first: Ints
    last: Ints
    length: Ints
    """The last period of the reports that answer it."""
    weight: Floats
    """The share of all queries that each represents."""

    def part(self, rows: Ints) -> Queries:
        """Return some of the queries."""
        return Queries(self.first[rows], self.last[rows], self.length[rows], self.weight[rows])


class Selected:
    """The least squares of selected queries, each of the reports that have ended by some period.

    Parameters
    ----------
    network
        The graph of reports. All edges of a span that do not start at 0 have its length.
    queries
        The selected queries.

    """

    def __init__(self, network: Network, queries: Queries) -> None:
        # The conductance of each span's edges that end in a period: to the period it reaches back
        # to, and to the empty state.
        joint, empty = np.zeros((2, len(network.spans), network.periods))
        at_zero = network.start == 0
        for table, those in ((joint, ~at_zero), (empty, at_zero)):
            np.add.at(table, (network.span[those], network.end[those] - 1), network.unit[those])
        self._joint, self._empty = joint, empty
        differences = joint.any(axis=1)
        if network.aligned:  # only some periods end a span
            self._typical = np.where(differences, joint.mean(axis=1), empty.mean(axis=1))
        else:
            self._typical = np.where(differences, joint.max(axis=1), empty.max(axis=1))
        order = np.argsort(queries.length, kind="stable")
        cuts = np.flatnonzero(np.diff(np.cumsum(queries.length[order]) // TOGETHER)) + 1
        waves = {
            room: _Waves(room, network.spans) for room in set(map(_room, queries.length.tolist()))
        }
        self._groups = [
            _Together(network.spans, queries.part(rows), waves) for rows in np.split(order, cuts)
        ]

    def parts(self, shares: Floats) -> Floats:
        """Return each span's part of the average variance, infinite if a period is unknown."""
        if not ((self._joint + self._empty).T @ shares > 0).all():
            return np.full(shares.size, np.inf)
        typical = self._typical * shares
        total = sum(
            group.parts(self._joint, self._empty, shares, typical) for group in self._groups
        )
        return np.asarray(shares * total)


class _Together:
    """Queries that are solved together.

    Parameters
    ----------
    spans
        The spans of the reports.
    queries
        The queries.
    waves
        The waves of each room.

    """

    def __init__(self, spans: Sequence[int], queries: Queries, waves: Mapping[int, _Waves]) -> None:
        self._queries, self._spans = queries, spans
        self._lengths = queries.length
        # Queries of similar lengths are transformed together, each from its last period back.
        rooms = [_room(length) for length in self._lengths.tolist()]
        begin = np.cumsum([0, *rooms])
        backwards = [np.arange(length)[::-1] for length in self._lengths]
        self._places = np.concatenate([a + b for a, b in zip(begin, backwards, strict=False)])
        self._waves = [waves[room] for room in dict.fromkeys(rooms)]
        self._sizes = [room * rooms.count(room) for room in dict.fromkeys(rooms)]

    def parts(self, joint: Floats, empty: Floats, shares: Floats, typical: Floats) -> Floats:
        """Return each span's part of the weighted sum of variances, for a single device on it.

        Parameters
        ----------
        joint, empty
            The conductances of all edges, by span and last period.
        shares
            The shares of the spans.
        typical
            The usual conductance of each span.

        """
        joint, empty = (
            np.concatenate([table[:, :length] for length in self._lengths], axis=1)
            for table in (joint, empty)
        )
        period = np.concatenate([np.arange(1, length + 1) for length in self._lengths])
        first, last = self._repeated(self._queries.first), self._repeated(self._queries.last)
        query = (first <= period) & (period <= last)
        conductances = [
            (span, row[span:] * share)
            for span, row, share in zip(self._spans, joint, shares, strict=True)
            if row.any()
        ]
        spectra = [typical @ waves.responses for waves in self._waves]
        potential = self._solved(query.astype(np.float64), conductances, shares @ empty, spectra)
        weights = self._repeated(self._queries.weight)
        parts = empty @ (weights * potential**2)
        for index, (span, row) in enumerate(zip(self._spans, joint, strict=True)):
            if row.any():
                drop = potential[span:] - potential[:-span]
                parts[index] += float((row[span:] * weights[span:] * drop**2).sum())
        return parts

    def _solved(
        self,
        query: Floats,
        joint: Sequence[tuple[int, Floats]],
        empty: Floats,
        spectra: Sequence[Floats],
    ) -> Floats:
        """Return the potential of a query, by preconditioned conjugate gradients."""
        potential, residual = np.zeros(query.size), query
        start = self._reflected(residual, spectra)
        step, size = start, self._of_each(residual * start)
        enough = EXACT**2 * size
        while (size > enough).any():
            current = _current(step, joint, empty)
            along = self._repeated(size / np.maximum(self._of_each(step * current), TINY))
            potential += along * step
            residual = residual - along * current
            start = self._reflected(residual, spectra)
            before, size = size, self._of_each(residual * start)
            step = start + self._repeated(size / np.maximum(before, TINY)) * step
        return potential

    def _of_each(self, numbers: Floats) -> Floats:
        """Return the sum of the numbers of each query."""
        return np.add.reduceat(numbers, np.cumsum(self._lengths) - self._lengths)

    def _repeated(self, numbers: Array) -> Array:
        """Return the number of a query for each of its periods."""
        return np.repeat(numbers, self._lengths)

    def _reflected(self, current: Floats, spectra: Sequence[Floats]) -> Floats:
        """Return the potential of a current if the periods went on as their own reflections."""
        whole = np.zeros(sum(self._sizes))
        whole[self._places] = current
        first = 0
        for waves, size, spectrum in zip(self._waves, self._sizes, spectra, strict=True):
            part = whole[first : first + size].reshape(-1, spectrum.size)
            part[:] = waves.transformed(waves.transformed(part) / spectrum)
            first += size
        return np.asarray(whole[self._places])


class _Waves:
    """Cosines that are even at their start and odd at their end, for rows of one length.

    Parameters
    ----------
    length
        The length of a row, which is even.
    spans
        The spans whose responses to each wave are wanted.

    """

    def __init__(self, length: int, spans: Sequence[int]) -> None:
        angles = np.pi * (np.arange(length) + 0.5) / length
        self.responses = np.array(
            [2 - 2 * np.cos(span * angles) if span else np.ones(length) for span in spans]
        )
        self._twist = np.exp(-1j * np.pi * (np.arange(length // 2) + 1 / 8) / length)
        self._twist *= (2 / length) ** 0.25

    def transformed(self, rows: Floats) -> Floats:
        """Return the waves of each row, or rows from their waves (a cosine transform, type IV)."""
        waves = np.fft.fft((rows[:, ::2] + 1j * rows[:, ::-2]) * self._twist) * self._twist
        result = np.empty(rows.shape)
        result[:, ::2] = waves.real
        result[:, ::-2] = -waves.imag
        return result


def _room(length: int) -> int:
    """Return the next power of two, or three times one, from a length on and not below 6."""
    power = 1 << max(3, (length - 1).bit_length())
    return power if length > power * 3 // 4 else power * 3 // 4


def _current(potential: Floats, joint: Sequence[tuple[int, Floats]], empty: Floats) -> Floats:
    """Return the current that leaves each period."""
    current = empty * potential
    for span, conductance in joint:
        along = potential[span:] - potential[:-span]
        along *= conductance
        current[span:] += along
        current[:-span] -= along
    return current


def queries_of(
    workload: str, periods: int, spans: Sequence[int], *, aligned: bool = False
) -> Queries:
    """Return the selected queries of a workload.

    Examples
    --------
    >>> ranges = queries_of("ranges", 298, [1, 16, 0])
    >>> mean_length = ranges.weight @ (ranges.last - ranges.first + 1)
    >>> len(ranges.first), f"{mean_length:.2f}"  # of 44,551 ranges with 100 periods on average
    (556, '99.99')

    """
    if workload == "ranges":
        return _ranges(periods, spans, aligned=aligned)
    if aligned:
        chosen, weights = _spread(periods, SPREAD)
    elif workload == "history":
        chosen, weights = periods_of_all(periods, spans)
    else:
        chosen, weights = last_periods(periods, spans)
    first = np.ones_like(chosen) if workload == "prefix" else chosen
    length = np.full_like(chosen, periods) if workload == "history" else chosen
    return Queries(first, chosen, length, weights)


def _ranges(periods: int, spans: Sequence[int], *, aligned: bool) -> Queries:
    """Return ranges of few lengths that end in few periods; more of all end in later ones."""
    columns: list[tuple[Ints, Ints, Floats]] = []
    lasts = _spread(periods, SPREAD) if aligned else last_periods(periods, spans)
    for last, share in zip(*lasts, strict=True):
        if aligned:
            lengths, stand_for = _spread(last, SPREAD_RANGES)
            stand_for *= last
        else:  # the closer to either end, the denser
            even = np.arange(min(RANGES, last)) / max(1, min(RANGES, last) - 1)
            steps = (last - 1) * np.sin(np.pi / 2 * even) ** 2
            lengths = np.unique(np.round(1 + steps).astype(np.int64))
            stand_for = _represented(lengths)
        weights = stand_for * share * 2 / (periods + 1)
        columns.append((last - lengths + 1, np.full_like(lengths, last), weights))
    first, ends, weights = (np.concatenate(column) for column in zip(*columns, strict=True))
    return Queries(first, ends, ends, weights)


def _spread(periods: int, count: int) -> tuple[Ints, Floats]:
    """Return periods in even distances, each shifted by the golden ratio, and their shares."""
    count = min(count, periods)
    shifts = (np.arange(count) * (np.sqrt(5) - 1) / 2 + 0.5) % 1 if count < periods else 0.0
    chosen = np.floor((np.arange(count) + shifts) * periods / count).astype(np.int64) + 1
    return chosen, np.full(count, 1 / count)


def last_periods(periods: int, spans: Sequence[int], ratio: float = RATIO) -> tuple[Ints, Floats]:
    """Return the selected periods, and the share of all periods that each represents.

    Examples
    --------
    >>> last_periods(64, [1, 4, 16, 0])[0].tolist()[14:]
    [15, 16, 17, 19, 21, 24, 26, 30, 33, 37, 41, 46, 51, 57, 64]

    """
    ends = sorted({FIRST, periods, *(span for span in spans if FIRST < span < periods)})
    chosen = list(range(1, FIRST + 1))
    shares = [1.0] * FIRST
    for before, end in pairwise(ends):
        first = before + 1
        count = 4 + int(np.log(end / first) / np.log(ratio))
        some = np.unique(np.round(np.geomspace(first, end, count)).astype(np.int64))
        chosen += some.tolist()
        shares += _represented(some).tolist()
    return np.array(chosen), np.array(shares) / periods


def periods_of_all(periods: int, spans: Sequence[int]) -> tuple[Ints, Floats]:
    """Return the same for periods whose reports have all ended: dense at both ends.

    Examples
    --------
    >>> periods_of_all(140, [1, 4, 16, 0])[0].tolist()[14:-14]
    [15, 16, 17, 21, 25, 31, 38, 47, 57, 70, 71, 84, 94, 103, 110, 116, 120, 124, 125, 126]

    """
    first, before = last_periods((periods + 1) // 2, spans, WIDE)
    last, after = last_periods(periods // 2, spans, WIDE)
    chosen = np.concatenate([first, periods + 1 - last[::-1]])
    shares = np.concatenate([before * ((periods + 1) // 2), (after * (periods // 2))[::-1]])
    return chosen, shares / periods


def _represented(chosen: Ints) -> Floats:
    """Return for how many of the periods from the first to the last each of them stands."""
    periods = np.arange(chosen[0], chosen[-1] + 1)
    order = min(4, chosen.size)
    near = np.clip(np.searchsorted(chosen, periods, side="right") - 2, 0, chosen.size - order)
    nodes = near[:, None] + np.arange(order)
    points, knots = np.log(periods)[:, None], np.log(chosen)[nodes]
    total = np.zeros(chosen.size)
    for index in range(order):
        others = np.delete(knots, index, axis=1)
        cubic = np.prod((points - others) / (knots[:, [index]] - others), axis=1)
        np.add.at(total, nodes[:, index], cubic)
    return total
