"""Bounds of quantiles without a model, from unbiased cumulative shares, which never fall.

The share of people in the window of a position y raises its probability; it is the difference of
the cumulative shares at y and at y - width. Adding up such differences, ``width`` positions apart,
from either end gives every cumulative share without bias, but with much noise; its mean over a run
of buckets has little. Cumulative shares never fall, so a mean over buckets to the right of a point
is an upper bound, one to the left a lower bound, for any distribution.
"""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.core.intervals import z_score
from sfumato.mechanisms.density.em import Band

__all__ = ["cumulative", "quantile_bounds"]


def cumulative(band: Band, counts: Ints, chances: Floats) -> tuple[Floats, Floats]:
    """Return the unbiased mean cumulative share over each bucket, and its variance.

    Estimates of buckets less than ``width`` apart come from different positions; treating them as
    independent overstates the variance of their sum.
    """
    n = int(counts.sum())
    steps = -(-band.size // band.width)
    shape = (steps, band.width)
    padding = (0, steps * band.width - band.size)
    gained = np.pad((counts / n - band.floor) / band.rise, padding).reshape(shape)
    noise = np.pad(chances / (n * band.rise**2), padding).reshape(shape)
    left, left_noise = np.cumsum(gained, axis=0), np.cumsum(noise, axis=0)
    # From the left the estimate is `left`, from the right it is 1 - (all - left). Their noise is
    # independent, so each is weighted by the variance of the other.
    weight = left_noise / left_noise[-1]
    estimate = left - weight * (left[-1] - 1)
    variance = (1 - weight) ** 2 * left_noise + weight**2 * (left_noise[-1] - left_noise)
    return estimate.ravel()[: band.grid], variance.ravel()[: band.grid]


def quantile_bounds(
    band: Band, counts: Ints, shares: Floats, wanted: Floats, level: float
) -> tuple[Ints, Ints]:
    """Return the grid points between which each wanted quantile lies.

    The shares of a fit only decide how many buckets are averaged, to make the bounds narrow; a bad
    fit makes them wider, not wrong.
    """
    estimate, variance = cumulative(band, counts, band.positions(shares))
    fitted = np.concatenate([[0.0], np.cumsum(shares)])
    even = (fitted[1:] + fitted[:-1]) / 2
    reach = min(band.width, band.grid)
    runs = np.unique(np.geomspace(1, reach, 24).round().astype(np.int64))
    z = z_score(level)
    # For each run to the right of each point: the excess over the fit it would lead to, and the
    # bound.
    noise = z * np.sqrt(_means(variance, runs, 0.0) / runs[:, None])
    excess = _means(even, runs, 1.0) + noise - fitted
    above = _means(estimate, runs, 1.0) + noise
    # To the left everything is the same, seen from the other end.
    noise = z * np.sqrt(_means(variance[::-1], runs, 0.0) / runs[:, None])
    lack = (_means(1 - even[::-1], runs, 1.0) + noise)[:, ::-1] - (1 - fitted)
    below = 1 - (_means(1 - estimate[::-1], runs, 1.0) + noise)[:, ::-1]
    at = np.searchsorted(fitted[:-1], wanted)
    low, high = np.empty(wanted.size, np.int64), np.empty(wanted.size, np.int64)
    for index, (share, point) in enumerate(zip(wanted, at, strict=True)):
        possible = above[np.argmin(excess[:, point])] >= share
        low[index] = np.argmax(possible) if possible.any() else band.grid
        possible = below[np.argmin(lack[:, point])] <= share
        high[index] = band.grid - np.argmax(possible[::-1]) if possible.any() else 0
    # A quantile lies between grid points; noise alone can exchange the two ends.
    low, high = np.maximum(low - 1, 0), np.minimum(high + 1, band.grid)
    return np.minimum(low, high), np.maximum(low, high)


def _means(values: Floats, runs: Ints, beyond: float) -> Floats:
    """Return the mean over each run of buckets that starts at each grid point."""
    padded = np.concatenate([values, np.full(int(runs[-1]), beyond)])
    sums = np.concatenate([[0.0], np.cumsum(padded)])
    at = np.arange(values.size + 1)
    return np.asarray((sums[at + runs[:, None]] - sums[at]) / runs[:, None])
