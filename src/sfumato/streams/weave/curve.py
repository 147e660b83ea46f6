"""From tallies to curves: debiased observations, fused, with the variance their own moments tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.domain import Label
from sfumato.core.estimate import Covariance, Estimate
from sfumato.core.guarantee import Guarantee
from sfumato.core.tally import Tallies
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.streams.weave.fusion import Fusion
from sfumato.streams.weave.protocol import Weave
from sfumato.streams.weave.threads import SNAPSHOT, Thread

__all__ = ["Curve", "Observations", "observations", "online", "smoothed"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

POOLED: Final = 100
"""An edge's second moments count as much as so many reports of its span's average."""


@dataclass(frozen=True, eq=False)
class Observations:
    """The edges that reports have made, for one block of entries.

    Parameters
    ----------
    start, end, span
        Of each edge.
    n
        How many reports it stands on.
    value
        The observed mean difference of each entry.
    noise
        Its variance, by the reports' own second moments.
    working
        The variance for one report that the weights count on; public.

    """

    start: Ints
    end: Ints
    span: Ints
    n: Ints
    value: Floats
    noise: Floats
    working: Floats

    def fusion(self, periods: int) -> Fusion:
        """Return the least squares of these edges."""
        return Fusion(periods, self.start, self.end, self.n / self.working)


def observations(protocol: Weave, tallies: Tallies[Any], block: int = 0) -> Observations:
    """Return what the tallies, keyed by (span, period, block), say of a block's entries."""
    entries = protocol.values.blocks[block]
    rows: list[tuple[int, int, int, int, float, Floats, Floats]] = []
    for thread, _ in protocol.threads():
        if thread.is_snapshot and thread.block != block:
            continue
        for start, end in protocol.edges(thread):
            tally = tallies.get((thread.span, end, thread.block))
            if tally is None or tally.n == 0:
                continue
            if thread.span == SNAPSHOT:
                working = protocol.snapshot_variance(block)
                estimate: Any = protocol.oracles[block].estimate(tally)
                shown = protocol.values.observed(block)
                value = estimate.values[shown]
                moment = estimate.counts[shown] / tally.n
            else:
                strand = protocol.strand(thread)
                if tally.sums.shape != (2, protocol.values.width):
                    raise MismatchError(
                        f"the tally of span {thread.span}, period {end} has shape "
                        f"{tally.sums.shape}; (2, {protocol.values.width}) is expected."
                    )
                working = strand.variance
                plus, minus = tally.sums[:, entries] / tally.n
                value = (plus - minus) / strand.contrast
                moment = (plus + minus) / strand.contrast**2
            rows.append((start, end, thread.span, tally.n, working, value, moment))
    if not rows:
        raise MismatchError("there are no reports; at least one tally with reports is expected.")
    start, end, span, n = np.array([row[:4] for row in rows], dtype=np.int64).T
    working = np.array([row[4] for row in rows])
    value, moment = np.array([row[5] for row in rows]), np.array([row[6] for row in rows])
    noise = _noise(protocol, block, span, n, value, moment)
    return Observations(start, end, span, n, value, noise, working)


def _noise(
    protocol: Weave, block: int, span: Ints, n: Ints, value: Floats, moment: Floats
) -> Floats:
    """Return the variance of each observation.

    Few reports tell little of their own variance, so each edge's second moment leans on its
    span's average as on so many reports more.
    """
    noise = np.empty_like(value)
    for each in np.unique(span):
        rows = np.flatnonzero(span == each)
        weight = n[rows, None]
        pooled = (weight * moment[rows]).sum(axis=0) / weight.sum()
        leaned = (weight * moment[rows] + POOLED * pooled) / (weight + POOLED)
        if each == SNAPSHOT:
            oracle: Any = protocol.oracles[block]
            variance = leaned * (1 - leaned) / oracle.gap**2
        else:
            square = np.maximum(value[rows] ** 2 - leaned / weight, 0.0)
            variance = leaned - np.minimum(square, 1.0)
        noise[rows] = variance / weight
    return noise


@dataclass(frozen=True, eq=False)
class Curve:
    """Estimated means of all entries in all periods, as weighted sums of observations.

    Parameters
    ----------
    values
        One row for each period, one column for each entry.
    labels
        What the entries are called.
    blocks
        For each block of entries: which, the weights (periods x edges), and the edges' noise.
    n
        How many reports went in.
    as_of
        The last period whose reports went in; None if each period only has those up to itself.
    guarantee
        What the devices were promised.

    """

    values: Floats
    labels: tuple[Label, ...]
    blocks: tuple[tuple[slice, Floats, Floats], ...]
    n: int
    as_of: int | None
    guarantee: Guarantee

    @property
    def periods(self) -> int:
        """How many periods the curve has."""
        return len(self.values)

    def variances(self) -> Floats:
        """Return the variance of each entry's mean in each period."""
        return np.concatenate([(w**2) @ noise for _, w, noise in self.blocks], axis=1)

    def combine(self, coefficients: Sequence[float] | Floats) -> Estimate:
        """Return a weighted sum over periods, for each entry: a mean, a range, a difference."""
        weights = np.asarray(coefficients, dtype=np.float64)
        if weights.shape != (self.periods,):
            raise ConfigurationError(
                f"coefficients have shape {weights.shape}; one for each of {self.periods} "
                "periods is expected."
            )
        asked = np.flatnonzero(weights)
        parts = [((weights[asked] @ w[asked]) ** 2) @ noise for _, w, noise in self.blocks]
        return Estimate(
            values=weights[asked] @ self.values[asked],
            covariance=Covariance(np.concatenate(parts), joint=False),
            labels=self.labels,
            n=self.n,
            guarantee=self.guarantee,
        )

    def entry(self, place: int) -> Estimate:
        """Return one entry's whole curve, with the covariance between periods."""
        for entries, weights, noise in self.blocks:
            if entries.start <= place < entries.stop:
                scaled = weights * noise[:, place - entries.start]
                return Estimate(
                    values=self.values[:, place],
                    covariance=Covariance.dense(scaled @ weights.T),
                    labels=tuple(range(1, self.periods + 1)),
                    n=self.n,
                    guarantee=self.guarantee,
                )
        raise ConfigurationError(f"place is {place}; 0..{self.values.shape[1] - 1} is expected.")


def smoothed(protocol: Weave, tallies: Tallies[Any], as_of: int | None = None) -> Curve:
    """Return the curve up to a period, by all reports due until then."""
    last = protocol.periods if as_of is None else as_of
    if not 1 <= last <= protocol.periods:
        raise ConfigurationError(f"as_of is {last}; 1..{protocol.periods} is expected.")
    return _curve(protocol, tallies, last, lambda fusion: fusion.weights(last))


def online(protocol: Weave, tallies: Tallies[Any]) -> Curve:
    """Return the curve in which each period has the estimate that was final when it closed."""

    def rows(fusion: Fusion) -> Floats:
        weights = np.zeros((protocol.periods, fusion.start.size))
        for period, (variance, row, edges) in enumerate(fusion.online()):
            weights[period, edges] = row
            if np.isinf(variance):
                weights[period] = np.nan
        return weights

    return _curve(protocol, tallies, None, rows)


def _curve(protocol: Weave, tallies: Tallies[Any], as_of: int | None, weigh: Any) -> Curve:
    values = np.empty((as_of or protocol.periods, protocol.values.width))
    blocks, n = [], 0
    for place, entries in enumerate(protocol.values.blocks):
        seen = observations(protocol, tallies, place)
        weights = weigh(seen.fusion(protocol.periods))
        values[:, entries] = weights @ seen.value
        blocks.append((entries, weights, seen.noise))
        n = sum(tally.n for tally in tallies.values())
    return Curve(
        values, protocol.values.labels, tuple(blocks), n, as_of, protocol.guarantee
    )
