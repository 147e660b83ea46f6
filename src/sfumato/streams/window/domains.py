"""Reducing large domains beforehand: a cut for numbers, and bins for items.

Both are public choices. A cut reduces the noise of all numbers but makes larger numbers wrong; the
best one balances the two, and is computed from a known distribution, such as last year's, a
pilot's, or that of people who were asked with a separate budget.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.core.field_checks import check_whole
from sfumato.errors import ConfigurationError, InputError
from sfumato.mechanisms.mean.hybrid import Hybrid

__all__ = ["Cut", "best_cut", "binned"]


@dataclass(frozen=True)
class Cut:
    """A cut of numbers, and its errors."""

    threshold: float
    """The number to which larger ones are clipped."""
    noise: float
    """The standard error of the mean of those who answer."""
    bias: float
    """The amount by which the mean of clipped numbers is below the true mean."""

    @property
    def error(self) -> float:
        """The root mean squared error."""
        return float(np.hypot(self.noise, self.bias))


def best_cut(numbers: Any, epsilon: float, received: int, shares: Any = None) -> Cut:
    """Return the cut of least squared error, for numbers from 0 on.

    It minimises Var(mean) + (sum of f_k (k - cut) over k > cut)^2, as for one level without a
    hierarchy.

    Parameters
    ----------
    numbers, shares
        A known distribution: numbers with the share of each, or a list of all numbers.
    epsilon
        The privacy of one answer.
    received
        The number of answers in a period.

    Examples
    --------
    >>> cut = best_cut([1.0, 2.0, 1000.0], epsilon=1.0, received=10_000, shares=[0.5, 0.499, 0.001])
    >>> cut.threshold
    2.0

    References
    ----------
    Ren et al., "LDP-IDS" (2022), Sec. 6.1.2, after Wang et al., "Continuous Release of Data Streams
    under both Centralized and Local Differential Privacy" (2021).

    """
    values = np.asarray(numbers, dtype=np.float64).ravel()
    if not values.size or not np.isfinite(values).all() or bool((values < 0).any()):
        raise InputError(
            "numbers has none, or one below 0; a known distribution from 0 on is expected."
        )
    weights = np.full(values.size, 1 / values.size) if shares is None else _shares(shares, values)
    check_whole("received", received, 1)
    order = np.argsort(values, kind="stable")
    values, weights = values[order], weights[order]
    mean = float(values @ weights)
    # The mean of min(v, cut) for each cut: numbers below it count as they are, others as the cut.
    below = np.cumsum(values * weights)
    above = np.maximum(0.0, 1 - np.cumsum(weights))
    kept = below + above * values
    unit = Hybrid(epsilon, 0, 1)  # its noise grows with the square of the interval
    positive = values > 0
    if not positive.any():
        raise InputError("numbers are all 0; one above is expected.")
    cuts, kept = values[positive], kept[positive]
    # n Var is a quadratic function of the mean's position in the interval; three points determine
    # it.
    ends = [unit.variance(share) for share in (0.0, 0.5, 1.0)]
    share = np.clip(kept / cuts, 0.0, 1.0)
    curve = np.polyval(np.polyfit([0.0, 0.5, 1.0], ends, 2), share)
    noise = np.sqrt(cuts**2 * curve / received)
    bias = mean - kept
    best = int(np.argmin(noise**2 + bias**2))
    return Cut(float(cuts[best]), float(noise[best]), max(0.0, float(bias[best])))


def _shares(given: Any, values: Floats) -> Floats:
    shares = np.asarray(given, dtype=np.float64).ravel()
    if shares.shape != values.shape or bool((shares < 0).any()) or not shares.sum() > 0:
        raise InputError(
            f"shares has {shares.size} of {values.size} numbers, or one below 0; a share of each "
            "is expected."
        )
    return np.asarray(shares / shares.sum())


def binned(codes: Any, size: int, bins: int) -> Ints:
    """Return the bin of each item, for items 0..size-1 in bins of nearly equal size.

    Examples
    --------
    >>> binned([0, 1, 2, 3, 4], size=5, bins=2).tolist()
    [0, 0, 0, 1, 1]

    """
    if not 2 <= bins <= size:
        raise ConfigurationError(f"bins is {bins}; 2..{size} bins of {size} items are possible.")
    items = np.asarray(codes, dtype=np.int64)
    if items.size and (int(items.min()) < 0 or int(items.max()) >= size):
        raise InputError(f"an item is outside of 0..{size - 1}; the domain has {size} items.")
    return items * bins // size
