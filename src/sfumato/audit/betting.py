"""A bet against a claim of privacy, whose winnings may be looked at after every sample.

A claim of (epsilon, delta) says of an event, with probability p for one value and q for another,
that p <= e^epsilon q + delta. A gambler who doubts it draws one output for each value, and stakes
the share f of what he has: it is multiplied by

    1 + f (X - delta - e^epsilon Y),

where X and Y are 1 if the event happens for the first and for the second value. If the claim is
true, this is 1 at most on average, whatever happened before; so his wealth is a supermartingale,
and he ever gets a hundredfold with a probability of 1% at most (Ville's inequality). He spreads his
first stake over several shares f and several events, each chosen before the outputs on which it
wins or loses; the sum is a supermartingale again. See docs/proofs/audit.md.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["KINDS", "epsilon_at_least", "kinds_of", "log_wealth"]

KINDS: Final = 4
"""The kinds of a pair of outputs: the event happens for both, for the first, the second, none."""

SHARES: Final = 2.0 ** (-np.arange(40) / 2)
"""The shares of the wealth that are staked, each with an equal part of the first stake."""

LARGEST: Final = 40.0
"""The largest epsilon that can be shown; no number of samples that fits on a disk shows more."""

ROUNDED: Final = 1e-6
"""More than the logarithm of a wealth can be too large by rounding; taken off it."""


def kinds_of(first: NDArray[np.bool_], second: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return how many pairs there are of each kind."""
    return np.bincount(3 - 2 * first.astype(np.int64) - second, minlength=KINDS)


def log_wealth(
    counts: NDArray[np.int64], epsilon: float, delta: float = 0.0
) -> NDArray[np.float64]:
    """Return the logarithm of the wealth that a stake of one has become, for each event.

    It falls with epsilon, and is minus infinity where nothing can be staked.

    Parameters
    ----------
    counts
        The number of pairs of each kind, in the last axis.
    epsilon, delta
        The claim that is bet against.

    Examples
    --------
    >>> counts = np.array([[1_900, 5_600, 600, 1_900]])  # p is 0.75 and q is 0.25
    >>> log_wealth(counts, 1.0).round(1), log_wealth(counts, 1.2).round(1)
    (array([12.]), array([-0.8]))

    """
    times = math.exp(epsilon)
    gains = np.array([1 - delta - times, 1 - delta, -delta - times, -delta])
    factors = 1 + SHARES[:, None] * gains
    factors = factors[factors.min(axis=1) > 0]  # nobody can stake more than he has
    if not len(factors):
        return np.full(counts.shape[:-1], -np.inf)
    wealth = np.logaddexp.reduce(counts @ np.log(factors).T, axis=-1)
    return np.asarray(wealth - math.log(len(SHARES)) - ROUNDED)


def epsilon_at_least(counts: NDArray[np.int64], needed: float, delta: float = 0.0) -> float:
    """Return the largest epsilon against which the events together have won enough; 0 if none.

    Parameters
    ----------
    counts
        The number of pairs of each kind, for each event.
    needed
        The logarithm of the sum of what stakes of one have to become.
    delta
        The delta of the claim.

    """

    def refuted(epsilon: float) -> bool:
        wealth = log_wealth(counts, epsilon, delta)
        return len(wealth) > 0 and float(np.logaddexp.reduce(wealth)) >= needed

    low, high = 0.0, LARGEST
    if not refuted(low):
        return 0.0
    while high - low > 1e-6:  # what is refuted is all up to some epsilon
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low
