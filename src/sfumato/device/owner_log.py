"""The log for the owner of a device: what it has sent and spent, and what that means, in sentences.

What a promise means is said in odds. Whoever holds something about the owner to be as likely as not
has even odds; all reports of a task together change them by a factor of e^epsilon at most.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from typing import Final

from sfumato.accounting.ledger import UNITS
from sfumato.accounting.shuffle import told_of_all
from sfumato.device.journal import Joined, Journal
from sfumato.device.keys import FORMAT
from sfumato.device.parts import Parts
from sfumato.wire.published import Published

__all__ = ["BOUNDED", "UNBOUNDED", "even_odds", "lines_of"]

FOR_EVER: Final = "for everything"
"""How the promise of a task begins that holds for all its periods together."""
BOUNDED: Final = (
    "A copy of this journal that sees other values shows that they differ, and costs as much again."
)
UNBOUNDED: Final = (
    "Do not run a copy of this journal: if it sees other values, its reports together with these "
    "can show the values themselves."
)


SAME: Final = "A restored backup repeats itself and costs nothing if it sees the same values"
"""The beginning of the sentence about backups."""

LONG: Final = 10
"""The number of windows over which a value that stays is told of."""


def lines_of(journal: Journal, parts: Parts) -> Iterator[str]:
    """Yield a line for each task that was joined, followed by lines about its reports."""
    joined = {task.task_id: task for task in journal.tasks()}
    for task_id, paid, title, at, left_at, promise in journal.payments():
        yield (
            f"{_day(at)}: joined {title!r} ({task_id.hex()[:12]}), which costs epsilon "
            f"{paid / UNITS:g} {promise}."
        )
        yield f"  {_revealed(paid / UNITS)}"
        if task_id in parts.built and task_id in joined:
            yield from (f"  {line}" for line in _explained(joined[task_id], parts, paid / UNITS))
        for period, outcome, sent_at in journal.said(task_id):
            fate = _fate(outcome, sent_at)
            yield f"  One message that it takes part from period {period} on {fate}."
        chaff = task_id in joined and _has_chaff(joined[task_id])
        for (period, outcome, sent_at), number in journal.fates(task_id).items():
            if chaff:  # whether the real one is among them is not told: a log may be seen
                few = "one message" if number == 1 else f"{number} messages"
                fate = _fate(outcome, sent_at, number)
                yield f"  Period {period}: {few}, real or meaningless, {fate}."
                continue
            for _ in range(number):
                yield f"  Period {period}: one blurred report {_fate(outcome, sent_at)}."
        if left_at is not None:
            yield f"{_day(left_at)}: left {title!r} and erased it; its cost stays."
    yield from _in_all(journal, joined)


def _has_chaff(task: Joined) -> bool:
    return bool(Published.parse(task.published).spec.get("dummies"))


def _in_all(journal: Journal, joined: Mapping[bytes, Joined]) -> Iterator[str]:
    """Yield what holds of all tasks together if reports of some are shuffled."""
    promises, mixed, windows = [], 0, False
    for task_id, paid, *_, promise in journal.payments():
        if not promise.startswith(FOR_EVER):
            windows = True
        task = joined.get(task_id)
        shuffle = None if task is None else Published.parse(task.published).shuffle
        if shuffle is None:  # or the task was left, and all that is known of it is its cost
            promises.append((paid / UNITS, 0.0))
        else:
            promises.append((float(shuffle["epsilon"]), float(shuffle["delta"])))
            mixed += 1
    if mixed and len(promises) > 1:
        yield f"All tasks together: {told_of_all(promises, windows=windows)}."


def _revealed(epsilon: float) -> str:
    """Return what all reports of a task could tell at most."""
    return (
        "At most, whoever held something about you to be as likely as not before can be "
        f"{even_odds(epsilon)} after these reports."
    )


def even_odds(epsilon: float) -> str:
    """Return how sure an observer with even odds beforehand can become, rounded up.

    Examples
    --------
    >>> even_odds(1.0)
    '74% sure of it (odds of 2.8 to 1)'
    >>> even_odds(0.1)
    '53% sure of it (odds of 1.2 to 1)'
    >>> even_odds(8.0)
    '99.967% sure of it (odds of 3,000 to 1)'
    >>> even_odds(40.0)
    'all but certain of it (odds of more than a million to 1)'

    """
    if epsilon > math.log(1e6):
        return "all but certain of it (odds of more than a million to 1)"
    odds = math.exp(epsilon)
    unit = 10.0 ** (math.floor(math.log10(odds)) - 1)
    whole = math.ceil(odds / unit - 1e-9) * unit
    doubt = 100 / (1 + odds)
    places = max(0, math.ceil(-math.log10(doubt))) + (doubt < 1)
    sure = math.ceil((100 - doubt) * 10**places - 1e-9) / 10**places
    return f"{sure:.{places}f}% sure of it (odds of {whole:,.12g} to 1)"


def _explained(joined: Joined, parts: Parts, epsilon: float) -> Iterator[str]:
    """Yield what a value that stays costs, and what a copy or a restored backup does."""
    part = parts[joined.task_id]
    stream, last = part.stream, part.published.last_period
    if last is not None:
        yield f"It was ended after period {last:,}: nothing about later periods is sent."
    window = stream.guarantee.window
    if window is None:
        yield "This holds for the whole task, however long a value stays."
    else:
        periods = f"{window:,} periods" if window > 1 else "period"
        yield (
            f"This holds for any {periods}. What stays the same for longer shows more: after "
            f"{LONG * window:,} periods it has cost epsilon {LONG * epsilon:g}, and they can be "
            f"{even_odds(LONG * epsilon)}."
        )
    machine = stream.restore(joined.state)
    bounded = joined.format == FORMAT and machine.bounds_copies
    yield BOUNDED if bounded else UNBOUNDED
    other = f"; with other values it costs epsilon {2 * epsilon:g} in all" if bounded else ""
    asked = " and is asked the same" * (stream.rounds > 0)
    yield f"{SAME}{asked}{other}."


def _fate(outcome: str | None, at: int | None, number: int = 1) -> str:
    """Return the outcome of a report, or of several, as the end of a sentence."""
    if outcome is None:
        return "waits to be sent" if number == 1 else "wait to be sent"
    verb = "was" if number == 1 else "were"
    return f"{verb} sent on {_day(at or 0)}" if outcome == "sent" else f"{verb} refused ({outcome})"


def _day(at: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(at))
