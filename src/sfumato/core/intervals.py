"""Intervals for a share that is seen through randomized counts.

Of n people a share f holds an item; a holder's report supports it with probability p, anybody
else's with probability q < p, so the count of supports is Binomial(fn, p) + Binomial((1-f)n, q),
whatever the other items are. Two intervals for f follow:

* :func:`score` inverts the normal approximation with the variance *at each f* (Wilson's idea);
  right for large counts.
* :func:`exact` inverts the count's true law: f is kept unless the count is outside of the
  smallest set of counts that has the wanted probability under f (Sterne 1954). It covers as
  often as it says and, unlike tail-by-tail inversion, hardly more often.

Neither is cut to [0, 1]: an estimate below zero is shown as it is.
"""

from __future__ import annotations

from functools import lru_cache
from math import erfc, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from sfumato.arrays import Floats, Ints

__all__ = ["exact", "score", "shares", "upper_tail", "wilson", "z_score"]


# Above this variance of a count one count more or less moves the coverage by under 0.2 points,
# and the score interval is as good as the exact one.
SMALL_VARIANCE: Final = 900.0
_EVERY_SHARE: Final = 2000  # up to this number of people, every possible share is tried
_BLOCK: Final = 256


def z_score(level: float) -> float:
    """Return the two-sided normal quantile of a level."""
    return NormalDist().inv_cdf(0.5 + level / 2)


_erfc: Final = np.frompyfunc(erfc, 1, 1)  # devices read this module, and they carry no scipy


def upper_tail(deviations: Floats) -> Floats:
    """Return the probability that a standard normal number lies above each deviation."""
    return np.asarray(_erfc(deviations / sqrt(2)), dtype=np.float64) / 2


def shares(counts: Ints, n: int, p: float, q: float, level: float) -> tuple[Floats, Floats]:
    """Return the interval of each item's share: exact for small counts, else by the score."""
    low, high = score(counts, n, p, q, level)
    variance = n * q * (1 - q) + (counts - n * q) * (1 - p - q)
    # The variance may be small at the estimated share and large at the interval's upper end: take
    # the larger of the two.
    upper = n * (q * (1 - q) + np.clip(high, 0, 1) * (p - q) * (1 - p - q))
    small = np.maximum(variance, upper) < SMALL_VARIANCE
    if small.any():
        low[small], high[small] = exact(counts[small], n, p, q, level)
    return low, high


def score(counts: Ints, n: int, p: float, q: float, level: float) -> tuple[Floats, Floats]:
    """Return the shares f for which the count lies within z standard deviations under f."""
    # y = f (p - q) solves (a - y)^2 = k (b + s y), with a = count/n - q and k = z^2/n.
    k = z_score(level) ** 2 / n
    a = counts / n - q
    s = 1 - p - q
    b = q * (1 - q)
    middle = a + k * s / 2
    reach = np.sqrt(np.maximum(k * k * s * s / 4 + k * (a * s + b), 0.0))
    return (middle - reach) / (p - q), (middle + reach) / (p - q)


def wilson(ones: Ints, n: int, level: float) -> tuple[Floats, Floats]:
    """Return Wilson's interval for the probability of a one, from ``ones`` ones among n."""
    k = z_score(level) ** 2 / n
    share = ones / n
    middle = share + k / 2
    reach = np.sqrt(k * share * (1 - share) + k * k / 4)
    return (middle - reach) / (1 + k), (middle + reach) / (1 + k)


def exact(counts: Ints, n: int, p: float, q: float, level: float) -> tuple[Floats, Floats]:
    """Return the smallest and the largest share that the exact law of the count does not reject."""
    low, high = score(counts, n, p, q, level)
    distinct, back = np.unique(counts, return_inverse=True)
    ends = _ends_by_table if n <= _EVERY_SHARE else _ends_by_bisection
    fewest, most = (end[back] for end in ends(distinct, n, p, q, level))
    # Outside [0, 1], where there are no shares to test, the score interval continues the exact one.
    # A count too small for any share has at most -1 holders, one too large at least n + 1.
    exact_low = np.where(fewest == 0, np.minimum(low, 0.0), fewest / n)
    exact_high = np.where(most == n, np.maximum(high, 1.0), most / n)
    return exact_low, exact_high


def _ends_by_table(counts: Ints, n: int, p: float, q: float, level: float) -> tuple[Ints, Ints]:
    """Return the fewest and the most holders whose law accepts each count, by a table of all."""
    first, last = _accepted_by_all(n, p, q, level)
    # More holders accept larger counts, except for a small step back now and then. So the search
    # uses the running maximum of the last accepted counts and the running minimum, from behind, of
    # the first ones.
    fewest = np.searchsorted(np.maximum.accumulate(last), counts)
    most = np.searchsorted(np.minimum.accumulate(first[::-1])[::-1], counts, side="right") - 1
    return fewest, most


@lru_cache(maxsize=32)
def _accepted_by_all(n: int, p: float, q: float, level: float) -> tuple[Ints, Ints]:
    """Return the first and last count that each number of holders accepts; cached."""
    return _accepted_counts(np.arange(n + 1), n, p, q, level)


def _ends_by_bisection(counts: Ints, n: int, p: float, q: float, level: float) -> tuple[Ints, Ints]:
    """Return the fewest and the most holders whose law accepts each count, by bisection."""
    likely = np.clip(np.round((counts - n * q) / (p - q)), 0, n).astype(np.int64)
    first, last = _accepted_counts(likely, n, p, q, level)
    low, high = score(counts, n, p, q, level)
    # Skewness and rounding to whole counts move an end by less than this from the score interval's.
    margin = (2 + z_score(level) ** 2 / 2) / (p - q)
    outer = np.concatenate([low * n - margin, high * n + margin])
    dropped = np.clip(np.round(outer), -1, n + 1).astype(np.int64)
    kept, wanted = np.tile(likely, 2), np.tile(counts, 2)
    while (open_ := np.flatnonzero(np.abs(kept - dropped) > 1)).size:
        middle = (kept[open_] + dropped[open_]) // 2
        least, greatest = _accepted_counts(middle, n, p, q, level)
        good = (least <= wanted[open_]) & (wanted[open_] <= greatest)
        kept[open_[good]], dropped[open_[~good]] = middle[good], middle[~good]
    fewest, most = np.split(kept, 2)
    most[(likely == 0) & (counts < first)] = -1
    fewest[(likely == n) & (counts > last)] = n + 1
    return fewest, most


def _accepted_counts(holders: Ints, n: int, p: float, q: float, level: float) -> tuple[Ints, Ints]:
    """Return the ends of the smallest set of counts with probability ``level``, by holders."""
    first = np.empty(holders.size, dtype=np.int64)
    last = np.empty(holders.size, dtype=np.int64)
    for start in range(0, holders.size, _BLOCK):
        block = holders[start : start + _BLOCK]
        offset, chance = _count_law(block, n, p, q)
        falling = -np.sort(-chance, axis=1)
        enough = np.cumsum(falling, axis=1) >= min(level, 1 - 1e-12)
        least = np.take_along_axis(falling, np.argmax(enough, axis=1)[:, None], axis=1)
        used = chance >= least
        first[start : start + _BLOCK] = offset + np.argmax(used, axis=1)
        last[start : start + _BLOCK] = offset + used.shape[1] - 1 - np.argmax(used[:, ::-1], axis=1)
    return first, last


def _count_law(holders: Ints, n: int, p: float, q: float) -> tuple[Ints, Floats]:
    """Return the law of the count for each number of holders: first count and probabilities.

    The law is the inverse Fourier transform of (1-p+pw)^h (1-q+qw)^(n-h) on a window of counts
    far wider than the law itself.
    """
    mean = holders * p + (n - holders) * q
    sigma = np.sqrt(holders * p * (1 - p) + (n - holders) * q * (1 - q))
    reach = int(np.ceil(8 * sigma.max() + 40))
    width = 1 << int(np.ceil(np.log2(2 * reach)))
    turn = np.exp(-2j * np.pi * np.arange(width // 2 + 1) / width) - 1
    log_law = holders[:, None] * np.log1p(p * turn) + (n - holders)[:, None] * np.log1p(q * turn)
    offset = np.floor(mean).astype(np.int64) - width // 2
    chance = np.fft.irfft(np.exp(log_law), width, axis=1)
    # Undo the wrap-around: column j holds the count offset + j.
    columns = (offset[:, None] + np.arange(width)) % width
    return offset, np.maximum(np.take_along_axis(chance, columns, axis=1), 0.0)
