"""Noisy max: the best of many candidates, chosen with one epsilon for any number of them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from sfumato.arrays import Ints
from sfumato.core.field_checks import check_one_of, check_whole
from sfumato.core.noise import exact_epsilon, short_rate
from sfumato.randomness import Source

__all__ = ["NoisyMax"]


@dataclass(frozen=True)
class NoisyMax:
    """Choose the candidate with the largest integer score plus noise; the first one of equals.

    Scores must be *monotone*: between neighbouring inputs they all change in the same direction,
    each by at most ``sensitivity``. Then noise of rate epsilon / sensitivity is enough: for any
    noise of the other candidates, raising one candidate's own noise by the sensitivity makes it win
    on the neighbouring input too, and the upper tail of geometric noise falls by e^-epsilon over
    that distance. The argument needs upper tails only, so one-sided noise of half the variance
    serves as well.

    Parameters
    ----------
    epsilon
        The privacy of the choice.
    sensitivity
        The most by which one event can change a score, a whole number.
    noise
        ``laplace`` (two-sided, as published for ToPS) or ``geometric`` (one-sided).

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> NoisyMax(epsilon=1.0).select(np.array([3, 900, 5]), seeded(1))
    1

    References
    ----------
    Dwork and Roth, "The Algorithmic Foundations of Differential Privacy" (2014); Ding, Kifer,
    Sayed M. Saghaian N. E., Steinke, Wang, Xiao, Zhang, "The Permute-and-Flip Mechanism is
    Identical to Report-Noisy-Max with Exponential Noise" (2021).

    """

    epsilon: float
    sensitivity: int = 1
    noise: Literal["laplace", "geometric"] = "laplace"

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless all fields are allowed."""
        exact_epsilon(self.epsilon)
        check_whole("sensitivity", self.sensitivity, 1)
        check_one_of("noise", self.noise, ("laplace", "geometric"))

    @property
    def rate(self) -> Fraction:
        """The rate of the noise that is added to each score."""
        return short_rate(exact_epsilon(self.epsilon) / self.sensitivity)

    def select(self, scores: Ints, rng: Source) -> int:
        """Return the index of the chosen candidate."""
        draw = rng.discrete_laplace if self.noise == "laplace" else rng.geometric
        return int(np.argmax(scores + draw(self.rate, scores.size)))

    def law(self, scores: list[int], x: Fraction, reach: int = 150) -> list[Fraction]:
        """Return the probability that each candidate is chosen, for noise with x = e^-rate.

        It is exact except for draws beyond ``reach``, which have a probability below x^reach on
        either side. It serves checks of small cases, in which privacy must hold for every x.
        """
        two_sided = self.noise == "laplace"
        powers = [x**k for k in range(reach + max(scores) - min(scores) + 3)]

        def chance(z: int) -> Fraction:
            if not two_sided:
                return (1 - x) * powers[z] if z >= 0 else Fraction(0)
            return (1 - x) / (1 + x) * powers[abs(z)]

        def at_most(z: int) -> Fraction:
            if not two_sided:
                return 1 - powers[z + 1] if z >= 0 else Fraction(0)
            return 1 - powers[z + 1] / (1 + x) if z >= 0 else powers[-z] / (1 + x)

        won = []
        for mine, score in enumerate(scores):
            total = Fraction(0)
            for z in range(-reach if two_sided else 0, reach + 1):
                term = chance(z)
                for other, rival in enumerate(scores):
                    if other != mine:
                        term *= at_most(score + z - rival - (other < mine))
                total += term
            won.append(total)
        return won
