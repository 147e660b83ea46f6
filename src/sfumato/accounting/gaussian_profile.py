"""What Gaussian noise and private choices cost together, as the exact delta of the worst case.

Discrete Gaussian noise of variance s on an integer that moves by T is no easier to see through
than a normal law that moves by mu = (T / sqrt(s)) (1 + 1/(3 s)) of its deviations, and what
several nodes or columns show adds up in mu^2. A choice that is epsilon-private is no easier to see
through than a coin that tells the truth e^epsilon times as often as not. So delta is a sum over
what the coins say of the delta of one normal law, with nothing lost: see
``docs/proofs/discrete-gaussian.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np

from sfumato.core.field_checks import check_number, check_whole
from sfumato.core.intervals import upper_tail
from sfumato.core.noise import exact_epsilon, short_square
from sfumato.errors import ConfigurationError

__all__ = ["GaussianBudget", "composed_delta", "largest_choice"]

_SLACK: Final = 2.0**-40
"""The relative increase of each probability, which covers the rounding of floats."""
_MOST_VALUES: Final = 1000
_STEPS: Final = 60


def composed_delta(epsilon: float, mu: float, choice: float = 0.0, count: int = 0) -> float:
    """Return the delta of Gaussian noise and of ``count`` choices together, rounded up.

    Parameters
    ----------
    epsilon
        The epsilon at which delta is asked for.
    mu
        How far the noisy integers move in all, in standard deviations of their noise.
    choice, count
        The epsilon of each choice, and the number of choices.

    Examples
    --------
    >>> f"{composed_delta(1.0, 0.2367):.3e}"
    '9.996e-07'
    >>> composed_delta(1.0, 0.0, choice=0.5, count=2) < 1e-9
    True

    """
    truths = np.arange(count + 1)
    factorials = np.array([math.lgamma(each + 1) for each in range(count + 1)])
    weights = factorials[-1] - factorials - factorials[::-1]
    weights += choice * truths - count * np.logaddexp(0, choice)
    left = np.asarray(epsilon - (2 * truths - count) * choice, dtype=np.float64)
    if mu > 0:
        more = upper_tail(left / mu - mu / 2) * (1 + _SLACK)
        # What is too small or too large for a float is left out here, which can only raise delta.
        less = np.exp(np.minimum(left, 700)) * upper_tail(left / mu + mu / 2) * (1 - _SLACK)
        deltas = np.clip(more - less, 0, 1)
    else:
        deltas = np.maximum(-np.expm1(left), 0)
    return float((np.exp(weights) * deltas).sum() * (1 + 2.0**-30))


def _largest(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Return nearly the largest number between two for which something holds, as it does at low."""
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def largest_choice(epsilon: float, delta: float, count: int) -> float:
    """Return the largest epsilon of each of several choices that keep (epsilon, delta) together.

    It is a decimal number of six digits, and at least the part of epsilon that each would have.

    Examples
    --------
    >>> largest_choice(1.0, 1e-6, 1), largest_choice(1.0, 1e-6, 30)
    (1.0, 0.0457343)

    """
    check_whole("count", count, 1)
    part = float(exact_epsilon(epsilon) / count)
    best = _largest(lambda each: composed_delta(epsilon, 0.0, each, count) <= delta, part, epsilon)
    digits = 5 - math.floor(math.log10(best))
    rounded = math.floor(best * 10.0**digits) / 10.0**digits
    return max(rounded, part) if count == 1 else rounded


@dataclass(frozen=True)
class GaussianBudget:
    """An epsilon and a delta for all that is published of a row, or of a person.

    Parameters
    ----------
    epsilon, delta
        The privacy of a row or a person.
    columns
        The number of streams in which each row has a value.
    values
        The number of values that a person has in each stream.
    choice
        The epsilon of the choice of a threshold, for one value of one stream; 0 if no threshold is
        chosen from values.
    both
        Whether a value that takes part in a choice is published as well.

    Examples
    --------
    >>> budget = GaussianBudget(1.0, 1e-6, columns=3)
    >>> round(budget.mu, 4), round(budget.rho, 4)
    (0.2367, 0.028)
    >>> round(float(budget.square(100, 1)) / 100**2)
    54

    """

    epsilon: float
    delta: float
    columns: int = 1
    values: int = 1
    choice: float = 0.0
    both: bool = False

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless there is something left for the noise."""
        exact_epsilon(self.epsilon)
        check_number("delta", self.delta, above=0, below=1)
        check_whole("columns", self.columns, 1)
        check_whole("values", self.values, 1, _MOST_VALUES)
        if self.delta_at(1e-6) > self.delta:
            raise ConfigurationError(
                f"threshold is chosen with epsilon {self.choice:g} of each value; together with "
                f"the noise that is more than epsilon {self.epsilon:g} and delta {self.delta:g}."
            )

    def delta_at(self, mu: float) -> float:
        """Return the delta if all values of a person move the noisy integers by mu deviations.

        Unless values are used for both, some of a person's values are in a choice and the others
        are published; the worst number of them counts.
        """
        whole = self.values
        if self.both or not self.choice:
            choice = whole * self.choice
            return composed_delta(self.epsilon, mu, choice, self.columns if choice else 0)
        return max(
            composed_delta(self.epsilon, mu * (whole - held) / whole, held * self.choice, columns)
            for held in range(whole + 1)
            for columns in [self.columns if held else 0]
        )

    @cached_property
    def mu(self) -> float:
        """How far the integers of a person may move in all, in deviations of the noise."""
        return _largest(lambda mu: self.delta_at(mu) <= self.delta, 1e-6, 64.0)

    @cached_property
    def rho(self) -> float:
        """The zCDP of all that is published of a row or a person."""
        choices = self.columns * (self.values * self.choice) ** 2 / 2
        noise = self.mu**2 / 2
        return noise + choices if self.both else max(noise, choices)

    def square(self, threshold: int, changes: int, least: int = 1) -> Fraction:
        """Return the variance of a node's noise, for values cut to a threshold.

        Parameters
        ----------
        threshold
            The most by which a value changes a node of weight one.
        changes
            The sum of the squared weights with which a value counts in the nodes of its stream.
        least
            The largest weight of a node's noise; its variance is divided by it.

        """
        shift = (threshold * self.values) ** 2 * self.columns * changes
        plain = shift / Fraction(self.mu) ** 2
        wider = plain * (1 + least / (3 * plain)) ** 2
        return short_square(max(wider, Fraction(4 * least)))
