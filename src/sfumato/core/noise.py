"""The contract of noise in the central model: integers in, integers out, and the exact law."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, ClassVar, Final, Protocol, Self

from sfumato.arrays import Ints
from sfumato.core.exact import checked_epsilon
from sfumato.core.field_checks import check_whole
from sfumato.errors import ConfigurationError
from sfumato.randomness import Source

__all__ = [
    "DrawnLaw",
    "GaussianLaw",
    "Noise",
    "NoiseLaw",
    "exact_epsilon",
    "share_of",
    "short_rate",
    "short_square",
]


_LONGEST_TERM: Final = 1 << 52


def exact_epsilon(given: float) -> Fraction:
    """Return epsilon as an exact fraction, equal to the decimal number as written.

    Examples
    --------
    >>> exact_epsilon(0.1)
    Fraction(1, 10)

    """
    return Fraction(repr(checked_epsilon(given)))


def share_of(epsilon: float, share: Fraction) -> float:
    """Return a share of epsilon, rounded down to a float whose decimal form is not larger.

    Examples
    --------
    >>> share_of(0.1, Fraction(1, 3))
    0.03333333333333333

    """
    exact = exact_epsilon(epsilon) * share
    part = float(exact)
    while Fraction(repr(part)) > exact:
        part = math.nextafter(part, 0)
    return part


def short_rate(rate: Fraction) -> Fraction:
    """Return the rate rounded down to a fraction with terms up to 2^52; noise can only grow.

    It loses less than one part in 2^50.

    Examples
    --------
    >>> short_rate(Fraction(1, 10**17))
    Traceback (most recent call last):
    ...
    sfumato.errors.ConfigurationError: the noise would spread over 1e+17 units; 2^52 is the most, so
    use a larger unit.

    """
    if max(rate.numerator, rate.denominator) <= _LONGEST_TERM:
        return rate
    if rate * _LONGEST_TERM < 1:
        raise ConfigurationError(
            f"the noise would spread over {float(1 / rate):.3g} units; 2^52 is the most, "
            "so use a larger unit."
        )
    if rate >= 1:
        denominator = _LONGEST_TERM // (int(rate) + 1)
        return Fraction(math.floor(rate * denominator), denominator)
    numerator = math.floor(rate * (_LONGEST_TERM - 1))
    return Fraction(numerator, math.ceil(numerator / rate))


def short_square(square: Fraction) -> Fraction:
    """Return a variance rounded up to a fraction of 24 significant bits; noise can only grow.

    Examples
    --------
    >>> short_square(Fraction(10, 3))
    Fraction(6990507, 2097152)

    """
    if square > _LONGEST_TERM**2 >> 4:
        raise ConfigurationError(
            f"the noise would spread over {math.sqrt(square):.3g} units; 2^50 is the most, "
            "so use a larger unit."
        )
    step = Fraction(2) ** (math.floor(math.log2(square)) - 23)
    return math.ceil(square / step) * step


class DrawnLaw(Protocol):
    """The law of noise on integers, from which it is drawn exactly."""

    @property
    def variance(self) -> float:
        """The variance of the noise."""

    @property
    def excess_kurtosis(self) -> float:
        """The fourth cumulant divided by the squared variance."""

    def draw(self, n: int, rng: Source) -> Ints:
        """Return n independent draws."""


@dataclass(frozen=True)
class NoiseLaw:
    """Two-sided geometric noise: P[z] = (1 - x) / (1 + x) x^|z| with x = e^-rate.

    The rate is rational, so every statement about privacy is exact: no output becomes more than
    e^(rate shift) times as likely when the true integers change by ``shift`` in all.

    Examples
    --------
    >>> law = NoiseLaw(Fraction(1, 2))
    >>> law.epsilon(shift=2)
    Fraction(1, 1)
    >>> round(sum(law.probability(z) for z in range(-99, 100)), 12)
    1.0

    """

    rate: Fraction

    def epsilon(self, shift: int) -> Fraction:
        """Return the log of the worst likelihood ratio when the integers change by ``shift``."""
        return self.rate * shift

    def probability(self, z: int) -> float:
        """Return the probability of adding z."""
        rate = float(self.rate)
        return math.tanh(rate / 2) * math.exp(-rate * abs(z))

    @property
    def variance(self) -> float:
        """The variance of the noise, 2 x / (1 - x)^2."""
        return 1 / (2 * math.sinh(float(self.rate) / 2) ** 2)

    @property
    def excess_kurtosis(self) -> float:
        """The fourth cumulant divided by the squared variance; 3 in the limit of a Laplace law."""
        return 3 + 1 / self.variance

    def draw(self, n: int, rng: Source) -> Ints:
        """Return n independent draws."""
        return rng.discrete_laplace(self.rate, n)


@dataclass(frozen=True)
class GaussianLaw:
    """Discrete Gaussian noise: P[z] proportional to e^(-z^2 / (2 square)), with a rational square.

    From a square of 4 on, its variance differs from that of a normal law by less than one part in
    10^30.

    Examples
    --------
    >>> law = GaussianLaw(Fraction(9))
    >>> law.variance
    9.0
    >>> round(sum(law.probability(z) for z in range(-99, 100)), 12)
    1.0

    """

    square: Fraction

    excess_kurtosis: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        """Raise ConfigurationError if the law is too narrow to be as good as normal."""
        if self.square < 4:
            raise ConfigurationError(f"square is {float(self.square):g}; at least 4 is expected.")

    def probability(self, z: int) -> float:
        """Return the probability of adding z."""
        return math.exp(-(z**2) / (2 * self.variance)) / math.sqrt(2 * math.pi * self.variance)

    @property
    def variance(self) -> float:
        """The variance of the noise."""
        return float(self.square)

    def draw(self, n: int, rng: Source) -> Ints:
        """Return n independent draws."""
        return rng.discrete_gaussian(self.square, n)


@dataclass(frozen=True)
class Noise(ABC):
    """What a trusted curator adds to integers before publishing them.

    Parameters
    ----------
    epsilon
        The privacy of all integers that noise is added to in one call.
    sensitivity
        The sum of the absolute changes that one event can make to the integers.

    """

    epsilon: float
    sensitivity: int

    name: ClassVar[str]
    summary: ClassVar[str]

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless noise can keep this epsilon at this sensitivity."""
        exact_epsilon(self.epsilon)
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "sensitivity", check_whole("sensitivity", self.sensitivity, 1))

    def configuration(self) -> dict[str, Any]:
        """Return the noise as plain data: its name and its fields."""
        return {"noise": self.name} | {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    @abstractmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""

    @abstractmethod
    def add(self, integers: Ints, rng: Source) -> Ints:
        """Return the integers with independent noise added to each."""

    @abstractmethod
    def law(self) -> NoiseLaw:
        """Return the exact law of the noise that is added to each integer."""
