"""Best linear unbiased estimates of a curve from observed differences, on a graph.

The vertices are the periods 1..T and, before them, 0, where every curve is known to be zero. Each
group of reports is an edge: it observes x_end - x_start with some noise, and its *conductance* is
one over the variance of that noise. The variance of an estimate is then the effective resistance
between its period and 0, and the weights of the observations are potential differences.

*Smoothed* uses all edges that have ended by a given period; *online* gives each period the estimate
from the edges that had ended by then, which no later report changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sfumato.arrays import Array, Floats, Ints
from sfumato.errors import ConfigurationError

__all__ = ["Fusion", "Growing"]

PENDING: Final = 128
"""The largest rank of the updates that are applied at once."""


@dataclass(frozen=True, eq=False)
class Fusion:
    """Least squares on the graph of periods.

    Parameters
    ----------
    periods
        The number of periods.
    start, end
        The start and end of each edge, with 0 <= start < end <= periods.
    conductance
        One over the variance of each edge's observation; zero if nobody reported.

    Examples
    --------
    Two observations of the first period and one of its change to the second:

    >>> start, end = np.array([0, 0, 1]), np.array([1, 1, 2])
    >>> fusion = Fusion(2, start, end, np.array([1.0, 3.0, 0.5]))
    >>> fusion.weights(as_of=2).round(2).tolist()
    [[0.25, 0.75, 0.0], [0.25, 0.75, 1.0]]
    >>> fusion.covariance(as_of=2).round(2).tolist()
    [[0.25, 0.25], [0.25, 2.25]]

    """

    periods: int
    start: Ints
    end: Ints
    conductance: Floats

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless all edges are valid."""
        if not self.start.shape == self.end.shape == self.conductance.shape:
            raise ConfigurationError(
                f"start, end and conductance have shapes {self.start.shape}, {self.end.shape} and "
                f"{self.conductance.shape}; one of each for every edge is expected."
            )
        wrong = (self.start < 0) | (self.start >= self.end) | (self.end > self.periods)
        if wrong.any():
            edge = int(np.argmax(wrong))
            raise ConfigurationError(
                f"edge {edge} leads from {self.start[edge]} to {self.end[edge]}; "
                f"0 <= start < end <= {self.periods} is expected."
            )

    # ---- all at once -----------------------------------------------------------------------

    def covariance(self, as_of: int) -> Floats:
        """Return the covariance of x_1..x_as_of from the edges that have ended by then.

        Rows and columns of periods that no chain of edges connects with 0 are nan.
        """
        used = np.flatnonzero((self.end <= as_of) & (self.conductance > 0))
        start, end, weight = self.start[used], self.end[used], self.conductance[used]
        laplacian = np.zeros((as_of + 1, as_of + 1))
        np.add.at(laplacian, (start, start), weight)
        np.add.at(laplacian, (end, end), weight)
        np.add.at(laplacian, (start, end), -weight)
        np.add.at(laplacian, (end, start), -weight)
        known = _connected(as_of, start, end)
        full = np.full((as_of, as_of), np.nan)
        inside = np.ix_(known - 1, known - 1)
        full[inside] = np.linalg.inv(laplacian[1:, 1:][inside])
        return full

    def weights(self, as_of: int) -> Floats:
        """Return the weight of each edge in the estimate of each of x_1..x_as_of.

        A period that no chain of edges connects with 0 has weights nan.
        """
        covariance = self.covariance(as_of)
        used = (self.end <= as_of) & (self.conductance > 0)
        potential = np.zeros((as_of, as_of + 1))
        potential[:, 1:] = np.nan_to_num(covariance)
        weights = np.take(potential, np.where(used, self.end, 0), axis=1)
        weights -= np.take(potential, np.where(used, self.start, 0), axis=1)
        weights *= np.where(used, self.conductance, 0.0)
        weights[np.isnan(covariance.diagonal())] = np.nan
        return weights

    # ---- period by period ------------------------------------------------------------------

    def growing(self, longest: int | None = None) -> Iterator[Growing]:
        """Yield the state of the estimate after each period, when its edges have been added.

        ``longest`` is the number of periods that the longest edge between periods spans, if the
        covariance of earlier periods is not needed.
        """
        order = np.argsort(self.end, kind="stable")
        cuts = np.searchsorted(self.end[order], np.arange(1, self.periods + 2))
        state = Growing(self.periods, longest)
        for period in range(1, self.periods + 1):
            edges = order[cuts[period - 1] : cuts[period]]
            state.close(edges, self.start[edges], self.end[edges], self.conductance[edges])
            yield state

    def online(self, longest: int | None = None) -> Floats:
        """Return the weight of each edge in the estimate of each period at its closing."""
        weights = np.zeros((self.periods, self.start.size))
        for row, (edges, own) in zip(weights, self.rows(longest), strict=True):
            row[edges] = own
            if not edges.size:
                row[:] = np.nan
        return weights

    def rows(self, longest: int | None = None) -> Iterator[tuple[Ints, Floats]]:
        """Yield the same row by row: the edges that a period uses, in rising order, and weights.

        A period of which nothing is known uses none.
        """
        for state in self.growing(longest):
            edges, row = state.weights()
            order = np.argsort(edges, kind="stable")
            yield edges[order], row[order]


class Growing:
    """The covariance of all periods so far, updated as periods close.

    In each period it grows by one vertex and gets one update of low rank. Updates are kept as they
    are, and many are applied at once: most periods need a few rows of the covariance only. Edges
    between periods that are not yet connected with 0 wait until they are.

    Parameters
    ----------
    periods
        The number of periods.
    longest
        The number of periods that the longest edge between periods spans. No edge of a later period
        reaches farther back, so that rows of earlier ones are left as they are; by default all rows
        are kept up to date.

    """

    def __init__(self, periods: int, longest: int | None = None) -> None:
        self.period = 0
        self._longest = periods if longest is None else longest
        self.known = np.zeros(periods + 1, dtype=bool)
        self.known[0] = True
        # The covariance is `applied` minus the sum of the outer products of `left` and `right`.
        self._applied = np.zeros((periods + 1, periods + 1))
        self._left, self._right = np.zeros((2, PENDING, periods + 1))
        self._pending = 0
        self._edges = _NamedEdges()
        self._waiting = _NamedEdges()

    @property
    def covariance(self) -> Floats:
        """The covariance of x_0..x_period; rows of unconnected periods are zero.

        If a longest edge was named, rows of earlier periods than it reaches are not up to date.
        """
        self._apply()
        return self._applied[: self.period + 1, : self.period + 1]

    @property
    def variance(self) -> float:
        """The variance of the last period; zero if it is not connected."""
        return float(self._rows(np.array([self.period]))[0, self.period])

    def _apply(self) -> None:
        """Apply the updates that are pending."""
        size, pending = self.period + 1, slice(self._pending)
        # Edges that wait may begin anywhere.
        first = 0 if self._waiting.size else max(self.period - self._longest, 0)
        if self._pending:
            product = self._left[pending, first:size].T @ self._right[pending, :size]
            self._applied[first:size, :size] -= product
            self._left[pending] = self._right[pending] = 0
            self._pending = 0

    def _rows(self, vertices: Ints) -> Floats:
        """Return some rows of the covariance."""
        size, pending = self.period + 1, slice(self._pending)
        updates = self._left[pending, vertices].T @ self._right[pending, :size]
        return np.asarray(self._applied[vertices, :size] - updates)

    def close(self, names: Ints, start: Ints, end: Ints, conductance: Floats) -> None:
        """Close the next period with the edges that end in it, which are identified by names."""
        self.period += 1
        there = conductance > 0
        new = _NamedEdges(names[there], start[there], end[there], conductance[there])
        if not self._waiting.size and new.size and bool(self.known[new.start].all()):
            # The usual case: one edge connects the period, and the others update the estimate.
            self._join(self.period, new[:1])
            self._agree(new[1:])
            return
        self._waiting += new
        while (index := self._next(self._waiting)) is not None:
            edge = self._waiting[index : index + 1]
            if self.known[edge.start[0]] and self.known[edge.end[0]]:
                self._agree(edge)
            else:
                known = bool(self.known[edge.end[0]])
                self._join(int(edge.start[0] if known else edge.end[0]), edge)
            self._waiting = self._waiting[:index] + self._waiting[index + 1 :]

    def _next(self, waiting: _NamedEdges) -> int | None:
        tied = np.flatnonzero(self.known[waiting.start] | self.known[waiting.end])
        return int(tied[0]) if tied.size else None

    def _join(self, vertex: int, edge: _NamedEdges) -> None:
        """Add a new vertex by the edge that connects it to a known one."""
        start, end = int(edge.start[0]), int(edge.end[0])
        other = start if vertex == end else end
        for updates in (self._left, self._right):
            updates[:, vertex] = updates[:, other]
        size = self.period + 1
        inside = self._applied[:size, :size]
        inside[vertex] = inside[other]
        inside[:, vertex] = inside[:, other]
        inside[vertex, vertex] = inside[other, other] + 1 / edge.conductance[0]
        self.known[vertex] = True
        self._edges += edge

    def _agree(self, edges: _NamedEdges) -> None:
        """Add edges between known vertices, by one update of low rank."""
        for first in range(0, edges.size, PENDING):
            self._agree_at_once(edges[first : first + PENDING])

    def _agree_at_once(self, edges: _NamedEdges) -> None:
        if self._pending + edges.size > PENDING:
            self._apply()
        pull = self._rows(edges.end) - self._rows(edges.start)
        spread = pull[:, edges.end] - pull[:, edges.start] + np.diag(1 / edges.conductance)
        new = slice(self._pending, self._pending + edges.size)
        self._left[new, : self.period + 1] = pull
        self._right[new, : self.period + 1] = np.linalg.solve(spread, pull)
        self._pending = new.stop
        self._edges += edges

    def weights(self) -> tuple[Ints, Floats]:
        """Return the edges in the estimate of the last period, and their weights."""
        if not self.known[self.period]:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        edges = self._edges
        (potential,) = self._rows(np.array([self.period]))
        drop = potential[edges.end] - potential[edges.start]
        return edges.names, drop * edges.conductance


@dataclass(frozen=True, eq=False)
class _NamedEdges:
    """Some edges with their names."""

    names: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    start: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    end: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    conductance: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def size(self) -> int:
        return self.names.size

    def __getitem__(self, index: slice) -> _NamedEdges:
        return _NamedEdges(
            self.names[index], self.start[index], self.end[index], self.conductance[index]
        )

    def __add__(self, other: _NamedEdges) -> _NamedEdges:
        return _NamedEdges(
            np.concatenate([self.names, other.names]),
            np.concatenate([self.start, other.start]),
            np.concatenate([self.end, other.end]),
            np.concatenate([self.conductance, other.conductance]),
        )


def _connected(periods: int, start: Array, end: Array) -> Ints:
    """Return the periods that a chain of edges connects with 0."""
    known = np.zeros(periods + 1, dtype=bool)
    known[0] = True
    while True:
        grown = known.copy()
        grown[end[known[start]]] = True
        grown[start[known[end]]] = True
        if np.array_equal(grown, known):
            return np.flatnonzero(known)[1:]
        known = grown
