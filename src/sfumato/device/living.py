"""Observing values, and living through the periods that end."""

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
from sfumato.device.taking_part import part_since
from sfumato.device.transport import Unreachable
from sfumato.errors import SfumatoError

if TYPE_CHECKING:  # an app that has joined no task does not import any stream
    from sfumato.device.part import Part

__all__ = ["Living"]

TOGETHER: Final = 64
"""The number of periods that are processed in one transaction."""


@dataclass(frozen=True)
class Living:
    """The work of a device as time passes, without the network."""

    journal: Journal
    """The device's journal."""
    parts: Parts
    """The device's parts in its tasks."""
    clock: DeviceClock
    """The device's clock."""

    def observe(self, joined: Joined, value: Any, *, strict: bool) -> None:
        """Store the present value of a task; see :meth:`sfumato.device.Device.observe`."""
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
        if part.was_ended(self.clock.now):
            return  # nobody will ask for it any more
        with self.journal.transaction():
            if caught_up:
                self.journal.set_value(joined.task_id, plain)
                self.journal.drop_postponed(joined.task_id, period)
            elif period <= part.published.periods:
                self.journal.postpone(joined.task_id, period, plain)
                # Such a device answers for the period that has ended last, and no other.
                if part.is_asked:
                    self.journal.drop_overtaken(joined.task_id, period)

    def _advanced(self, joined: Joined, part: Part) -> bool:
        """Process the periods that have ended if that is little work; return whether it was done.

        If devices are asked, the periods that have passed decide what the window affords, so only
        flush processes them: an app may call observe only when something has changed, and that must
        not influence what is sent.
        """
        behind = part.ended(self.clock.now) - joined.state["period"]
        if part.is_asked or (behind > 0 and not part.is_light(behind)):
            return False
        try:
            return self._live(joined, part, math.inf)
        except Exception:  # noqa: BLE001 -- whatever it is, the value counts, and flush tells of it
            return False

    def catch_up(self, errand: Errand) -> Flushed:
        """Process the periods that have ended, using at most half of the remaining time."""
        part = self.parts[errand.task_id]
        joined = self.journal.task(errand.task_id)
        if self._live(joined, part, errand.end - errand.left / 2):
            self.clock.wake(errand.task_id)
            return Flushed()
        return errand.trouble(Unreachable("there was no time left to live through all periods"))

    def _live(self, joined: Joined, part: Part, end: float) -> bool:
        """Process the periods that have ended, a few in each transaction.

        Returns whether all of them were processed before the end of the time. One period is
        processed however short the time is, so that the slowest device gets on with each flush.
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
        news, since = value, part_since(self.journal, part)
        in_time = True
        while in_time and machine.period < last:
            reports = []
            for period in range(machine.period + 1, min(last, machine.period + TOGETHER) + 1):
                if period in later:
                    news = value = later[period]
                coins, chain = chain.next()
                message = machine.observe(news, coins)
                news = None  # an unchanged value is no news
                if not part.stream.lasts:
                    value = None
                if period >= since:
                    reports += [
                        part.report(joined.ids, each, number)
                        for number, each in enumerate((message, *machine.beside))
                        if each is not None
                    ]
                in_time = time.monotonic() < end
                if not in_time:
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
        """Store the value that counts from here on; the latest one if all is processed."""
        if period == last:
            value = later.get(last + 1, value)
            period += 1
        self.journal.set_value(task_id, value)
        self.journal.drop_postponed(task_id, period)
