"""Maximum likelihood for a law that is a constant plus a band, without its matrix.

A report of a bucket lands on every place with one small probability, and on the places of a
window with one larger one. So the probability of a place is a difference of two cumulative
shares, and what a place says of a bucket a difference of two cumulative sums: an iteration costs
O(grid + width) where a matrix costs O(grid (grid + width)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Band", "Fit", "fit"]

Floats = NDArray[np.float64]

MOST_ITERATIONS: Final = 10_000


@dataclass(frozen=True)
class Band:
    """The law of the reports of people whose numbers are spread evenly over a bucket.

    Bucket i lies between the grid points i and i + 1. An even number between them is rounded to
    each of the two half of the time, so the bucket's law is exactly the average of theirs. Arrays
    have buckets or places along their last axis, and any number of rows.

    Parameters
    ----------
    grid, width
        How many buckets there are, and how many places a window has.
    floor, rise
        The probability of a place, and by how much it is higher in a point's window.

    """

    grid: int
    width: int
    floor: float
    rise: float

    @property
    def size(self) -> int:
        """How many places there are."""
        return self.grid + self.width

    def places(self, shares: Floats) -> Floats:
        """Return the probability of each place, for people of whom each bucket has its share."""
        grid, width = self.grid, self.width
        # Cumulative shares at the grid points -width .. size. Each is at least the one before, in
        # floating point too, so no probability falls below the floor.
        below = np.zeros((*shares.shape[:-1], self.size + width + 1))
        np.add.accumulate(shares, axis=-1, out=below[..., width + 1 : width + grid + 1])
        below[..., width + grid + 1 :] = below[..., width + grid, None]
        window = below[..., width:] - below[..., : self.size + 1]
        chances: Floats = window[..., 1:] + window[..., :-1]
        chances *= self.rise / 2
        chances += self.floor
        return chances

    def pull(self, weights: Floats) -> Floats:
        """Return the mean weight that a report of each bucket lands on."""
        before = np.zeros((*weights.shape[:-1], self.size + 1))
        np.add.accumulate(weights, axis=-1, out=before[..., 1:])
        window = before[..., self.width :] - before[..., : self.grid + 1]
        mean: Floats = window[..., 1:] + window[..., :-1]
        mean *= self.rise / 2
        mean += self.floor * before[..., -1, None]
        return mean


class Fit(NamedTuple):
    """What each row of counts converged to."""

    shares: Floats
    log_likelihood: Floats
    iterations: NDArray[np.int64]


def fit(
    band: Band,
    counts: Floats,
    tolerance: float,
    *,
    smooth: bool,
    start: Floats | None = None,
    accelerate: bool = False,
) -> Fit:
    """Return the shares of buckets that make the counts of places likely, for each row of counts.

    An iteration is one step of expectation maximization; ``smooth`` averages neighbours after it.
    A row is done when a step changes its log-likelihood by less than the tolerance, or after
    10,000 steps.

    Parameters
    ----------
    band
        The law.
    counts
        How often each place was reported; one row for each collection.
    tolerance
        The change of the log-likelihood below which a row is done.
    smooth
        Whether each share is averaged with its neighbours after each step.
    start
        Where to start; by default from equal shares.
    accelerate
        Whether to leap ahead after every second step (see :func:`_leap`). What ends the iteration
        stays the same: a plain step that changes too little.

    """
    rows = np.arange(len(counts))
    n = counts.sum(axis=-1, keepdims=True)
    begin = np.full(band.grid, 1 / band.grid) if start is None else start
    shares = np.repeat(begin[None], len(counts), axis=0)
    found = Fit(shares.copy(), np.zeros(rows.size), np.full(rows.size, MOST_ITERATIONS))
    older, before, leapt = shares, np.zeros(rows.size), True
    for iteration in range(MOST_ITERATIONS):
        chances = band.places(shares)
        likelihood = np.vecdot(counts, np.log(chances))
        done = np.abs(likelihood - before) < tolerance
        if not leapt and done.any():
            found.shares[rows[done]] = shares[done]
            found.log_likelihood[rows[done]] = likelihood[done]
            found.iterations[rows[done]] = iteration
            left = ~done
            rows, counts, n, shares = rows[left], counts[left], n[left], shares[left]
            chances, likelihood, older = chances[left], likelihood[left], older[left]
            if not rows.size:
                return found
        step = shares * band.pull(counts / chances)
        step /= n
        if smooth:
            step = _smoothed(step)
        leapt = accelerate and iteration % 2 == 1
        older, shares = shares, _leap(older, shares, step) if leapt else step
        before = likelihood
    found.shares[rows], found.log_likelihood[rows] = shares, before
    return found


def _smoothed(shares: Floats) -> Floats:
    """Return the binomial average of each share and its neighbours: weights 1, 2, 1."""
    mean = 2 * shares
    mean[:, 1:] += shares[:, :-1]
    mean[:, :-1] += shares[:, 1:]
    mean[:, :: mean.shape[1] - 1] *= 4 / 3  # the ends have one neighbour less
    mean /= mean.sum(axis=-1, keepdims=True)
    return mean


def _leap(older: Floats, old: Floats, new: Floats) -> Floats:
    """Return where the last two steps lead to if they go on as they began, for each row.

    Varadhan and Roland's squared extrapolation: its length is the ratio of the last step to how
    much the steps differ. No share falls below a hundredth of what the plain step gave it.
    """
    first = old - older
    bend = (new - old) - first
    length = np.sqrt(np.vecdot(first, first) / np.maximum(np.vecdot(bend, bend), 1e-300))
    reach = np.maximum(length, 1.0)[:, None]
    ahead: Floats = older + reach * (2 * first + reach * bend)
    np.maximum(ahead, new / 100, out=ahead)
    ahead /= ahead.sum(axis=-1, keepdims=True)
    return ahead
