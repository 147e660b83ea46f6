"""Maximum likelihood for a law that is a constant plus a band, without a matrix.

A number in a bucket is reported as each position with a small probability, and as each position of
a window with a larger one. So the probability of a position follows from a difference of two
cumulative shares, and the weight of a bucket from a difference of two cumulative sums: an iteration
costs O(grid + width) where a matrix costs O(grid (grid + width)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from sfumato.arrays import Floats, Ints

__all__ = ["Band", "Fit", "fit"]


MOST_ITERATIONS: Final = 10_000
_KERNEL: Final = 4  # the sum of the weights 1, 2, 1


@dataclass(frozen=True)
class Band:
    """The law of the reports of people whose numbers are spread evenly over a bucket.

    Bucket i lies between the grid points i and i + 1. A uniform number between them is rounded to
    each of the two half of the time, so the bucket's law is exactly the average of theirs. Arrays
    have buckets or positions along their last axis, and one row or several.

    Parameters
    ----------
    grid, width
        The number of buckets, and the number of positions in a window.
    floor, rise
        The probability of a position outside of a point's window, and the increase of it inside.

    """

    grid: int
    width: int
    floor: float
    rise: float

    @property
    def size(self) -> int:
        """How many positions there are."""
        return self.grid + self.width

    def positions(self, shares: Floats) -> Floats:
        """Return the probability of each position, given the share of people in each bucket.

        Shares are divided by their sum.
        """
        rows = np.atleast_2d(shares)
        return _Room(self, len(rows)).positions(rows).reshape(*shares.shape[:-1], self.size)

    def pull(self, weights: Floats) -> Floats:
        """Return the mean weight of the reports from each bucket, given a weight by position."""
        rows = np.atleast_2d(weights)
        return _Room(self, len(rows)).pull(rows).reshape(*weights.shape[:-1], self.grid)


class _Room:
    """The two maps of a band with memory that is allocated once, because they are called often.

    The array that a map returns is overwritten by the next call.
    """

    def __init__(self, band: Band, rows: int) -> None:
        grid, width, size = band.grid, band.width, band.size
        self.floor, self.half = band.floor, band.rise / 2
        # Cumulative shares at the grid points -width .. size. Each is at least the one before, in
        # floating point too, so no probability falls below the floor.
        below = np.zeros((rows, size + width + 1))
        self.below = below[:, width + 1 : width + grid + 1]
        self.all, self.beyond = below[:, width + grid, None], below[:, width + grid + 1 :]
        self.to, self.fro = below[:, width:], below[:, : size + 1]
        self.held = _Pairs(rows, size + 1)
        # Cumulative weights before each position, and of all positions.
        before = np.zeros((rows, size + 1))
        self.before, self.total = before[:, 1:], before[:, -1, None]
        self.end, self.start = before[:, width:], before[:, : grid + 1]
        self.landed = _Pairs(rows, grid + 1)

    def positions(self, shares: Floats) -> Floats:
        """Return the probability of each position."""
        np.add.accumulate(shares, axis=1, out=self.below)
        np.copyto(self.beyond, self.all)
        np.subtract(self.to, self.fro, out=self.held.values)
        return self.held.sums(self.half / self.all, self.floor)

    def pull(self, weights: Floats) -> Floats:
        """Return the mean weight of the reports from each bucket."""
        np.add.accumulate(weights, axis=1, out=self.before)
        np.subtract(self.end, self.start, out=self.landed.values)
        return self.landed.sums(self.half, self.floor * self.total)


class _Pairs:
    """Values at points, and memory for the sums of each two neighbours."""

    def __init__(self, rows: int, points: int) -> None:
        self.values = np.empty((rows, points))
        self.left, self.right = self.values[:, :-1], self.values[:, 1:]
        self.between = np.empty((rows, points - 1))

    def sums(self, factor: float | Floats, more: float | Floats) -> Floats:
        """Return factor times the sums of neighbours, plus ``more``."""
        np.add(self.left, self.right, out=self.between)
        np.multiply(self.between, factor, out=self.between)
        return np.add(self.between, more, out=self.between)


class Fit(NamedTuple):
    """The shares, log-likelihood and number of steps that each row of counts converged to."""

    shares: Floats
    log_likelihood: Floats
    iterations: Ints

    def finish(self, rows: Ints, shares: Floats, likelihood: Floats, at: int) -> None:
        """Record the shares and likelihood that some rows converged to, and the number of steps."""
        self.shares[rows], self.log_likelihood[rows] = _normal(shares), likelihood
        self.iterations[rows] = at


def fit(
    band: Band,
    counts: Floats,
    tolerance: float,
    *,
    smooth: bool,
    start: Floats | None = None,
    accelerate: bool = False,
) -> Fit:
    """Return the shares of buckets with the highest likelihood, for each row of counts.

    An iteration is one step of expectation maximization; ``smooth`` averages neighbours after it.
    A row is done when a step changes its log-likelihood by less than the tolerance, or after
    10,000 steps.

    Parameters
    ----------
    band
        The law of the reports.
    counts
        The number of reports of each position, one row for each data set.
    tolerance
        The change of the log-likelihood below which a row is done.
    smooth
        Whether each share is averaged with its neighbours after each step.
    start
        The shares to start from; equal shares by default.
    accelerate
        Whether to extrapolate after every second step (see :func:`_leap`). The rule for stopping
        stays the same: a plain step that changes too little.

    """
    rows, n = np.arange(len(counts)), counts.sum(axis=1)
    begin = np.full(band.grid, 1 / band.grid) if start is None else start
    shares = np.repeat(begin[None], rows.size, axis=0)
    fitted = Fit(shares.copy(), np.zeros(rows.size), np.full(rows.size, MOST_ITERATIONS))
    weights = counts / (n[:, None] * (_KERNEL if smooth else 1))
    room = _Room(band, rows.size)
    older, before, leapt = shares, np.zeros(rows.size), True
    for iteration in range(MOST_ITERATIONS):
        chances = room.positions(shares)
        likelihood = np.vecdot(counts, np.log(chances))
        done = np.abs(likelihood - before) < tolerance
        if not leapt and np.count_nonzero(done):
            fitted.finish(rows[done], shares[done], likelihood[done], iteration)
            left = ~done
            rows, counts, weights, shares = rows[left], counts[left], weights[left], shares[left]
            chances, likelihood, older = chances[left], likelihood[left], older[left]
            if not rows.size:
                return fitted
            room = _Room(band, rows.size)
        step = shares * room.pull(weights / chances)
        step = _smoothed(step) if smooth else step
        leapt = accelerate and iteration % 2 == 1
        step = _normal(step) if accelerate else step
        older, shares = shares, _leap(older, shares, step) if leapt else step
        before = likelihood
    fitted.finish(rows, shares, before, MOST_ITERATIONS)
    return fitted


def _normal(shares: Floats) -> Floats:
    """Return the shares divided by their sum, for each row."""
    normal: Floats = shares / shares.sum(axis=1, keepdims=True)
    return normal


def _smoothed(shares: Floats) -> Floats:
    """Return the binomial sum of each share and its neighbours: weights 1, 2, 1."""
    total = shares + shares
    total[:, 1:] += shares[:, :-1]
    total[:, :-1] += shares[:, 1:]
    total[:, :: shares.shape[1] - 1] *= _KERNEL / 3  # the two ends have one neighbour only
    return total


def _leap(older: Floats, old: Floats, new: Floats) -> Floats:
    """Return an extrapolation of the last two steps, for each row.

    This is Varadhan and Roland's squared extrapolation; its length is the ratio of a step to the
    difference of the two steps. No share falls below a hundredth of its value after the plain step.
    """
    first = old - older
    bend = (new - old) - first
    length = np.sqrt(np.vecdot(first, first) / np.maximum(np.vecdot(bend, bend), 1e-300))
    reach = np.maximum(length, 1.0)[:, None]
    ahead: Floats = older + reach * (2 * first + reach * bend)
    return _normal(np.maximum(ahead, new / 100))
