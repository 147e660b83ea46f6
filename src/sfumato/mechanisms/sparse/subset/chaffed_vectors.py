"""Sparse vectors sent as one symbol with chaff: its error, its dummies and the choice of both.

The symbol is that of ExSub with subsets of one; the dummies are drawn evenly from all symbols,
stubs included, whatever is held. Only for transports that unlink the messages of a device.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, Self

import numpy as np

from sfumato.accounting.shuffle import Chaff, Chaffed, Requirement, calibrated
from sfumato.arrays import Floats, Ints
from sfumato.core.contrast import Contrasts
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse.subset.signed_subset import ExSub
from sfumato.randomness import ONE, Source

__all__ = ["ChaffedVectors"]

_REFINED: Final = 5
"""How often the step between two numbers of dummies is halved."""


@dataclass(frozen=True)
class ChaffedVectors:
    """One symbol of each sparse vector, with dummies beside it.

    Parameters
    ----------
    signal
        The mechanism of the symbol: ExSub with subsets of one.
    chaff
        The dummies.

    Examples
    --------
    >>> required = Requirement(0.05, 1e-6, 10_000)
    >>> best = ChaffedVectors.best(256, 8, required, most=4.0, messages=4)
    >>> f"{best.mse:.0f}, epsilon {best.signal.epsilon:.1f}, {best.chaff.dummies} dummies"
    '4181, epsilon 3.2, 4 dummies'

    """

    signal: ExSub
    chaff: Chaff

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless the signal is one symbol."""
        if self.signal.size != 1 or self.signal.exact_sparsity:
            raise ConfigurationError(
                f"the signal is {self.signal}; subset_size = 1 with stubs is expected."
            )

    # ---- accounting ----------------------------------------------------------------------------

    @cached_property
    def hidden(self) -> Chaffed:
        """The messages of a device as accounting sees them."""
        symbols = 2 * self.signal.padded_dimension
        return Chaffed(self.signal.worst_ratio, symbols, self.signal.sparsity, self.chaff)

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of two inputs' probabilities of a device's messages."""
        return self.hidden.worst_ratio

    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return the contrasts of the signal among other signals."""
        return self.hidden.contrasts()

    def delta_among(self, people: int, epsilon: float, goal: float) -> float:
        """Return a delta that holds among so many people."""
        return self.hidden.delta_among(people, epsilon, goal)

    def epsilon_among(self, people: int, delta: float) -> float:
        """Return an epsilon that holds at this delta."""
        return self.hidden.epsilon_among(people, delta)

    def least_epsilon(self, people: int, delta: float) -> float:
        """Return an epsilon that some people's messages violate."""
        return self.hidden.least_epsilon(people, delta)

    def senders(self, messages: int, delta: float) -> int:
        """Return how many people so many messages come from."""
        return self.hidden.senders(messages, delta)

    # ---- what is sent and what is read -----------------------------------------------------------

    @property
    def _even(self) -> float:
        """The mean number of a device's dummies that are one given symbol."""
        return float(self.chaff.dummies) / (2 * self.signal.padded_dimension)

    @property
    def contrast(self) -> float:
        """The divisor of a symbol in an estimate."""
        return self.signal.probabilities.contrast

    def value_variances(self) -> tuple[float, float]:
        """Return the variance of a device's part of a value, at a zero and at another entry."""
        law, noise = self.signal.probabilities, 2 * self._even
        square = law.contrast**2
        return (2 * law.p_false + noise) / square, (law.p_true + law.p_reverse + noise) / square - 1

    @property
    def mse(self) -> float:
        """The number of people times the squared error of the means, over all entries."""
        zero, other = self.value_variances()
        return (self.signal.dimension - self.signal.sparsity) * zero + self.signal.sparsity * other

    @property
    def messages(self) -> float:
        """The mean number of messages of a device."""
        return 1 + float(self.chaff.dummies)

    @property
    def influence(self) -> float:
        """The most by which a forged device can change a sum, with all messages it may send."""
        return (1 + self.chaff.certain + (self.chaff.chance > 0)) / self.contrast

    def dummies(self, people: int, rng: Source) -> Ints:
        """Return the symbols of all dummies of so many people, stubs included.

        Symbols are numbered entry by entry, plus before minus.
        """
        more = int(rng.bernoulli(int(self.chaff.chance * ONE), people).sum())
        number = people * self.chaff.certain + more
        return np.asarray(rng.below(2 * self.signal.padded_dimension, number))

    def estimate(self, counts: Ints, people: int) -> tuple[Floats, Floats]:
        """Return the means of all entries and how often each is there.

        Parameters
        ----------
        counts
            How often each symbol came, in two rows: plus and minus.
        people
            The number of devices.

        """
        law = self.signal.probabilities
        plus, minus = counts
        values = (plus - minus) / (people * law.contrast)
        even = 2 * (law.p_false + self._even)
        presence = ((plus + minus) / people - even) / (law.p_true + law.p_reverse - 2 * law.p_false)
        return np.asarray(values), np.asarray(presence)

    # ---- the choice ----------------------------------------------------------------------------

    @classmethod
    def best(
        cls,
        dimension: int,
        sparsity: int,
        required: Requirement,
        most: float,
        messages: int | Fraction,
        *,
        whole: bool = False,
    ) -> Self:
        """Return the epsilon and the number of dummies of least error under a central promise.

        Parameters
        ----------
        dimension, sparsity
            The sizes of the vectors.
        required
            The promise about shuffled reports, with its crowd of devices.
        most
            The largest local epsilon that devices allow.
        messages
            The largest mean number of dummies.
        whole
            Whether all devices have the same number of dummies.

        """
        fitted: dict[Fraction, Self] = {}

        def error(dummies: Fraction) -> float:
            if dummies not in fitted:
                fitted[dummies] = cls._calibrated(dimension, sparsity, required, most, dummies)
            return fitted[dummies].mse

        best = min(map(Fraction, range(int(messages) + 1)), key=error)
        step = Fraction(1)
        for _ in range(0 if whole else _REFINED):
            step /= 2
            beside = [best, best - step, best + step]
            best = min((each for each in beside if 0 <= each <= messages), key=error)
        return fitted[best]

    @classmethod
    def _calibrated(
        cls,
        dimension: int,
        sparsity: int,
        required: Requirement,
        most: float,
        dummies: Fraction,
    ) -> Self:
        chaff = Chaff(dummies)
        make: Callable[[float], Self] = lambda epsilon: cls(  # noqa: E731 -- a type is needed
            ExSub(epsilon, dimension, sparsity, subset_size=1), chaff
        )
        return calibrated(make, required, most)
