"""Readings: what a cohort's answers say about all devices, with their uncertainty.

A cohort is a sample of the population, so its answers vary for two reasons: the noise of the
mechanism and the sampling of devices. With n of N devices the second variance is f(1 - f)/n times
(N - n)/(N - 1) for a share f; for a mean the variance of the numbers replaces f(1 - f). Leaving it
out makes every distance look larger than it is (by up to 27% at epsilon 1 on two items) and every
interval too short.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import inf

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.tally import Tally
from sfumato.mechanisms.frequency.oracle import FrequencyOracle
from sfumato.mechanisms.mean.numeric import NumericMechanism

__all__ = ["Asking", "Reading", "planned_variance", "read", "sampling"]

Asking = FrequencyOracle | NumericMechanism
"""The mechanisms of questions: for shares of items, or for a mean."""


@dataclass(frozen=True, eq=False)
class Reading:
    """Unbiased values from one cohort.

    Parameters
    ----------
    values
        One share for each item, or one mean.
    variance
        The variance of each value, from noise and sampling; for intervals, so never negative.
    average
        An unbiased estimate of the mean variance over the items, by which squared distances are too
        large.
    spread
        An unbiased estimate of the variance in the population, averaged over the items.
    n
        The number of answers.

    """

    values: Floats
    variance: Floats
    average: float
    spread: float
    n: int


@lru_cache(maxsize=4096)
def _noise(mechanism: FrequencyOracle) -> float:
    """Return n times the noise of a share, averaged over the items; cached, as it is exact."""
    return mechanism.mse


def sampling(received: float, devices: int) -> float:
    """Return the factor of the population's variance in the variance of a sample's mean."""
    if received <= 0:
        return inf
    return max(0.0, devices - received) / (max(1, devices - 1) * received)


def read(mechanism: Asking, tally: Tally, devices: int) -> Reading:
    """Return the reading of a tally, for a population of ``devices`` devices."""
    estimate = mechanism.estimate(tally)
    noise = estimate.covariance.variances()
    drawn = sampling(tally.n, devices)
    if isinstance(mechanism, FrequencyOracle):
        shares = estimate.values
        # E[f'] = f and E[f'^2] = f^2 + noise + drawn f(1 - f), hence without bias:
        spreads = (shares * (1 - shares) + noise) / (1 - drawn) if drawn < 1 else noise * 0
        spread = float(spreads.mean())
        average = _noise(mechanism) / tally.n + drawn * spread
        return Reading(
            shares, noise + drawn * np.clip(spreads, 0.0, 0.25), average, spread, tally.n
        )
    # A bit does not tell the variance of the numbers, but its noise is computed as if all numbers
    # were equal, which for a small sample gives the same sum: (A^2 - E v^2) + (E v^2 - mean^2).
    point, square = mechanism.moments(tally)
    widest = (mechanism.high - mechanism.low) ** 2 / 4
    spread = min(max(mechanism.step**2 * (square - point**2) + float(noise[0]), 0.0), widest)
    variance = noise + drawn * spread
    return Reading(estimate.values, variance, float(variance[0]), spread, tally.n)


def planned_variance(
    mechanism: Asking, received: float, devices: int, known: Reading | None
) -> float:
    """Return the variance of a reading of ``received`` answers, averaged over the items.

    The noise of shares does not depend on the data. Their variance in the population, and the noise
    of a mean, come from a known reading or are the largest possible.
    """
    if received <= 0:
        return inf
    drawn = sampling(received, devices)
    if isinstance(mechanism, FrequencyOracle):
        widest = (1 - 1 / mechanism.size) / mechanism.size
        spread = widest if known is None else min(max(known.spread, 0.0), widest)
        return _noise(mechanism) / received + drawn * spread
    if known is None:
        widest = (mechanism.high - mechanism.low) ** 2 / 4
        return mechanism.worst_variance / received + drawn * widest
    value = float(np.clip(known.values[0], mechanism.low, mechanism.high))
    return mechanism.variance(value) / received + drawn * known.spread
