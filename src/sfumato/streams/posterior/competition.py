"""Shapes and sizes of motion, compared by how well they explain the same observations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.streams.posterior.information import Information
from sfumato.streams.posterior.mixture import LikelyShape, Mixture, Spectrum
from sfumato.streams.posterior.shapes import Shape, sizes

__all__ = ["Competition"]


NEGLIGIBLE: Final = 0.002
"""The probability below which a shape and size is left out for an entry."""


@dataclass(eq=False)
class _Entrant:
    """A shape, and what it makes of the observations."""

    shape: Shape
    sizes: Floats
    spectrum: Spectrum
    basis: Floats | None
    """None while the shape is certain to be left out."""
    evidence: Floats
    """The logarithm of the evidence of each size (rows), for each entry."""


class Competition:
    """Shapes of motion that compete to explain some observations.

    The basis of a shape takes as much memory as a matrix of all periods. It is dropped once all
    sizes of its shape are so far behind others that they will be left out. In the rare case that
    they are not, because the noise has been updated since, it is computed again.

    Parameters
    ----------
    seen
        The observations.

    Examples
    --------
    >>> from sfumato.streams.posterior.information import Sightings
    >>> looks, noise = np.arange(1, 5), np.full(4, 0.01)
    >>> value = np.array([[0.3], [0.5], [0.4], [0.4]])
    >>> seen = Sightings(0 * looks, looks, value, noise, noise[:, None])
    >>> competition = Competition(Information.of(np.ones(4), seen))
    >>> competition.enter(lambda: np.zeros((4, 0)))  # a curve that does not move
    >>> competition.enter(lambda: np.tril(np.ones((4, 4))))  # one whose steps are independent
    >>> competition.mixture().combined(np.eye(4))[0][:, 0].round(1).tolist()
    [0.4, 0.4, 0.4, 0.4]

    """

    def __init__(self, seen: Information) -> None:
        self._seen = seen
        self._entrants: list[_Entrant] = []

    def enter(self, shape: Shape) -> None:
        """Let a shape compete, at all sizes that curves may have."""
        root, seen = shape(), self._seen
        some = sizes(seen.periods, seen.unit) if root.shape[1] else np.ones(1)
        spectrum, basis = Spectrum.of(root, seen)
        self._entrants.append(_Entrant(shape, some, spectrum, basis, _evidence(spectrum, some)))
        best = np.max([entrant.evidence.max(axis=0) for entrant in self._entrants], axis=0)
        for entrant in self._entrants:
            if (entrant.evidence < best + np.log(NEGLIGIBLE)).all():
                entrant.basis = None

    def settle(self, noise: Floats) -> None:
        """Compare all shapes again, with updated noise of the entries."""
        self._seen = replace(self._seen, noise=noise)
        for entrant in self._entrants:
            entrant.spectrum = replace(entrant.spectrum, noise=noise)
            entrant.evidence = _evidence(entrant.spectrum, entrant.sizes)

    def mixture(self) -> Mixture:
        """Return the mixture of all shapes and sizes, by how well they explain the data."""
        believed = _shares(np.concatenate([entrant.evidence for entrant in self._entrants]))
        believed[believed < NEGLIGIBLE] = 0.0
        believed /= believed.sum(axis=0)
        kept = np.asarray(believed.any(axis=1))
        parts, first = [], 0
        for entrant in self._entrants:
            own = kept[first : first + entrant.sizes.size]
            first += entrant.sizes.size
            if own.any():
                if entrant.basis is None:
                    _, entrant.basis = Spectrum.of(entrant.shape(), self._seen)
                some = tuple(entrant.sizes[own].tolist())
                parts.append(LikelyShape(entrant.spectrum, entrant.basis, some))
        return Mixture(tuple(parts), believed[kept])


def _evidence(spectrum: Spectrum, some: Floats) -> Floats:
    return np.array([spectrum.component(size).evidence for size in some])


def _shares(evidence: Floats) -> Floats:
    raised = np.exp(evidence - evidence.max(axis=0))
    return np.asarray(raised / raised.sum(axis=0))
