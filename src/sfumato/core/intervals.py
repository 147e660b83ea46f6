"""Intervals for a share that is seen through randomized counts.

Of n people a share f holds an item; a holder's report supports it with probability p, anybody
else's with probability q < p, so the count of supports is Binomial(fn, p) + Binomial((1-f)n, q),
whatever the other items are. Two intervals for f follow:

* :func:`score` inverts the normal approximation with the variance *at each f* (Wilson's idea);
  right for large counts.
* :func:`exact` inverts the count's true law: f is kept unless the count is outside of the
  smallest set of counts that has the wanted probability under f (Sterne 1954). It never covers
  less than it says and, unlike tail-by-tail inversion, hardly more.

Neither is cut to [0, 1]: an estimate below zero is shown as it is.
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["exact", "score", "shares", "z_score"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# Above this variance of a count one count more or less moves the coverage by under 0.2 points,
# and the score interval is as good as the exact one.
SMALL_VARIANCE: Final = 900.0
_EVERY_SHARE: Final = 2000  # up to so many people each possible share is tried
_STEPS_PER_SIGMA: Final = 50
_BLOCK: Final = 256


def z_score(level: float) -> float:
    """Return the two-sided normal quantile of a level."""
    return NormalDist().inv_cdf(0.5 + level / 2)


def shares(counts: Ints, n: int, p: float, q: float, level: float) -> tuple[Floats, Floats]:
    """Return the interval of each item's share: exact where counts are small, score elsewhere."""
    low, high = score(counts, n, p, q, level)
    variance = n * q * (1 - q) + (counts - n * q) * (1 - p - q)
    # A share may be small and its upper end not: judge by the larger of the two ends.
    upper = n * (q * (1 - q) + np.clip(high, 0, 1) * (p - q) * (1 - p - q))
    small = np.maximum(variance, upper) < SMALL_VARIANCE
    if small.any():
        low[small], high[small] = exact(counts[small], n, p, q, level)
    return low, high


def score(counts: Ints, n: int, p: float, q: float, level: float) -> tuple[Floats, Floats]:
    """Return the shares within z standard deviations *of their own* of the count."""
    # y = f (p - q) solves (a - y)^2 = k (b + s y), with a = count/n - q and k = z^2/n.
    k = z_score(level) ** 2 / n
    a = counts / n - q
    s = 1 - p - q
    b = q * (1 - q)
    middle = a + k * s / 2
    reach = np.sqrt(np.maximum(k * k * s * s / 4 + k * (a * s + b), 0.0))
    return (middle - reach) / (p - q), (middle + reach) / (p - q)


def exact(counts: Ints, n: int, p: float, q: float, level: float) -> tuple[Floats, Floats]:
    """Return the smallest and largest share that the count does not speak against."""
    low, high = score(counts, n, p, q, level)
    distinct, back = np.unique(counts, return_inverse=True)
    if n <= _EVERY_SHARE:
        holders, first, last = _accepted_by_all(n, p, q, level)
    else:
        holders = _holders_to_try(int(distinct[0]), int(distinct[-1]), n, p, q, z_score(level))
        first, last = _accepted_counts(holders, n, p, q, level)
    kept = np.asarray((first <= distinct[:, None]) & (distinct[:, None] <= last))
    found = np.asarray(kept.any(axis=1))
    lowest = np.argmax(kept, axis=1)
    highest = holders.size - 1 - np.argmax(kept[:, ::-1], axis=1)
    # Between a share that is kept and its neighbour that is not, the end lies half way.
    gap = np.diff(holders, prepend=holders[0], append=holders[-1]) if n > _EVERY_SHARE else None
    below = holders[lowest] - (gap[lowest] / 2 if gap is not None else 0)
    above = holders[highest] + (gap[highest + 1] / 2 if gap is not None else 0)
    exact_low, exact_high = (below / n)[back], (above / n)[back]
    found = found[back]
    # Beyond the shares that can be (0 and 1) the score interval goes on where the exact one ends.
    exact_low = np.where(exact_low <= 0, np.minimum(low, 0.0), exact_low)
    exact_high = np.where(exact_high >= 1, np.maximum(high, 1.0), exact_high)
    # No share at all agrees: the estimate is far outside of [0, 1], and so is its interval.
    outside = np.where(counts < n * q, np.minimum(high, -0.5 / n), high)
    inside = np.where(counts < n * q, low, np.maximum(low, 1 + 0.5 / n))
    return np.where(found, exact_low, inside), np.where(found, exact_high, outside)


@lru_cache(maxsize=32)
def _accepted_by_all(n: int, p: float, q: float, level: float) -> tuple[Floats, Ints, Ints]:
    """Return every number of holders and the counts it accepts; a table worth keeping."""
    holders = np.arange(n + 1, dtype=np.float64)
    return holders, *_accepted_counts(holders, n, p, q, level)


def _holders_to_try(fewest: int, most: int, n: int, p: float, q: float, z: float) -> Floats:
    """Numbers of holders that bracket all ends, at most fifty steps a standard deviation."""
    # Twice the width of a Poisson count's interval is beyond every end, however small the count.
    low = fewest - 2 * z * np.sqrt(fewest + z * z)
    high = most + 2 * z * np.sqrt(most + z * z)
    first = int(np.clip(np.floor((low - n * q) / (p - q)), 0, n))
    last = int(np.clip(np.ceil((high - n * q) / (p - q)), 0, n))
    slope = (p - q) * (1 - p - q)
    base = n * q * (1 - q)
    sigma_at = np.sqrt(np.maximum(base + slope * np.array([first, last]), 1e-12))
    spacing = float(sigma_at.min()) / (p - q) / _STEPS_PER_SIGMA
    if spacing <= 1:
        return np.arange(first, last + 1, dtype=np.float64)
    steps = [float(first)]
    while steps[-1] < last:
        sigma = float(np.sqrt(max(base + slope * steps[-1], 1e-12)))
        steps.append(steps[-1] + sigma / (p - q) / _STEPS_PER_SIGMA)
    steps[-1] = float(last)
    return np.round(np.array(steps))


def _accepted_counts(
    holders: Floats, n: int, p: float, q: float, level: float
) -> tuple[Ints, Ints]:
    """Return the ends of the smallest set of counts of the wanted probability, for each share."""
    first = np.empty(holders.size, dtype=np.int64)
    last = np.empty(holders.size, dtype=np.int64)
    for start in range(0, holders.size, _BLOCK):
        block = holders[start : start + _BLOCK]
        offset, chance = _count_law(block, n, p, q)
        order = np.argsort(-chance, axis=1, kind="stable")
        mass = np.cumsum(np.take_along_axis(chance, order, axis=1), axis=1)
        size = np.argmax(mass >= min(level, 1 - 1e-12), axis=1)  # counts needed, less one
        used = np.arange(chance.shape[1]) <= size[:, None]
        least = np.where(used, order, chance.shape[1]).min(axis=1)
        most = np.where(used, order, -1).max(axis=1)
        first[start : start + _BLOCK] = offset + least
        last[start : start + _BLOCK] = offset + most
    return first, last


def _count_law(holders: Floats, n: int, p: float, q: float) -> tuple[Ints, Floats]:
    """Return the law of the count for each number of holders, as (first count, probabilities).

    The law is the inverse Fourier transform of (1-p+pw)^h (1-q+qw)^(n-h) on a window of counts
    far wider than the law itself.
    """
    mean = holders * p + (n - holders) * q
    sigma = np.sqrt(holders * p * (1 - p) + (n - holders) * q * (1 - q))
    reach = int(np.ceil(12 * sigma.max() + 40))
    width = 1 << int(np.ceil(np.log2(2 * reach)))
    turn = np.exp(-2j * np.pi * np.arange(width // 2 + 1) / width) - 1
    log_law = holders[:, None] * np.log1p(p * turn) + (n - holders)[:, None] * np.log1p(q * turn)
    offset = np.floor(mean).astype(np.int64) - width // 2
    chance = np.fft.irfft(np.exp(log_law), width, axis=1)
    # Undo the wrap-around: column j holds the count offset + j.
    columns = (offset[:, None] + np.arange(width)) % width
    return offset, np.maximum(np.take_along_axis(chance, columns, axis=1), 0.0)
