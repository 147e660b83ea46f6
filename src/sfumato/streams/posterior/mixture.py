"""Posteriors of curves under many priors (shapes and sizes of motion), mixed by evidence.

A curve is an unknown constant plus a motion with covariance q K. One eigendecomposition for each
shape K serves all sizes q and all entries. Shapes and sizes are weighted by their evidence, the
probability of the observations under them. The answer to any question that is linear in the periods
is a mixture over all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import numpy as np

from sfumato.arrays import Floats
from sfumato.streams.posterior.information import Information

__all__ = ["DOUBT", "Mixture", "Spectrum"]


DOUBT: Final = 1.5
"""The factor of the mixture's variances, because sizes are learnt from a single horizon."""
NEGLIGIBLE: Final = 0.002
"""The probability below which a shape and size is left out for an entry."""


class Component(NamedTuple):
    """Each entry's posterior under one shape and size, in the coordinates of the shape."""

    spread: Floats
    """The variance of each coordinate given the constant, coordinates x entries."""
    shift: Floats
    """The mean of each coordinate, coordinates x entries."""
    lean: Floats
    """The decrease of each coordinate per unit that the constant grows, coordinates x entries."""
    constant: Floats
    """The posterior mean of the constant."""
    precision: Floats
    """The inverse of the posterior variance of the constant."""
    evidence: Floats
    """The logarithm of the evidence, up to a constant that depends on the entry only."""


@dataclass(frozen=True, eq=False)
class Spectrum:
    """Observations in the coordinates in which a shape's motions are independent."""

    basis: Floats
    """The motion of each coordinate, periods x coordinates."""
    weights: Floats
    """The information about each coordinate."""
    pull: Floats
    """The linear term of each coordinate, for the observations."""
    constant: Floats
    """The linear term of each coordinate, for a constant curve of one."""
    seen: Information
    """The observations."""

    @classmethod
    def of(cls, root: Floats, seen: Information) -> Self:
        """Return the observations in the coordinates of a shape, given its square root."""
        weights, turned = np.linalg.eigh(root.T @ seen.matrix @ root)
        basis = root @ turned
        level = seen.matrix.sum(axis=1)
        return cls(basis, np.maximum(weights, 0.0), basis.T @ seen.pull, basis.T @ level, seen)

    def settled(self, seen: Information) -> Spectrum:
        """Return the same coordinates with updated noise of the entries."""
        return Spectrum(self.basis, self.weights, self.pull, self.constant, seen)

    def component(self, size: float) -> Component:
        """Return the posterior of each entry if the motions have this variance."""
        noise = self.seen.noise
        grown = 1 + size * self.weights[:, None] / noise
        spread = size / grown
        lean = spread * self.constant[:, None] / noise
        precision = (self.seen.matrix.sum() - self.constant @ lean) / noise
        gained = (self.seen.pull.sum(axis=0) - (lean * self.pull).sum(axis=0)) / noise
        constant = gained / precision
        evidence = (
            (spread * self.pull**2).sum(axis=0) / noise**2
            + gained * constant
            - np.log(grown).sum(axis=0)
            - np.log(precision)
        ) / 2
        shift = spread * self.pull / noise - lean * constant
        return Component(spread, shift, lean, constant, precision, evidence)


@dataclass(frozen=True, eq=False)
class Mixture:
    """The posterior of curves, mixed over shapes and sizes by each entry's evidence.

    Parameters
    ----------
    parts
        The shapes with some probability, each with its sizes.
    believed
        The probability of each shape and size for each entry, in the order of the parts.

    """

    parts: tuple[tuple[Spectrum, tuple[float, ...]], ...]
    believed: Floats

    @classmethod
    def of(cls, tried: list[tuple[Spectrum, Floats]]) -> Self:
        """Return the mixture of all tried shapes and sizes, by how well they explain the data."""
        evidence = np.array(
            [spectrum.component(size).evidence for spectrum, sizes in tried for size in sizes]
        )
        believed = _shares(evidence)
        believed[believed < NEGLIGIBLE] = 0.0
        believed /= believed.sum(axis=0)
        kept = np.flatnonzero(believed.any(axis=1))
        parts, index = [], 0
        for spectrum, sizes in tried:
            own = kept[(kept >= index) & (kept < index + len(sizes))] - index
            index += len(sizes)
            if own.size:
                parts.append((spectrum, tuple(sizes[own].tolist())))
        return cls(tuple(parts), believed[kept])

    def _components(self) -> Iterator[tuple[Spectrum, list[tuple[Component, Floats]]]]:
        """Yield each shape with its components and their probability for each entry."""
        index = 0
        for spectrum, sizes in self.parts:
            shares = self.believed[index : index + len(sizes)]
            index += len(sizes)
            yield spectrum, [*zip(map(spectrum.component, sizes), shares, strict=True)]

    def combined(self, coefficients: Floats) -> tuple[Floats, Floats]:
        """Return the mean and variance of weighted sums of periods, for each entry.

        Parameters
        ----------
        coefficients
            The weight of each period, one row for each question.

        """
        total = coefficients.sum(axis=1, keepdims=True)
        mean = variance = np.zeros((len(coefficients), self.believed.shape[1]))
        weight = np.zeros(self.believed.shape[1])
        for spectrum, components in self._components():
            turned = coefficients @ spectrum.basis
            squared = turned**2
            for part, believed in components:
                own = total * part.constant + turned @ part.shift
                left = total - turned @ part.lean
                inside = squared @ part.spread + left**2 / part.precision
                weight = weight + believed
                away = own - mean
                mean = mean + away * believed / np.maximum(weight, NEGLIGIBLE)
                variance = variance + believed * (inside + away * (own - mean))
        return mean, DOUBT * variance

    def covariance(self, index: int) -> tuple[Floats, Floats]:
        """Return one entry's curve, and the covariance of its periods."""
        curve = self.combined(np.eye(self.parts[0][0].seen.periods))[0][:, index]
        whole = np.zeros((curve.size, curve.size))
        for spectrum, components in self._components():
            basis = spectrum.basis
            spread, columns = np.zeros(basis.shape[1]), []
            for part, believed in components:
                share = believed[index]
                spread += share * part.spread[:, index]
                left = 1 - basis @ part.lean[:, index]
                columns.append(np.sqrt(share / part.precision[index]) * left)
                away = part.constant[index] + basis @ part.shift[:, index] - curve
                columns.append(np.sqrt(share) * away)
            outer = np.stack(columns, axis=1)
            whole += (basis * spread) @ basis.T + outer @ outer.T
        return curve, DOUBT * whole


def _shares(evidence: Floats) -> Floats:
    raised = np.exp(evidence - evidence.max(axis=0))
    return np.asarray(raised / raised.sum(axis=0))
