"""Saying once that a device takes part, in tasks whose means are over those who have said so.

The message is the same for all devices and says nothing but the period from which on the device
takes part. It goes the way of a report, under an id of its own that no report can be linked to, and
is sent again until it is acknowledged. If it comes too late for its period, it did not count, and
is said of a later one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sfumato.core.device import Message
from sfumato.core.tally import ENROLMENT, Place
from sfumato.device.journal import Journal

if TYPE_CHECKING:  # an app that has joined no task does not import any stream
    from sfumato.device.part import Part

__all__ = ["part_since", "say_so"]

SENT: Final = "sent"
SAID: Final = b"\1"


def say_so(journal: Journal, part: Part, ids: bytes, now: float) -> None:
    """Store the message to be sent, unless it waits already or was acknowledged."""
    if not part.stream.enrols:
        return
    task_id = part.published.task_id
    messages = journal.said(task_id)
    if any(outcome in (None, SENT) for _, outcome, _ in messages):
        return
    ended = part.ended(now)
    period = ended + 1
    if messages and ended > messages[-1][0] and part.is_open(ended, now):
        period = ended  # its reports may still be on their way
    if period > part.published.periods or (messages and period <= messages[-1][0]):
        return
    message = Message(Place(ENROLMENT, period), SAID)
    with journal.transaction():
        journal.put(task_id, part.report(ids, message, ENROLMENT))


def part_since(journal: Journal, part: Part) -> int:
    """Return the period from which on a device sends reports: nothing before it has joined."""
    if not part.stream.enrols:
        return 0
    messages = journal.said(part.published.task_id)
    return messages[0][0] if messages else 0
