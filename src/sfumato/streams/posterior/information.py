"""Observed differences of curves, in the form that is combined with a prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from sfumato.arrays import Floats, Ints

__all__ = ["Information", "Sightings"]


class Sightings(NamedTuple):
    """Observed differences of totals, edge by edge, in units of the first period's devices."""

    start: Ints
    """The start of each difference; 0 for the known zero before the first period."""
    end: Ints
    """The period in which each difference ends, in rising order."""
    value: Floats
    """The observed differences, edges x entries."""
    known: Floats
    """The variance that the weight of each edge assumes."""
    noise: Floats
    """The variance of each observation, edges x entries."""


@dataclass(frozen=True, eq=False)
class Information:
    """The quadratic form of all observations, x' matrix x / 2 - x' pull, divided by the noise.

    Parameters
    ----------
    matrix
        The information about the periods of a curve, periods x periods; the same for all entries.
    pull
        The linear term of the observations, periods x entries.
    noise
        The factor by which each entry's noise is larger than in the matrix.

    Examples
    --------
    Two looks at the first of two periods and one at the change to the second:

    >>> start, end = np.array([0, 0, 1]), np.array([1, 1, 2])
    >>> value, known = np.array([[0.3], [0.5], [0.1]]), np.array([1.0, 1.0, 0.5])
    >>> sightings = Sightings(start, end, value, known, known[:, None])
    >>> seen = Information.of(np.ones(2), sightings)
    >>> np.linalg.solve(seen.matrix, seen.pull)[:, 0].round(6).tolist()
    [0.4, 0.5]

    """

    matrix: Floats
    pull: Floats
    noise: Floats

    @classmethod
    def of(cls, growth: Floats, sightings: Sightings) -> Self:
        """Return the information of observed differences about the first periods of the curves.

        Parameters
        ----------
        growth
            The number of devices in each of these periods, divided by that of the first period.
        sightings
            The differences; those that end after these periods are left out.

        """
        periods = growth.size
        used = sightings.end <= periods
        start, end = sightings.start[used], sightings.end[used]
        value, known, noise = sightings.value[used], sightings.known[used], sightings.noise[used]
        reach = np.concatenate([[0.0], growth])
        matrix = np.zeros((periods + 1, periods + 1))
        np.add.at(matrix, (end, end), reach[end] ** 2 / known)
        np.add.at(matrix, (start, start), reach[start] ** 2 / known)
        np.add.at(matrix, (start, end), -reach[start] * reach[end] / known)
        np.add.at(matrix, (end, start), -reach[start] * reach[end] / known)
        pull = np.zeros((periods + 1, value.shape[1]))
        np.add.at(pull, end, (reach[end] / known)[:, None] * value)
        np.add.at(pull, start, -(reach[start] / known)[:, None] * value)
        weight = reach[end] ** 2 / known
        scale = np.ones(value.shape[1])
        if weight.sum() > 0:
            scale = (weight[:, None] * noise / known[:, None]).sum(axis=0) / weight.sum()
        return cls(matrix[1:, 1:], pull[1:], np.maximum(scale, 1e-12))

    @property
    def periods(self) -> int:
        """The number of periods of the curves."""
        return len(self.matrix)

    @property
    def grounded(self) -> bool:
        """Whether the level of the curves was observed, and not only their changes."""
        return bool(self.matrix.sum() > 1e-9 * np.trace(self.matrix))

    @property
    def unit(self) -> float:
        """The noise of a typical period on its own, which is the unit of moves."""
        diagonal = self.matrix.diagonal()
        return float(1 / np.median(diagonal[diagonal > 0]))
