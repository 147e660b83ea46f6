"""Posteriors of curves under many priors (shapes and sizes of motion), mixed by evidence.

A curve is an unknown constant plus a motion with covariance q K. One eigendecomposition for each
shape K serves all sizes q and all entries. Shapes and sizes are weighted by their evidence, the
probability of the observations under them. The answer to any question that is linear in the periods
is a mixture over all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from sfumato.arrays import Floats
from sfumato.streams.posterior.information import Information

__all__ = ["DOUBT", "Component", "LikelyShape", "Mixture", "Spectrum"]


DOUBT: Final = 1.5
"""The factor of the mixture's variances, because sizes are learnt from a single horizon."""


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

    weights: Floats
    """The information about each coordinate."""
    pull: Floats
    """The linear term of each coordinate, for the observations."""
    constant: Floats
    """The linear term of each coordinate, for a constant curve of one."""
    noise: Floats
    """The factor by which each entry's noise is larger than in the information."""
    total: float
    """The information about a constant curve."""
    pulled: Floats
    """The linear term of a constant curve, for each entry's observations."""

    @classmethod
    def of(cls, root: Floats, seen: Information) -> tuple[Spectrum, Floats]:
        """Return the observations in the coordinates of a shape, given its square root.

        The basis comes with them: the motion of each coordinate, periods x coordinates.
        """
        weights, turned = np.linalg.eigh(root.T @ (seen.matrix @ root))
        basis = root @ turned
        level = seen.matrix.sum(axis=1)
        spectrum = cls(
            np.maximum(weights, 0.0),
            basis.T @ seen.pull,
            basis.T @ level,
            seen.noise,
            float(seen.matrix.sum()),
            seen.pull.sum(axis=0),
        )
        return spectrum, basis

    def only(self, entries: slice) -> Spectrum:
        """Return the same for the observations of some entries alone."""
        pull, noise, pulled = self.pull[:, entries], self.noise[entries], self.pulled[entries]
        return replace(self, pull=pull, noise=noise, pulled=pulled)

    def component(self, size: float) -> Component:
        """Return the posterior of each entry if the motions have this variance."""
        noise = self.noise
        grown = 1 + size * self.weights[:, None] / noise
        spread = size / grown
        lean = spread * self.constant[:, None] / noise
        precision = (self.total - self.constant @ lean) / noise
        gained = (self.pulled - (lean * self.pull).sum(axis=0)) / noise
        constant = gained / precision
        evidence = (
            (spread * self.pull**2).sum(axis=0) / noise**2
            + gained * constant
            - np.log(grown).sum(axis=0)
            - np.log(precision)
        ) / 2
        shift = spread * self.pull / noise - lean * constant
        return Component(spread, shift, lean, constant, precision, evidence)


class LikelyShape(NamedTuple):
    """A shape of a mixture."""

    spectrum: Spectrum
    """The observations in the coordinates of the shape."""
    basis: Floats
    """The motion of each coordinate, periods x coordinates."""
    sizes: tuple[float, ...]
    """The sizes that have some probability."""


@dataclass(frozen=True, eq=False)
class Mixture:
    """The posterior of curves, mixed over shapes and sizes by each entry's evidence.

    Parameters
    ----------
    parts
        The shapes with some probability.
    believed
        The probability of each shape and size for each entry, in the order of the parts.

    """

    parts: tuple[LikelyShape, ...]
    believed: Floats

    def components(self) -> Iterator[tuple[Floats, list[tuple[Component, Floats]]]]:
        """Yield the basis of each shape, its components and their probability for each entry."""
        index = 0
        for spectrum, basis, sizes in self.parts:
            shares = self.believed[index : index + len(sizes)]
            index += len(sizes)
            yield basis, [*zip(map(spectrum.component, sizes), shares, strict=True)]

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
        for basis, components in self.components():
            turned = coefficients @ basis
            squared = turned**2
            for part, believed in components:
                own = total * part.constant + turned @ part.shift
                left = total - turned @ part.lean
                inside = squared @ part.spread + left**2 / part.precision
                weight = weight + believed
                away = own - mean
                mean = mean + away * believed / np.where(weight > 0, weight, 1.0)
                variance = variance + believed * (inside + away * (own - mean))
        return mean, DOUBT * variance

    def only(self, index: int) -> Mixture:
        """Return the mixture of one entry alone, at the price of one entry."""
        own = slice(index, index + 1)
        parts = (part._replace(spectrum=part.spectrum.only(own)) for part in self.parts)
        return Mixture(tuple(parts), self.believed[:, own])

    def covariance(self, index: int) -> tuple[Floats, Floats]:
        """Return one entry's curve, and the covariance of its periods."""
        alone = self.only(index)
        curve = alone.combined(np.eye(len(self.parts[0].basis)))[0][:, 0]
        whole = np.zeros((curve.size, curve.size))
        for basis, components in alone.components():
            spread, columns = np.zeros(basis.shape[1]), []
            for part, believed in components:
                share = believed[0]
                spread += share * part.spread[:, 0]
                left = 1 - basis @ part.lean[:, 0]
                columns.append(np.sqrt(share / part.precision[0]) * left)
                away = part.constant[0] + basis @ part.shift[:, 0] - curve
                columns.append(np.sqrt(share) * away)
            outer = np.stack(columns, axis=1)
            whole += (basis * spread) @ basis.T + outer @ outer.T
        return curve, DOUBT * whole
