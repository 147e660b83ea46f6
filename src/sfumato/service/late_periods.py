"""How late the periods of tasks close, or are counted by their engines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sfumato.core.duration import ago
from sfumato.pages.operator_page import Concern
from sfumato.service.running_task import RunningTask

__all__ = ["late_concerns", "lateness"]

SOONEST = 5.0
SOONEST_ENGINE = 60.0
"""The number of seconds before which nothing is late, and before which no engine is."""
LISTED = 5
"""The largest number of tasks that are named."""


def lateness(running: RunningTask, now: float) -> str:
    """Return in words how late the periods of a task close, or are counted."""
    if running.lag is not None:
        return running.lag.words(now)
    behind = _behind(running, now)
    return f"{ago(behind).removesuffix(' ago')} late" if behind else "in time"


def late_concerns(tasks: Sequence[RunningTask], now: float) -> Iterator[Concern]:
    """Yield the alarms about periods that should have closed, or been counted."""
    late = [running.name[:8] for running in tasks if _behind(running, now) > 0]
    yield Concern(
        "Periods close late",
        bool(late),
        f"Periods should have closed of {_listed(late, ', ')}.",
        "The collector is behind: look at its processor, and at long questions of analysts.",
    )
    waiting = [
        f"of {running.name[:8]}, {running.lag.words(now)}"
        for running in tasks
        if running.lag is not None and now - running.lag.since > _usual(running, SOONEST_ENGINE)
    ]
    yield Concern(
        "Engines are behind",
        bool(waiting),
        f"Nothing is released yet: {_listed(waiting, '; ')}.",
        "Look whether an engine runs that counts them: `sfumato aggregate --follow`.",
    )


def _behind(running: RunningTask, now: float) -> float:
    """Return for how many seconds a period should have been closed; 0 if none should."""
    late = 0.0 if running.is_over else now - running.next_at
    return late if late > _usual(running, SOONEST) else 0.0


def _usual(running: RunningTask, least: float) -> float:
    return max(least, float(running.published.spec["period_seconds"]))


def _listed(texts: Sequence[str], separator: str) -> str:
    others = len(texts) - LISTED
    return separator.join(texts[:LISTED]) + (f" and {others:,} others" if others > 0 else "")
