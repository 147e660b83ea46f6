"""Shares of many items that learn from each other how large they are.

Where noise is larger than most shares, the nearest shares that are not negative and sum to one are
still far from the truth: whichever items came out largest keep what noise gave them. Here shares
are taken for draws from one unknown mixture of exponential laws of different means, which all items
estimate together (empirical Bayes). An item that stands out of the noise stays as it is; others are
moved to where the crowd is.
"""

from __future__ import annotations

from math import log, pi, sqrt
from typing import Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.intervals import upper_tail

__all__ = ["ShareMixture", "log_inside", "truncated"]

SCALES: Final = 2.0 ** -np.arange(13)
"""The means of the exponential laws."""
FAR: Final = -8.0
"""The deviations below zero from which on a normal tail is followed by its series."""


class ShareMixture:
    """A mixture of exponential laws, from which shares are drawn.

    Examples
    --------
    >>> seen = np.array([0.9, 0.3, -0.3, 0.1, -0.2, 0.2, -0.1, 0.1])
    >>> shares, variances = ShareMixture().posterior(seen, np.full(8, 0.04))
    >>> bool(shares[0] > 0.7), bool(shares[1:].max() < 0.2), bool((variances[1:] < 0.03).all())
    (True, True, True)

    """

    def __init__(self) -> None:
        self._parts = np.full(SCALES.size, 1 / SCALES.size)
        self._rounds = 20

    def posterior(self, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
        """Return each share's posterior mean and variance, given what each item says alone.

        Parameters
        ----------
        mean, variance
            An estimate of each share without this assumption, and its variance.

        """
        spread = np.sqrt(variance)[:, None]
        centre = mean[:, None] - variance[:, None] / SCALES
        deviations = centre / spread
        inside = log_inside(deviations)
        heard = (
            variance[:, None] / (2 * SCALES**2) - mean[:, None] / SCALES - np.log(SCALES) + inside
        )
        likely = np.exp(heard - heard.max(axis=1, keepdims=True))
        weights = likely * self._parts
        for _ in range(self._rounds):
            weights /= weights.sum(axis=1, keepdims=True)
            self._parts = (1 / SCALES.size + weights.sum(axis=0)) / (1 + len(mean))
            weights = likely * self._parts
        self._rounds = 4  # the mixture hardly changes from one period to the next
        weights /= weights.sum(axis=1, keepdims=True)
        means, variances = truncated(deviations, inside)
        means, variances = spread * means, spread**2 * variances
        share = (weights * means).sum(axis=1)
        return share, (weights * (variances + (means - share[:, None]) ** 2)).sum(axis=1)


def log_inside(deviations: Floats) -> Floats:
    """Return the logarithm of the probability that a normal number with this mean is above 0."""
    near = np.maximum(deviations, FAR)
    far = np.minimum(deviations, FAR)
    series = -(far**2) / 2 - np.log(-far * sqrt(2 * pi)) + np.log1p(-1 / far**2 + 3 / far**4)
    return np.where(deviations > FAR, np.log(upper_tail(-near)), series)


def truncated(deviations: Floats, inside: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance of a normal number with this mean, given that it is above 0."""
    hazard = np.exp(-(deviations**2) / 2 - log(2 * pi) / 2 - inside)
    far = np.minimum(deviations, FAR)
    near = deviations > FAR
    mean = np.where(near, deviations + hazard, -1 / far + 2 / far**3)
    variance = np.where(near, 1 - hazard * (hazard + deviations), 1 / far**2 - 6 / far**4)
    return mean, np.maximum(variance, 0.0)
