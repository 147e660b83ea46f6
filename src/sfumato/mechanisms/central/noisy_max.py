"""Noisy max: the best of many candidates, chosen with one epsilon however many there are."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sfumato.core.noise import exact_epsilon, short_rate
from sfumato.errors import ConfigurationError
from sfumato.randomness import Source

__all__ = ["NoisyMax"]


@dataclass(frozen=True)
class NoisyMax:
    """Report the candidate whose integer score plus noise is largest; of equal ones the first.

    Scores must be *monotone*: between neighbours all of them move the same way, each by at most
    ``sensitivity``. Then noise of rate epsilon / sensitivity is enough: whatever the other
    candidates drew, moving one candidate's own noise up by the sensitivity makes it win on the
    neighbour too, and the upper tail of geometric noise falls by e^-epsilon over that distance.
    The argument needs upper tails only, so one-sided noise of half the variance serves as well.

    Parameters
    ----------
    epsilon
        Privacy of the choice.
    sensitivity
        By how much one event can move a score, in whole numbers.
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
        """Refuse what cannot be."""
        exact_epsilon(self.epsilon)
        if self.sensitivity < 1:
            raise ConfigurationError(f"sensitivity is {self.sensitivity}; it must be at least 1.")
        if self.noise not in {"laplace", "geometric"}:
            raise ConfigurationError(f"noise is {self.noise!r}; laplace or geometric is expected.")

    @property
    def rate(self) -> Fraction:
        """The rate of the noise on each score."""
        return short_rate(exact_epsilon(self.epsilon) / self.sensitivity)

    def select(self, scores: NDArray[np.int64], rng: Source) -> int:
        """Return the index of the winner."""
        draw = rng.discrete_laplace if self.noise == "laplace" else rng.geometric
        return int(np.argmax(scores + draw(self.rate, scores.size)))

    def law(self, scores: list[int], x: Fraction, reach: int = 150) -> list[Fraction]:
        """Return each candidate's probability to win, for noise with x = e^-rate.

        Exact but for own draws beyond ``reach``, which have a probability below x^reach on either
        side. For small cases: privacy must hold for every x, and is checked over this.
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
