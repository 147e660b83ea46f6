"""Simulated devices of Flat, some thousands at a time, as tallies of what they send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array
from sfumato.core.fleet import Fleet, Population
from sfumato.core.stream import Place, Question
from sfumato.core.tally import Tallies, Tally
from sfumato.mechanisms.sparse.subset.chaffed_vectors import ChaffedVectors
from sfumato.randomness import Source

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.flat.flat import Flat

__all__ = ["FlatFleet", "told"]


class FlatFleet(Fleet):
    """Simulated devices whose moves of all periods are randomized at once.

    Parameters
    ----------
    stream
        The stream.
    population
        The moves of each device.
    rng
        The source of all devices' coins.

    """

    def __init__(self, stream: Flat, population: Population, rng: Source) -> None:
        moves = population.streams().astype(np.int8)
        seen = told(moves, stream.changes)
        self._span = stream.tracks[0][0]
        self._totals = moves.sum(axis=0, dtype=np.int64)
        self._seen = seen.sum(axis=0, dtype=np.int64)
        mechanism = stream.strand.mechanism
        tally = mechanism.tally(mechanism.randomize(seen.reshape(len(seen), -1), rng))
        self._n, sums = tally.n, tally.sums[:2]
        message = stream.message()
        if isinstance(message, ChaffedVectors):
            symbols = message.dummies(tally.n, rng)
            drawn = np.bincount(symbols, minlength=2 * mechanism.padded_dimension)
            sums = sums + drawn.reshape(-1, 2).T[:, : sums.shape[1]]
            self._n += len(symbols)  # each dummy sends in every period, and so does each signal
        self._sums = sums.reshape(2, stream.periods, stream.width)

    def answer(self, period: int, question: Question) -> Tallies[Any]:
        """Return the tallies of all messages of a period."""
        del question
        return Tallies({Place(self._span, period): Tally(self._n, self._sums[:, period - 1])})

    def totals(self, period: int) -> Array:
        """Return the number of devices for which each item rose minus those for which it fell."""
        return np.asarray(self._totals[period - 1])

    def seen(self, period: int) -> Array:
        """Return the same totals, counting only the moves that devices report."""
        return np.asarray(self._seen[period - 1])


def told(moves: NDArray[np.int8], changes: int) -> NDArray[np.int8]:
    """Return the moves that devices report: the first ``changes`` non-zero ones.

    Examples
    --------
    >>> told(np.array([[[1, -1], [0, 1]]]), changes=2).tolist()
    [[[1, -1], [0, 0]]]

    """
    rows = moves.reshape(len(moves), -1)
    kept = np.where(np.cumsum(rows != 0, axis=1) <= changes, rows, 0)
    return kept.reshape(moves.shape).astype(np.int8)
