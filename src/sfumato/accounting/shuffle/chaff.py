"""Chaff: meaningless messages beside each real one, which hide it in a crowd.

A device sends one *signal*, a symbol that is R times as likely if it is one of its s own, and some
*dummies*: symbols drawn evenly from all A. Whatever it holds, its signal is drawn evenly with
probability 1/N, N = 1 + (R - 1) s/A. Show the observer all signals of others that are
not. What is left is one signal among M messages drawn evenly: the dummies of all n devices, and the
signals of others that are. Given all of them in random order, each is equally likely to be the
signal, so

    delta(epsilon) <= E[(G_1 + ... + G_(M+1))_+ / (M + 1)],  G = A (P_a - e^epsilon P_b)(y).

The mean of k + 1 copies is below that of k in convex order, so a number of messages may stand for
M + 1 that M + 1 reaches with probability 1 - eta, and eta is added to delta. (docs/proofs/chaff.md)
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np

from sfumato.accounting.shuffle.profile import delta_above, solved
from sfumato.arrays import Floats
from sfumato.core.contrast import Contrast, Contrasts, favoured
from sfumato.core.exact import log_above
from sfumato.errors import ConfigurationError

__all__ = ["Chaff", "Chaffed", "Unlinked"]

_SPENT: Final = 1e-3  # the part of delta that the case of few messages may use
_PRECISION: Final = 1e-9
_SUMMED: Final = 1e-13  # the relative error of a sum of chances
_ROUNDED: Final = 1e-15  # the error of a transform at each of its points
COINS: Final = 1 << 32
"""The chance of one more dummy is a whole number of these units."""


@dataclass(frozen=True)
class Chaff:
    """The number of meaningless messages that each device sends beside its real one.

    Parameters
    ----------
    dummies
        Their mean number: the whole part for certain, and one more with the rest as a chance, in
        units of 2^-32.

    """

    dummies: Fraction

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless the number can be drawn."""
        exact = Fraction(self.dummies)
        if exact < 0 or (exact * COINS).denominator != 1:
            raise ConfigurationError(
                f"dummies is {self.dummies}; a multiple of 2^-32 from 0 on is expected."
            )
        object.__setattr__(self, "dummies", exact)

    @property
    def certain(self) -> int:
        """The number of dummies that every device sends."""
        return int(self.dummies)

    @property
    def chance(self) -> Fraction:
        """The chance of one more."""
        return self.dummies - self.certain

    def senders(self, messages: int, rare: float) -> int:
        """Return how many devices so many messages come from at least, but for a chance ``rare``.

        That is the chance that fewer devices send as many, by Bernstein's inequality.
        """
        chance = float(self.chance)
        surely = -(-messages // (1 + self.certain + (chance > 0)))
        if not chance or rare <= 0:
            return surely
        length = -math.log(rare)

        def send_fewer(people: int) -> bool:
            spread = people * chance * (1 - chance)
            more = length / 3 + math.sqrt(length**2 / 9 + 2 * spread * length)
            most = people * (1 + self.certain + chance) * (1 + 1e-12) + more * (1 + 1e-12)
            return most < messages

        low, high = surely, max(surely, messages)
        while high - low > 1:  # with ``low`` devices, or with one less, there are too few
            middle = (low + high) // 2
            low, high = (middle, high) if send_fewer(middle) else (low, middle)
        return high if send_fewer(low) else low

    def reached(self, people: int, uniform: float, rare: float) -> int:
        """Return a number of evenly drawn messages that is there except with chance ``rare``.

        Parameters
        ----------
        people
            The number of people who hide each other, the one in question included.
        uniform
            The chance that a signal is drawn evenly, whatever its sender holds.
        rare
            The chance that there are fewer, by Bernstein's inequality; 0 counts on nothing that is
            drawn.

        """
        sure = people * self.certain + 1  # all certain dummies, and the signal itself
        if rare <= 0:
            return sure
        chance = float(self.chance)
        mean = people * chance + (people - 1) * uniform
        spread = people * chance * (1 - chance) + (people - 1) * uniform * (1 - uniform)
        length = -math.log(rare)
        short = length / 3 + math.sqrt(length**2 / 9 + 2 * spread * length)
        return sure + max(0, math.ceil(mean * (1 - 1e-12) - short * (1 + 1e-12)))


class Unlinked(ABC):
    """A signal with dummies beside it, each a message of its own, drawn from its even part.

    The even part of a signal is the one that does not depend on what its sender holds: whatever
    that is, the signal is drawn from one and the same law with some probability.
    """

    chaff: Chaff

    @property
    @abstractmethod
    def worst_ratio(self) -> Fraction:
        """The largest ratio of two inputs' probabilities of a device's messages.

        Dummies do not depend on what is held, so it is that of the signal.
        """

    @abstractmethod
    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return the contrasts of the signal among signals: dummies can only hide it better."""

    @cached_property
    def even(self) -> float:
        """The probability with which a signal is drawn from its even part."""
        return float(self._bounding.chances.sum())

    @cached_property
    def contrast(self) -> Contrast:
        """The contrast of the worst two inputs among messages that are drawn from the even part."""
        worst, even = self._bounding, self.even
        error = worst.error + _SUMMED
        return Contrast(worst.chances / even, worst.first * even, worst.second * even, error)

    @cached_property
    def _bounding(self) -> Contrast:
        (worst,) = self.contrasts()[0].bounding
        return worst

    @abstractmethod
    def least_epsilon(self, people: int, delta: float) -> float:
        """Return an epsilon that some people's messages violate, so that no smaller one holds."""

    @property
    def local(self) -> float:
        """The local epsilon, which holds for whoever links all messages of a device."""
        return log_above(self.worst_ratio)

    def delta_among(self, people: int, epsilon: float, goal: float) -> float:
        """Return a delta that holds among so many people; ``goal`` is about what is hoped for."""
        if epsilon >= self.local:
            return 0.0
        alone = delta_above([self._bounding], people, epsilon)
        if not self.chaff.dummies:
            return alone
        rare = _SPENT * goal
        reached = self.chaff.reached(people, self.even, rare)
        return min(delta_above([self.contrast], reached, epsilon) + rare, alone)

    def epsilon_among(self, people: int, delta: float) -> float:
        """Return an epsilon that holds at this delta, never above the local one."""

        def delta_at(epsilon: float) -> float:
            return self.delta_among(people, epsilon, delta)

        return self._crossing(delta_at, people, delta, above=True)

    def senders(self, messages: int, delta: float) -> int:
        """Return how many people so many messages come from, but for a thousandth of delta."""
        return self.chaff.senders(messages, _SPENT * delta)

    def _crossing(
        self,
        delta_at: Callable[[float], float],
        people: int,
        delta: float,
        *,
        above: bool,
    ) -> float:
        """Return an end of a short interval of epsilons in which a delta is reached."""
        if not delta:
            return self.local
        if delta_at(0.0) <= delta:
            return 0.0
        spread = float(self.contrast.chances @ (self.contrast.first - self.contrast.second) ** 2)
        messages = people * (float(self.chaff.dummies) + self.even)
        guess = math.sqrt(max(-math.log(delta), 1.0) * spread / messages)
        low, high, _ = solved(delta_at, delta, 0.0, self.local, guess, precision=_PRECISION)
        return high if above else low


@dataclass(frozen=True)
class Chaffed(Unlinked):
    """A signal of one symbol with dummies beside it, each a message of its own.

    Parameters
    ----------
    ratio
        How many times as likely an own symbol is as another one, at most.
    symbols, own
        The number of symbols, and of those that are a sender's own.
    chaff
        The dummies.

    """

    ratio: Fraction
    symbols: int
    own: int
    chaff: Chaff

    @property
    def worst_ratio(self) -> Fraction:
        """The largest ratio of two inputs' probabilities of a device's messages.

        Dummies do not depend on what is held, so it is that of the signal.
        """
        return self.ratio

    @cached_property
    def _norm(self) -> Fraction:
        return 1 + (self.ratio - 1) * Fraction(self.own, self.symbols)

    def contrasts(self) -> tuple[Contrasts, ...]:
        """Return the contrasts of the signal among signals: dummies can only hide it better."""
        share = Fraction(self.own, self.symbols)
        if 2 * share > 1:
            raise ConfigurationError(
                f"symbols is {self.symbols}; two inputs of {self.own} symbols need as many each."
            )
        shares = {(1, 0): share, (0, 1): share, (0, 0): 1 - 2 * share}
        return (Contrasts((favoured(self.ratio, shares),), ()),)

    def least_epsilon(self, people: int, delta: float) -> float:
        """Return an epsilon that some people's messages violate, so that no smaller one holds.

        All others hold a value that has no symbol in common with two inputs, and the observer only
        looks at how many more symbols of the first there are than of the second.
        """
        return self._crossing(self._test(people), people, delta, above=False)

    def _test(self, people: int) -> Callable[[float], float]:
        """Return the delta that such an observer reaches, as a function of epsilon."""
        share, norm = self.own / self.symbols, float(self._norm)
        certain, chance = self.chaff.certain, float(self.chaff.chance)
        deviation = math.sqrt(2 * share * people * (certain + chance + 1 / norm))
        size = 1 << math.ceil(math.log2(100 * deviation + 200))
        turn = 2 * np.cos(2 * np.pi * np.arange(size // 2 + 1) / size) - 2
        dummies = (1 + share * turn) ** (people * certain) * (1 + chance * share * turn) ** people
        others = np.fft.irfft(dummies * (1 + share / norm * turn) ** (people - 1), size)
        own = float(self.ratio) * share / norm
        other = share / norm

        def of_one(more: float, less: float) -> Floats:
            rest = 1 - more - less
            return np.asarray(
                more * np.roll(others, 1) + less * np.roll(others, -1) + rest * others
            )

        first, second = of_one(own, other), of_one(other, own)

        def delta(epsilon: float) -> float:
            apart = first - math.exp(epsilon) * second
            return float(apart[apart > 0].sum()) - _ROUNDED * size

        return delta
