"""The best linear unbiased estimate of a curve from observed differences: least squares on a graph.

The vertices are the periods 1..T and, before them, 0, where every curve is known to be zero. Each
group of reports is an edge: it observes x_end - x_start with some noise, and its *conductance* is
one over the variance of that noise. The variance of an estimate is then the effective resistance
between its period and 0, and the weights of the observations are potential differences.

*Smoothed* uses all edges that have ended by a given period; *online* gives each period the estimate
from the edges that had ended by then, which no later report changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.errors import ConfigurationError

__all__ = ["Fusion"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Fusion:
    """Least squares on the graph of periods.

    Parameters
    ----------
    periods
        How many periods there are.
    start, end
        Of each edge, with 0 <= start < end <= periods.
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
        """Refuse edges that lead nowhere."""
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
        """Return the covariance of x_1..x_as_of by the edges that have ended by then.

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
        """Return the weight of each edge in the estimate of each of x_1..x_as_of."""
        return self._weights(self.covariance(as_of), as_of)

    def _weights(self, covariance: Floats, as_of: int) -> Floats:
        used = np.flatnonzero((self.end <= as_of) & (self.conductance > 0))
        padded = np.zeros((len(covariance), as_of + 1))
        padded[:, 1:] = covariance
        # An unknown period has no weights at all; a known one none on edges between unknown ones.
        unknown = np.isnan(padded).all(axis=1)
        padded[~unknown] = np.nan_to_num(padded[~unknown])
        weights = np.zeros((len(covariance), self.start.size))
        drop = padded[:, self.end[used]] - padded[:, self.start[used]]
        weights[:, used] = drop * self.conductance[used]
        return weights

    # ---- period by period ------------------------------------------------------------------

    def online(self) -> Iterator[tuple[float, Floats, Ints]]:
        """Yield, for each period, the variance of its estimate by then, its weights, their edges.

        The covariance grows by one vertex and takes one update of low rank for each period. Edges
        between periods that are not yet connected with 0 wait until they are.
        """
        state = _Growing(self)
        for period in range(1, self.periods + 1):
            state.close(period)
            yield state.row(period)

    def growing(self) -> Iterator[tuple[int, Floats]]:
        """Yield each period and the covariance of x_0..x_period by the edges ended by then.

        What is yielded changes with the next period; rows of unconnected periods are zero.
        """
        state = _Growing(self)
        for period in range(1, self.periods + 1):
            state.close(period)
            yield period, state.covariance[: period + 1, : period + 1]

    @cached_property
    def _ended(self) -> list[Ints]:
        """The edges that end in each period, those with reports only."""
        order = np.argsort(self.end, kind="stable")
        order = order[self.conductance[order] > 0]
        cuts = np.searchsorted(self.end[order], np.arange(self.periods + 2))
        return [order[cuts[t] : cuts[t + 1]] for t in range(self.periods + 1)]


class _Growing:
    """The covariance of the periods that are connected with 0, as edges come in."""

    def __init__(self, fusion: Fusion) -> None:
        self.fusion = fusion
        self.covariance = np.zeros((fusion.periods + 1, fusion.periods + 1))
        self.known = np.zeros(fusion.periods + 1, dtype=bool)
        self.known[0] = True
        self.waiting: list[int] = []
        self.used: list[Ints] = []

    def close(self, period: int) -> None:
        """Take in the edges that end in a period."""
        new = self.fusion._ended[period]  # noqa: SLF001 -- two halves of one class
        if not self.waiting and new.size and bool(self.known[self.fusion.start[new]].all()):
            # The usual case: one edge brings the period in, the others agree on it.
            self._join(period, new[0])
            self._agree(new[1:], period)
            return
        self.waiting.extend(new.tolist())
        joined = True
        while joined:
            joined = False
            for edge in list(self.waiting):
                start, end = int(self.fusion.start[edge]), int(self.fusion.end[edge])
                if self.known[start] and self.known[end]:
                    self._agree(np.array([edge]), period)
                elif self.known[start] or self.known[end]:
                    self._join(start if self.known[end] else end, edge)
                else:
                    continue
                self.waiting.remove(edge)
                joined = True

    def _join(self, vertex: int, edge: int | np.int64) -> None:
        """Bring in a new vertex by the edge that ties it to a known one."""
        start, end = int(self.fusion.start[edge]), int(self.fusion.end[edge])
        other = start if vertex == end else end
        self.covariance[vertex] = self.covariance[other]
        self.covariance[:, vertex] = self.covariance[:, other]
        variance = self.covariance[other, other] + 1 / self.fusion.conductance[edge]
        self.covariance[vertex, vertex] = variance
        self.known[vertex] = True
        self.used.append(np.array([edge]))

    def _agree(self, edges: Ints, period: int) -> None:
        """Take in edges between known vertices, by one update of low rank."""
        if not edges.size:
            return
        inside = self.covariance[: period + 1, : period + 1]
        start, end = self.fusion.start[edges], self.fusion.end[edges]
        pull = inside[:, end] - inside[:, start]
        spread = pull[end] - pull[start] + np.diag(1 / self.fusion.conductance[edges])
        inside -= pull @ np.linalg.solve(spread, pull.T)
        self.used.append(edges)

    def row(self, period: int) -> tuple[float, Floats, Ints]:
        """Return variance, weights and edges of the estimate of a period."""
        if not self.known[period]:
            return np.inf, np.zeros(0), np.zeros(0, dtype=np.int64)
        self.used = [np.concatenate(self.used)]
        edges = self.used[0]
        potential = self.covariance[period]
        drop = potential[self.fusion.end[edges]] - potential[self.fusion.start[edges]]
        return float(potential[period]), drop * self.fusion.conductance[edges], edges


def _connected(periods: int, start: NDArray[Any], end: NDArray[Any]) -> Ints:
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
