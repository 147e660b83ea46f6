"""The exchanges with collectors: questions and answers, reports and receipts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Final

import numpy as np

from sfumato.core.tally import ENROLMENT
from sfumato.device.clock import DeviceClock
from sfumato.device.errands import Errand, Flushed
from sfumato.device.journal import Journal, Waiting
from sfumato.device.parts import Parts
from sfumato.device.transport import Unreachable
from sfumato.errors import SfumatoError
from sfumato.randomness import Source
from sfumato.wire import questions
from sfumato.wire.published import Published
from sfumato.wire.reports import Batch
from sfumato.wire.sqlite_tables import Damaged

if TYPE_CHECKING:  # an app that has joined no task does not import any stream
    from sfumato.device.part import Part

__all__ = ["Exchanges"]

FINAL: Final = ("stale", "invalid", "malformed", "unopened", "wrong_task", "unknown_key")
"""The reasons for a refusal after which a retry is useless."""
LOST_KEY: Final = ("unopened", "unknown_key")
"""The reasons for a refusal that another key of the task may mend: a collector that was brought
back from a backup has lost the keys that came later."""
CROWDED: Final = "too_many"
"""The reason for a refusal because others behind the same address have sent enough."""
EARLY: Final = 0.75
"""The share of the grace in which shuffled reports are sent at a random moment."""
FIRST_WAIT: Final = 2.0
LONGEST_WAIT: Final = 3600.0
LARGEST_BATCH: Final = 1 << 20
MOST_UNTAKEN: Final = 64
"""The number of waiting answers after which further questions are ignored."""


class Exchanges:
    """All network traffic for joined tasks.

    Parameters
    ----------
    journal
        The device's journal.
    parts
        The device's parts in its tasks.
    clock
        The device's clock.
    rng
        The source of random waiting times after a failure; no report depends on it.

    """

    def __init__(self, journal: Journal, parts: Parts, clock: DeviceClock, rng: Source) -> None:
        self._journal, self._parts, self._clock, self._rng = journal, parts, clock, rng
        self._patience: dict[bytes, float] = {}
        self._moments: dict[tuple[bytes, int, int], float] = {}

    def interview(self, errand: Errand) -> Flushed:
        """Fetch the open question, if there may be one, and store the answer to be sent."""
        part = self._parts[errand.task_id]
        if not part.is_asked or part.was_ended(self._clock.now, part.grace):
            return Flushed()
        joined = self._journal.task(errand.task_id)
        machine = part.stream.restore(joined.state)
        if not self._is_due(errand) or not part.expects(machine):
            return Flushed()
        if self._journal.count_waiting(joined.task_id) >= MOST_UNTAKEN:
            return Flushed()  # a collector that does not take answers gets no more of them
        try:
            body = errand.transport.fetch(questions.address(part.published.endpoint))
        except Unreachable as error:
            self._wait(joined.task_id, 0)
            return errand.trouble(error)
        question = questions.Question.parse(body)
        if question is None:
            if questions.ends(body) and part.published.last_period is None:
                self._pick_up(errand, part.published)
            return Flushed()
        message = part.answer(machine, question, joined.keys)
        state = machine.save()
        if state != joined.state:
            answers = [] if message is None else [part.report(joined.ids, message)]
            with self._journal.transaction():
                self._journal.step(joined.task_id, state, joined.keys.key)
                for answer in answers:
                    self._journal.put(joined.task_id, answer)
        return Flushed()

    def upload(self, errand: Errand) -> Flushed:
        """Send all waiting reports of a task."""
        waiting = self._journal.waiting(errand.task_id)
        if not waiting:
            return Flushed()
        if not self._is_due(errand):
            return Flushed(waiting=len(waiting))
        part = self._parts[errand.task_id]
        due = [each for each in waiting if errand.force or self._may_leave(part, each)]
        if len(due) < len(waiting):
            sent = self._send_all(errand, part, due)
            return replace(sent, waiting=sent.waiting + len(waiting) - len(due))
        return self._send_all(errand, part, waiting)

    def _may_leave(self, part: Part, report: Waiting) -> bool:
        """Return whether a report may be sent now.

        What says that the device takes part waits for the period that it is about. If reports are
        shuffled, one leaves at a random moment of the grace after its period, so that those who see
        when devices send cannot tell them apart by their habits. The moment does not follow from
        the report's id, which the collector sees.
        """
        spec = part.published.spec
        if report.round == ENROLMENT:
            return self._clock.now >= part.begins(report.period)
        if part.published.shuffle is None:
            return True
        drawn = self._moments.setdefault(
            (part.published.task_id, report.period, report.round),
            int.from_bytes(self._rng.take(4), "little") / 2**32,
        )
        end = spec["start"] + report.period * spec["period_seconds"]
        return bool(self._clock.now >= end + EARLY * drawn * spec["grace"])

    def _send_all(self, errand: Errand, part: Part, waiting: list[Waiting]) -> Flushed:
        total = Flushed()
        by_key = attrgetter("key_id")
        for key_id, group in groupby(sorted(waiting, key=by_key), key=by_key):
            for batch in self._batches(part, list(group)):
                total += self._send(errand, part, key_id, batch)
                if total.problems:  # the rest waits as well
                    done = total.sent + total.refused
                    return replace(total, waiting=len(waiting) - done)
        return total

    def _batches(self, part: Part, waiting: list[Waiting]) -> Iterator[list[Waiting]]:
        """Yield the reports in batches that a collector accepts.

        A shuffler gets each report alone, and in an order that tells nothing of their numbers.
        """
        if part.published.shuffle is None:
            yield from _together(waiting)
            return
        for index in self._rng.permutation(len(waiting)).tolist():
            yield [waiting[index]]

    def _send(self, errand: Errand, part: Part, key_id: int, waiting: list[Waiting]) -> Flushed:
        """Send the waiting reports that are sealed to one key."""
        published, task_id = part.published, part.published.task_id
        form = part.layout.report_dtype
        if not all(part.is_whole(report) for report in waiting):
            raise Damaged(self._journal.path, "a report that waits is not whole")
        reports = np.frombuffer(b"".join(report.body for report in waiting), dtype=form)
        batch = Batch(task_id, key_id, reports).encode()
        try:
            outcome = errand.transport.send(published.endpoint, batch)
        except Unreachable as error:
            with self._journal.transaction():
                self._journal.tried(task_id)
            self._wait(task_id, waiting[0].tries)
            return errand.trouble(error, len(waiting))
        self._patience.pop(task_id, None)
        if CROWDED in outcome.refused.values():  # another address, or a later day, may do
            self._wait(task_id, max(report.tries for report in waiting))
        sent = refused = kept = 0
        unopened: list[tuple[Waiting, str]] = []
        with self._journal.transaction():
            if CROWDED in outcome.refused.values():
                self._journal.tried(task_id)
            for index, report in enumerate(waiting):
                reason = outcome.refused.get(index)
                if reason is not None and reason not in FINAL:
                    kept += 1  # too early, or not now
                elif reason in LOST_KEY and report.content is not None:
                    unopened.append((report, reason))
                else:
                    sent, refused = sent + (reason is None), refused + (reason is not None)
                    self._journal.settle(task_id, report, reason or "sent", int(self._clock.now))
        flushed = Flushed(sent, refused, kept)
        is_news = outcome.has_ended and published.last_period is None
        if not unopened and not is_news and outcome.key_id in (None, published.key_id):
            return flushed
        fetched = self._pick_up(errand, published)
        if unopened and not fetched:
            return replace(flushed, waiting=kept + len(unopened))
        return flushed + self._send_anew(errand, published, unopened)

    def _send_anew(
        self, errand: Errand, before: Published, unopened: list[tuple[Waiting, str]]
    ) -> Flushed:
        """Seal reports that the collector could not open to the key it has now, and send them.

        That is done once for each report. It is the same report under the same id, so it tells
        nothing new, whoever asks for it. A report that was sealed to this very key is given up.
        """
        task_id, part = before.task_id, self._parts[before.task_id]
        resealed, refused = [], 0
        with self._journal.transaction():
            for report, reason in unopened:
                if part.published.keys == before.keys and report.key_id == before.key_id:
                    self._journal.settle(task_id, report, reason, int(self._clock.now))
                    refused += 1
                else:
                    resealed.append(part.resealed(report))
                    self._journal.reseal(task_id, resealed[-1])
        flushed = Flushed(refused=refused)
        if resealed:
            flushed += self._send(errand, part, part.published.key_id, resealed)
        return flushed

    def _pick_up(self, errand: Errand, published: Published) -> bool:
        """Fetch a task's present key, and whether it was ended; return whether that worked."""
        try:
            body = errand.transport.fetch(published.endpoint.rpartition("/")[0])
            renewed = Published.parse(body)
        except (Unreachable, SfumatoError):
            return False  # try again the next time
        if renewed.task_id == published.task_id:
            self._parts.renew(replace(renewed, endpoint=published.endpoint))
        return True

    def _is_due(self, errand: Errand) -> bool:
        """Return whether a task's collector may be tried now."""
        return errand.force or self._clock.now >= self._patience.get(errand.task_id, 0.0)

    def _wait(self, task_id: bytes, tries: int) -> None:
        """Set the wait after a failed try: it doubles each time, times a random 0.5 to 1.5."""
        longest = min(FIRST_WAIT * 2 ** min(tries, 16), LONGEST_WAIT)
        share = int.from_bytes(self._rng.take(4), "little") / 2**32
        self._patience[task_id] = self._clock.now + longest * (0.5 + share)


def _together(waiting: list[Waiting]) -> Iterator[list[Waiting]]:
    """Yield the reports in batches that a collector accepts."""
    together = max(1, LARGEST_BATCH // len(waiting[0].body))
    for start in range(0, len(waiting), together):
        yield waiting[start : start + together]
