"""How a device takes in values, and lives through the periods that end."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sfumato.device.clock import DeviceClock
from sfumato.device.errands import Errand, Flushed
from sfumato.device.journal import Joined, Journal
from sfumato.device.journal_values import plain_value
from sfumato.device.parts import Parts
from sfumato.device.transport import Unreachable
from sfumato.errors import SfumatoError

if TYPE_CHECKING:  # an app that has not joined a task yet does not pay for any stream
    from sfumato.device.part import Part

__all__ = ["Living"]

TOGETHER: Final = 64
"""How many periods are lived through in one transaction."""


@dataclass(frozen=True)
class Living:
    """What a device does as time passes, whether or not anybody listens.

    Parameters
    ----------
    journal
        The device's journal.
    parts
        What it knows of its tasks.
    clock
        What time it is for the device.

    """

    journal: Journal
    parts: Parts
    clock: DeviceClock

    def observe(self, joined: Joined, value: Any, *, strict: bool) -> None:
        """Take in the present value of a task; see :meth:`sfumato.device.Device.observe`."""
        try:
            part = self.parts[joined.task_id]
            period = part.ended(self.clock.now) + 1
            caught_up = self._advanced(joined, part)
            plain = plain_value(value)
            part.stream.check(plain)
        except SfumatoError:
            if strict:
                raise
            return
        with self.journal.transaction():
            if caught_up:
                self.journal.set_value(joined.task_id, plain)
                self.journal.drop_postponed(joined.task_id, period)
            elif period <= part.published.spec["periods"]:
                self.journal.postpone(joined.task_id, period, plain)
                if part.is_asked:  # it answers for the period that has ended last, and no other
                    self.journal.drop_overtaken(joined.task_id, period)

    def _advanced(self, joined: Joined, part: Part) -> bool:
        """Take in the periods that have ended if that is little work; return whether it is done.

        The clock of a part that is asked decides what its window affords, so only flush moves it:
        an app may observe just when something has changed, and that must not tell.
        """
        behind = part.ended(self.clock.now) - joined.state["period"]
        if part.is_asked or (behind > 0 and not part.is_light(behind)):
            return False
        try:
            return self._live(joined, part, math.inf)
        except Exception:  # noqa: BLE001 -- whatever it is, the value counts, and flush tells of it
            return False

    def catch_up(self, errand: Errand) -> Flushed:
        """Take in the periods that have ended, as far as half of the time allows."""
        part = self.parts[errand.task_id]
        joined = self.journal.task(errand.task_id)
        if self._live(joined, part, errand.end - errand.left / 2):
            self.clock.wake(errand.task_id)
            return Flushed()
        return errand.trouble(Unreachable("there was no time left to live through all periods"))

    def _live(self, joined: Joined, part: Part, end: float) -> bool:
        """Live through the periods that have ended, a few in each transaction.

        Returns whether that was all of them before the time was up.
        """
        last = part.ended(self.clock.now)
        passed = last - joined.state["period"]
        if passed <= 0:
            return True
        machine, chain, value = part.stream.restore(joined.state), joined.keys, joined.value
        later = self.journal.postponed(joined.task_id)
        unsure = passed - self.clock.surely_over(joined, part, passed) if part.is_asked else 0
        if unsure:
            machine.miss(unsure)
            chain = chain.after(unsure)
            missed = (later[period] for period in sorted(later) if period <= machine.period)
            value = [value, *missed][-1] if part.stream.lasts else None
        news = value
        while machine.period < last and time.monotonic() < end:
            reports = []
            for period in range(machine.period + 1, min(last, machine.period + TOGETHER) + 1):
                if period in later:
                    news = value = later[period]
                coins, chain = chain.next()
                message = machine.observe(news, coins)
                news = None  # what stays as it was is no news
                if not part.stream.lasts:
                    value = None
                if message is not None:
                    reports.append(part.report(joined.ids, message))
                if time.monotonic() >= end:
                    break
            with self.journal.transaction():
                self.journal.step(joined.task_id, machine.save(), chain.key)
                self._keep(joined.task_id, value, machine.period, later, last)
                for report in reports:
                    self.journal.put(joined.task_id, report)
        return machine.period >= last

    def _keep(
        self, task_id: bytes, value: Any, period: int, later: Mapping[int, Any], last: int
    ) -> None:
        """Write which value counts from here on; once all is taken in, it is the latest one."""
        if period == last:
            value = later.get(last + 1, value)
            period += 1
        self.journal.set_value(task_id, value)
        self.journal.drop_postponed(task_id, period)
