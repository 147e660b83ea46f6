"""The log for the owner of a device: what it has sent and spent, in sentences."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from sfumato.accounting.ledger import UNITS
from sfumato.device.journal import Joined, Journal
from sfumato.device.keys import FORMAT
from sfumato.device.parts import Parts

__all__ = ["BOUNDED", "UNBOUNDED", "lines_of"]

BOUNDED: Final = (
    "A copy of this journal that sees other values shows that they differ, and costs as much again."
)
UNBOUNDED: Final = (
    "Do not run a copy of this journal: if it sees other values, its reports together with these "
    "can show the values themselves."
)


def lines_of(journal: Journal, parts: Parts) -> Iterator[str]:
    """Yield a line for each task that was joined, followed by lines about its reports."""
    joined = {task.task_id: task for task in journal.tasks()}
    for task_id, paid, title, at, left_at, promise in journal.payments():
        yield (
            f"{_day(at)}: joined {title!r} ({task_id.hex()[:12]}), which costs epsilon "
            f"{paid / UNITS:g} {promise}."
        )
        if task_id in parts.built and task_id in joined:
            yield f"  {_of_copies(joined[task_id], parts)}"
        for period, outcome, sent_at in journal.outcomes(task_id):
            yield f"  Period {period}: one blurred report {_fate(outcome, sent_at)}."
        if left_at is not None:
            yield f"{_day(left_at)}: left {title!r} and erased it; its cost stays."


def _of_copies(joined: Joined, parts: Parts) -> str:
    machine = parts[joined.task_id].stream.restore(joined.state)
    return BOUNDED if joined.format == FORMAT and machine.bounds_copies else UNBOUNDED


def _fate(outcome: str | None, at: int | None) -> str:
    """Return the outcome of a report, as the end of a sentence."""
    if outcome is None:
        return "waits to be sent"
    return f"was sent on {_day(at or 0)}" if outcome == "sent" else f"was refused ({outcome})"


def _day(at: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(at))
