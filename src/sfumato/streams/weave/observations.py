"""Debiased observations of differences from tallies, with variances from their own moments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.core.computed import Computed
from sfumato.core.tally import ENROLMENT, Tallies, Tally
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.streams.snapshots import Snapshot
from sfumato.streams.weave.enrolled import SHAPE
from sfumato.streams.weave.threads import SNAPSHOT, Thread
from sfumato.streams.weave.working import Working

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.weave import Weave

__all__ = [
    "Observations",
    "Reader",
    "Turnout",
    "about_values",
    "grown",
    "in_range",
    "observations",
    "refuse_strangers",
    "taken_together",
    "weighted",
]


POOLED: Final = 100
"""The number of reports that the average of a span counts for in an edge's second moments."""
AT_ONCE: Final = 1 << 15
"""The number of variances that are computed together, so that they stay near the processor."""


@dataclass(frozen=True, eq=False)
class Observations:
    """The observed edges of one block of entries.

    Parameters
    ----------
    start, end, span, thread
        The start, end, span and thread of each edge; threads as indices.
    n
        The number of reports of each edge.
    value
        The observed mean difference of each entry.
    noise
        The variance of each observation, from the reports' own second moments.
    working
        The variance of one report that the weights assume: the planned one, or the one learnt from
        earlier periods (:mod:`sfumato.streams.weave.working`).

    """

    start: Ints
    end: Ints
    span: Ints
    thread: Ints
    n: Ints
    value: Floats
    noise: Floats
    working: Floats

    @Computed
    def pull(self) -> Floats:
        """The factors of the covariance of two edges of one thread; see :func:`taken_together`."""
        return np.asarray(self.value / np.sqrt(self.n)[:, None])

    def settled(self, look: Snapshot, curve: Floats) -> Observations:
        """Return the same edges, with the noise of snapshots computed from a curve's shares."""
        known = (self.span == SNAPSHOT) & (self.end <= len(curve))
        rows = np.flatnonzero(known)
        shares = curve[self.end[rows] - 1]
        rows, shares = rows[~np.isnan(shares[:, 0])], shares[~np.isnan(shares[:, 0])]
        noise = self.noise.copy()
        noise[rows] = look.variance_at_share(in_range(shares)) / self.n[rows, None]
        return replace(self, noise=noise)

    def only(self, column: int) -> Observations:
        """Return the same edges, observed of one entry alone."""
        one = slice(column, column + 1)
        return replace(self, value=self.value[:, one], noise=self.noise[:, one])

    def variances(self, weights: Floats, *, final: bool = False) -> Floats:
        """Return the variances of weighted sums of the edges, one for each row; nan if unknown.

        If ``final``, or if there is a single row, each row only uses its own edges, bit by bit.
        """
        final = final or len(weights) == 1
        variances = weighted(weights**2, self.noise, final=final)
        order, cuts = _grouped(self.thread)
        threads = [own for own in np.split(order, cuts[1:]) if own.size > 1]
        if final:
            each = max(1, AT_ONCE // max(self.value.shape[1], 1))
            for first in range(0, len(weights), each):
                rows = slice(first, first + each)
                variances[rows] -= taken_together(weights[rows], threads, self.pull)
            return variances
        for own in threads:
            parts, pull = weights[:, own], self.pull[own]
            variances -= (parts @ pull) ** 2 - parts**2 @ pull**2
        return variances

    def covariance(self, weights: Floats, entry: int) -> Floats:
        """Return the covariance of weighted sums of the edges, for one entry."""
        pull = self.pull[:, entry]
        order, cuts = _grouped(self.thread)
        together = np.add.reduceat(weights[:, order] * pull[order], cuts, axis=1)
        return np.asarray(
            (weights * (self.noise[:, entry] + pull**2)) @ weights.T - together @ together.T
        )


def observations(protocol: Weave, tallies: Tallies[Any], block: int = 0) -> Observations:
    """Return the observations of a block from tallies keyed by (span, period, block).

    Edges are sorted by their ends. Few reports tell little about their own variance, so the second
    moment of a difference is averaged with earlier ones of its span, and these with the planned
    one, with the weight of some further reports; nothing that comes later changes it. A block of
    which no device has reported yet has no edges.
    """
    reader = Reader(protocol, block)
    edges = sorted(
        (end, thread, start, number)
        for number, (thread, _) in enumerate(protocol.threads())
        if not thread.is_snapshot or thread.block == block
        for start, end in protocol.edges(thread)
    )
    rows = []
    for end, thread, start, number in edges:
        tally = tallies.get((thread.span, end, thread.block))
        if tally is not None and tally.n:
            rows.append((start, end, thread.span, number, tally.n, *reader.read(thread, tally)))
    edge = np.array([row[:5] for row in rows], dtype=np.int64).reshape(len(rows), 5).T
    entries = protocol.values.blocks[block]
    wide = len(rows), entries.stop - entries.start
    value, noise = (np.array([row[column] for row in rows]).reshape(wide) for column in (5, 6))
    working = np.array([row[7] for row in rows], dtype=np.float64)
    return Observations(edge[0], edge[1], edge[2], edge[3], edge[4], value, noise, working)


def taken_together(weights: Floats, threads: Sequence[Ints], pull: Floats) -> Floats:
    """Return the reduction of variances of weighted sums by several reports of one device.

    The reports of a device on two of its differences have a covariance of two parts: k E[d d'],
    with k near 0 if epsilon is large, and - E[d] E[d'], because a device that changed in one of
    them hardly changed in the other. The first is left out, because if k is not near 0 the noise of
    each report is far larger. The second is computed from the edges' own observations.

    Edges are added one after the other, so that edges of weight zero change no bit of a sum.

    Parameters
    ----------
    weights
        The weight of each edge in each sum, one row for each sum.
    threads
        The indices of the edges of each thread, in the order in which they end.
    pull
        The observed means of the edges, divided by the square root of their numbers of reports.

    """
    reduction = np.zeros((len(weights), pull.shape[1]))
    columns = np.ascontiguousarray(weights.T)
    begins = (weights != 0).argmax(axis=0)  # the first sum that has the edge
    for own in threads:
        together, squares = np.zeros((2, *reduction.shape))
        for edge, first in zip(own, begins[own], strict=True):
            term = columns[edge, first:, None] * pull[edge]
            together[first:] += term
            squares[first:] += term**2
        reduction += together**2 - squares
    return reduction


def _grouped(thread: Ints) -> tuple[Ints, Ints]:
    """Return the indices of edges sorted by thread, and the start of each thread."""
    order = np.argsort(thread, kind="stable")
    return order, np.flatnonzero(np.diff(thread[order], prepend=-1))


def weighted(weights: Floats, terms: Floats, *, final: bool) -> Floats:
    """Return weights @ terms; if ``final``, each row only uses its own terms, bit by bit.

    A longer sum may be added in another order, even if its further terms have weight zero. Without
    any terms nothing is known, and all sums are nan.
    """
    if not len(terms):
        return np.full((len(weights), *terms.shape[1:]), np.nan)
    if not final:
        return weights @ terms
    return np.array(
        [row[used] @ terms[used] for row, used in zip(weights, _used(weights), strict=True)]
    )


def _used(weights: Floats) -> Iterator[Ints | slice]:
    """Yield the terms of each row; as a slice, which copies nothing, if they are the first."""
    for row in weights:
        used = np.flatnonzero(row)
        yield slice(used.size) if used.size and used[-1] < used.size else used


def in_range(values: Floats) -> Floats:
    """Return shares clipped to 0..1."""
    return np.asarray(np.clip(values, 0.0, 1.0))


def grown(enrolled: Sequence[int] | None, periods: int) -> Floats:
    """Return the number of devices in each period, divided by that of the first period.

    Devices may join late but never leave; the last value of an absent device counts. ``enrolled``
    is None if all take part from the first period on; later periods have as many devices as the
    last one given.
    """
    if enrolled is None:
        return np.ones(periods)
    counts = np.array([*enrolled, *[0] * max(1 - len(enrolled), 0)], dtype=np.float64)
    if len(enrolled) > periods or counts[0] < 1 or (np.diff(counts) < 0).any():
        raise ConfigurationError(
            f"enrolled is {list(enrolled)}; devices in each of up to {periods} periods, never "
            "fewer than before, are expected."
        )
    later = np.full(periods - len(counts), counts[-1])
    return np.asarray(np.concatenate([counts, later]) / counts[0])


def refuse_strangers(protocol: Weave, tallies: Tallies[Any], period: int | None = None) -> None:
    """Raise MismatchError unless every tally is due (in a period) and has the right shape."""
    for key, tally in tallies.items():
        shape = _shape(protocol, key, period)
        if shape is None:
            when = "over the horizon" if period is None else f"in period {period}"
            raise MismatchError(f"tallies has {key!r}; no report of that kind is due {when}.")
        if tally.sums.shape != shape:
            raise MismatchError(
                f"the tally of {key!r} has shape {tally.sums.shape}; {shape} is expected."
            )


def _shape(protocol: Weave, key: Any, period: int | None) -> tuple[int, ...] | None:
    """Return the shape of the tally of a span, period and block; None if none is due."""
    if not (isinstance(key, tuple) and len(key) == 3) or period not in (None, key[1]):
        return None
    span, end, block = key
    if span == ENROLMENT and protocol.enrols:
        return SHAPE if 1 <= end <= protocol.periods and block == 0 else None
    if span not in protocol.spans or end not in range(1, protocol.periods + 1):
        return None
    if span == SNAPSHOT:
        blocks = range(len(protocol.snapshots))
        return protocol.snapshots[block].mechanism.tally_shape if block in blocks else None
    thread = Thread(span, end % span)
    due = end % span in protocol.offsets(span) and end >= thread.first + span * protocol.anchored
    return (2, protocol.values.width) if due and block == 0 else None


class Reader:
    """Converts tallies to observations, in the order in which their periods close."""

    def __init__(self, protocol: Weave, block: int) -> None:
        self._protocol = protocol
        self._block = block
        self._entries = protocol.values.blocks[block]
        self._pools: dict[int, tuple[float, Floats]] = {}
        self._working = Working(protocol.snapshots[block], protocol.weights)

    def read(self, thread: Thread, tally: Tally) -> tuple[Floats, Floats, float]:
        """Return each entry's mean difference, its variance, and the working variance of a report.

        The working variance only uses earlier periods, because no two edges of a span end in one
        period.
        """
        if thread.span == SNAPSHOT:
            look = self._protocol.snapshots[self._block]
            value = look.read(tally)
            working = self._working.of_look()
            self._working.take_look(tally.n, value)
            return value, look.variance_at_share(in_range(value)) / tally.n, working
        strand = self._protocol.strand(thread)
        plus, minus = tally.sums[:, self._entries] / tally.n
        value = (plus - minus) / strand.contrast
        # In units of the planned moment, because threads of one span may differ slightly in their
        # mechanisms.
        moment = (plus + minus) / strand.contrast**2 / strand.variance
        leaned = self._leaned(thread.span, tally.n, moment, 1.0) * strand.variance
        square = np.clip(value**2 - leaned / tally.n, 0.0, 1.0)
        working = self._working.of_difference(thread.span, strand.variance)
        spread = float(moment.mean() - (value**2).mean() / strand.variance)
        self._working.take_difference(thread.span, tally.n, spread)
        return value, (leaned - square) / tally.n, working

    def _leaned(self, span: int, n: int, moment: Floats, planned: float) -> Floats:
        weight, total = self._pools.get(span, (POOLED, np.full(moment.shape, POOLED * planned)))
        weight, total = weight + n, total + n * moment
        self._pools[span] = (weight, total)
        return np.asarray((n * moment + POOLED * total / weight) / (n + POOLED))


def about_values(protocol: Weave, tallies: Mapping[Any, Tally]) -> float:
    """Return the number of reports about values, on average if there are dummies among them."""
    whole = 0.0
    for (span, end, block), tally in tallies.items():
        thread = Thread(span, end if span == SNAPSHOT else end % span, block)
        whole += tally.n * protocol.about_values(thread)
    return whole


class Turnout:
    """Estimates the number of devices behind the reports so far, from threads' public shares."""

    def __init__(self, protocol: Weave) -> None:
        self._shares: dict[Any, float] = {}
        for thread, share in protocol.threads():
            for _, end in protocol.edges(thread):
                self._shares[thread.span, end, thread.block] = share
        self._n, self._share = 0, 0.0

    def close(self, tallies: Mapping[Any, Tally]) -> float:
        """Add the reports of a period; return the estimated number of devices."""
        for key in sorted(key for key, tally in tallies.items() if tally.n):
            self._n += tallies[key].n
            self._share += self._shares[key]
        return self._n / self._share if self._share else np.inf
