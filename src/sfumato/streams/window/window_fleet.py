"""Simulated devices of an endless stream, all in one process.

Each simulated device has its own ledger, as one entry of an array. Those who answer are drawn among
the devices whose window affords the question, and their tally is drawn from its exact law.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.accounting.ledger import units
from sfumato.accounting.windows import whole_units
from sfumato.arrays import Ints
from sfumato.core.fleet import Population
from sfumato.core.stream import Ask
from sfumato.core.tally import Tally
from sfumato.errors import BudgetError, MismatchError
from sfumato.randomness import Source
from sfumato.streams.asked import AskedFleet, sampled

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.window.window import Window

__all__ = ["Ledgers", "WindowFleet"]


class Ledgers:
    """The window ledgers of many devices at once.

    Parameters
    ----------
    devices
        The number of devices.
    window, epsilon
        The same as in :class:`WindowLedger`; only the sum over the present window is stored for
        each device.

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
        self._some = 0  # the number of payments that not all devices made

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
        """Return the devices whose window affords this many units in a period."""
        self._advance(period)
        left = self.limit - self.used_by_all - price
        if not self._some:
            return self._everybody if left >= 0 else self._everybody[:0]
        return np.flatnonzero(self.used <= left)

    @cached_property
    def _everybody(self) -> Ints:
        return np.arange(self.used.size)

    def pay(self, period: int, who: Ints, price: int) -> None:
        """Record what these devices spend in a period; BudgetError if a window would exceed it."""
        self._advance(period)
        left = self.limit - self.used_by_all - price
        if who.size and (left < 0 or (self._some and int(self.used[who].max()) > left)):
            raise BudgetError(f"in period {period} a window would hold more than its epsilon.")
        if who.size == self.used.size:
            self.used_by_all += price
            self._paid.append((period, None, price))
        elif who.size:
            self.used[who] += price
            # 32 bits are enough, because this holds millions of indices for each of many periods.
            self._paid.append((period, who.astype(np.int32), price))
            self._some += 1


class WindowFleet(AskedFleet):
    """Simulated devices by tier, with their ledgers and coins.

    Parameters
    ----------
    tiers
        The windows that owners pick from; each is picked by its share of the devices, independently
        of their values.
    population
        The values that the devices hold.
    rng
        The source of all devices' coins.

    """

    def __init__(self, tiers: Sequence[Window], population: Population, rng: Source) -> None:
        super().__init__(population, rng, tiers[0].width)
        self._tiers = tiers
        self._members = _members(tiers, population.devices, rng)
        sizes = [population.devices if who is None else who.size for who in self._members]
        self._ledgers = [
            Ledgers(size, tier.window, tier.epsilon)
            for size, tier in zip(sizes, tiers, strict=True)
        ]
        self._draws = [rng.simulator() for _ in tiers]

    def asked(self, period: int, ask: Ask) -> Tally:
        """Return the tally of the free devices whose coins say so."""
        self._tiers[ask.tier].check_question(ask.mechanism)
        ledgers, members = self._ledgers[ask.tier], self._members[ask.tier]
        price = units(ask.mechanism.epsilon)
        cohort = ledgers.affording(period, price)
        if ask.probability < 1:
            drawn = self._draws[ask.tier].random(cohort.size, dtype=np.float32)
            cohort = cohort[drawn < ask.probability]
        ledgers.pay(period, cohort, price)
        if not cohort.size:
            return Tally.zero(ask.mechanism.tally_shape)
        values = self.population.values(period)
        who = cohort if members is None else members[cohort]
        held = values if who.size == len(values) else values[who]
        return sampled(ask.mechanism, held, self.rng)


def _members(tiers: Sequence[Window], devices: int, rng: Source) -> list[Ints | None]:
    """Return the device indices of each tier; None for all devices."""
    if len(tiers) == 1:
        return [None]
    order = rng.simulator().permutation(devices)
    ends = np.cumsum([tier.devices for tier in tiers])
    cuts = np.round(ends * (devices / ends[-1])).astype(np.int64)
    return [np.sort(who) for who in np.split(order, cuts[:-1])]
