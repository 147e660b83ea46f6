"""Whole populations on an endless stream: the same curators, with everybody in this process.

Each simulated device keeps its own ledger, as one entry of an array; who answers is drawn among
those whose window affords the question; what they send is drawn as one tally from its exact law.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sfumato.accounting.ledger import units
from sfumato.accounting.windows import whole_units
from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Ask, Question, drive
from sfumato.core.tally import Tally
from sfumato.errors import BudgetError, InputError, MismatchError
from sfumato.mechanisms.frequency.oracle import FrequencyOracle
from sfumato.randomness import Source
from sfumato.streams.window import Tiers, Window, WindowEstimate

__all__ = ["Asked", "Ledgers", "Population", "Run", "run", "steps"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Population(Protocol):
    """What people hold, period by period; periods count from 1.

    ``values`` are codes 0..d-1 of the domain's items, or numbers; one for each device.
    """

    @property
    def periods(self) -> int:
        """How many periods there are."""

    @property
    def devices(self) -> int:
        """How many devices there are."""

    def values(self, period: int) -> NDArray[Any]:
        """Return what each device holds."""

    def truth(self, period: int) -> Floats:
        """Return the share of each item, or the mean."""


class Ledgers:
    """The window ledgers of many devices at once.

    Parameters
    ----------
    devices
        How many.
    window, epsilon
        As of :class:`WindowLedger`, of which this is the sum over the present window.

    Examples
    --------
    >>> ledgers = Ledgers(3, window=2, epsilon=1.0)
    >>> ledgers.pay(1, np.array([0, 2]), 600_000)
    >>> ledgers.affording(2, 500_000).tolist(), ledgers.affording(3, 500_000).tolist()
    ([1], [0, 1, 2])

    """

    def __init__(self, devices: int, window: int, epsilon: float) -> None:
        self.window = window
        self.limit = whole_units(epsilon)
        self.used = np.zeros(devices, dtype=np.int32)
        self.used_by_all = 0
        self._period = 0
        self._paid: list[tuple[int, NDArray[np.int32] | None, int]] = []
        self._some = 0  # how many of these were not paid by everybody

    def _advance(self, period: int) -> None:
        if period < self._period:
            raise MismatchError(
                f"period is {period}; it was {self._period} before, and periods only go forward."
            )
        self._period = period
        while self._paid and self._paid[0][0] <= period - self.window:
            _, who, paid = self._paid.pop(0)
            if who is None:
                self.used_by_all -= paid
            else:
                self.used[who] -= paid
                self._some -= 1

    def affording(self, period: int, price: int) -> Ints:
        """Return the devices whose window affords so many units in a period."""
        self._advance(period)
        left = self.limit - self.used_by_all - price
        if not self._some:
            return self._everybody if left >= 0 else self._everybody[:0]
        return np.flatnonzero(self.used <= left)

    @cached_property
    def _everybody(self) -> Ints:
        return np.arange(self.used.size)

    def pay(self, period: int, who: Ints, price: int) -> None:
        """Write down what these devices spend in a period."""
        self._advance(period)
        left = self.limit - self.used_by_all - price
        if who.size and (left < 0 or (self._some and int(self.used[who].max()) > left)):
            raise BudgetError(f"in period {period} a window would hold more than its epsilon.")
        if who.size == self.used.size:
            self.used_by_all += price
            self._paid.append((period, None, price))
        elif who.size:
            self.used[who] += price
            # A million positions in each of twenty periods: half of the bytes are enough.
            self._paid.append((period, who.astype(np.int32), price))
            self._some += 1


@dataclass(frozen=True)
class Asked:
    """One question and how many answered."""

    period: int
    mechanism: Mechanism
    probability: float
    received: int


@dataclass(eq=False)
class Run:
    """What came of a simulated population.

    Parameters
    ----------
    protocol
        The public design.
    releases
        What was released, one for each period.
    truth
        The true values, one row for each period.
    asked
        Every question, in order.
    devices
        How many took part.
    seconds
        How many seconds the simulation took.

    """

    protocol: Window | Tiers
    devices: int = 0
    releases: list[WindowEstimate] = field(default_factory=list)
    truth: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    asked: list[Asked] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def values(self) -> Floats:
        """The released values, one row for each period."""
        return np.array([release.values for release in self.releases])

    @property
    def variance(self) -> Floats:
        """The variance that each release claims."""
        return np.array([release.variance for release in self.releases])

    @property
    def published(self) -> float:
        """The share of periods with a fresh release."""
        return float(np.mean([release.published for release in self.releases]))

    @property
    def mse(self) -> float:
        """The mean squared error over periods and items."""
        return float(np.mean((self.values - self.truth) ** 2))

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return both ends of all intervals, one row for each period."""
        ends = [release.interval(level) for release in self.releases]
        low, high = (np.array(side) for side in zip(*ends, strict=True))
        return low, high

    def coverage(self, level: float = 0.95) -> float:
        """Return how many intervals of the releases hold the truth."""
        low, high = self.interval(level)
        return float(np.mean((low <= self.truth) & (self.truth <= high)))


def run(
    protocol: Window | Tiers,
    population: Population,
    rng: Source,
    progress: Callable[[int, WindowEstimate], None] = lambda _period, _release: None,
) -> Run:
    """Drive the protocol's curator through a population.

    Parameters
    ----------
    protocol
        The public design; its number of devices is what the curator believes. Of several tiers,
        each is picked by its share of the devices, whatever they hold.
    population
        Who holds what.
    rng
        Everybody's coins.
    progress
        A function that is called with each release.

    """
    done = Run(protocol, population.devices)
    for done in steps(protocol, population, rng):
        progress(len(done.releases), done.releases[-1])
    return done


def steps(protocol: Window | Tiers, population: Population, rng: Source) -> Iterator[Run]:
    """Yield the same run again and again, longer by a period each time.

    Several methods can so be driven side by side, through a population that is made once.
    """
    curator = protocol.curator()
    crowds = _crowds(protocol, population.devices, rng)
    done = Run(protocol, population.devices)
    truths: list[Floats] = []
    for period in range(1, population.periods + 1):
        began = time.perf_counter()
        values = population.values(period)
        if len(values) != population.devices:
            raise InputError(
                f"period {period} has {len(values)} values; one for each of "
                f"{population.devices} devices is expected."
            )

        def answer(ask: Question, values: NDArray[Any] = values, period: int = period) -> Tally:
            assert isinstance(ask, Ask)  # noqa: S101 -- windows have no standing questions
            tally = crowds[ask.tier].answer(period, ask, values)
            done.asked.append(Asked(period, ask.mechanism, ask.probability, tally.n))
            return tally

        estimate = drive(curator, period, answer)
        assert isinstance(estimate, WindowEstimate)  # noqa: S101 -- what their curators return
        done.releases.append(estimate)
        truths.append(population.truth(period))
        if period == population.periods:
            done.truth = np.array(truths)
        done.seconds += time.perf_counter() - began
        yield done


def _crowds(protocol: Window | Tiers, devices: int, rng: Source) -> list[_Crowd]:
    """Return everybody, by tier."""
    if len(protocol.tiers) == 1:
        return [_Crowd(protocol.tiers[0], devices, None, rng)]
    order = rng.simulator().permutation(devices)
    ends = np.cumsum([tier.devices for tier in protocol.tiers])
    cuts = np.round(ends * (devices / ends[-1])).astype(np.int64)
    members = np.split(order, cuts[:-1])
    return [
        _Crowd(tier, who.size, np.sort(who), rng)
        for tier, who in zip(protocol.tiers, members, strict=True)
    ]


class _Crowd:
    """Everybody of one tier: their ledgers and their coins."""

    def __init__(self, protocol: Window, devices: int, members: Ints | None, rng: Source) -> None:
        self.protocol = protocol
        self.members = members
        self.ledgers = Ledgers(devices, protocol.window, protocol.epsilon)
        self.rng = rng
        self.draw = rng.simulator()

    def answer(self, period: int, ask: Ask, values: NDArray[Any]) -> Tally:
        """Return the tally of those who are free and whose coins say so."""
        self.protocol.check_question(ask.mechanism)
        price = units(ask.mechanism.epsilon)
        cohort = self.ledgers.affording(period, price)
        if ask.probability < 1:
            cohort = cohort[self.draw.random(cohort.size, dtype=np.float32) < ask.probability]
        self.ledgers.pay(period, cohort, price)
        if not cohort.size:
            return Tally.zero(ask.mechanism.tally_shape)
        who = cohort if self.members is None else self.members[cohort]
        held = values if who.size == len(values) else values[who]
        return sampled(ask.mechanism, held, self.rng)


def sampled(mechanism: Mechanism, values: NDArray[Any], rng: Source) -> Tally:
    """Return the tally of people with these values, from its exact law if that is quick."""
    if isinstance(mechanism, FrequencyOracle):
        held = np.bincount(values, minlength=mechanism.size)
        if held.size > mechanism.size:
            raise InputError(
                f"a value is {int(values.max())}; the domain has the items 0..{mechanism.size - 1}."
            )
        return mechanism.sample_tally(held, rng)
    return mechanism.tally(mechanism.randomize(values, rng))
