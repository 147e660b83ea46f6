"""All tasks of a collector as rows of its front page."""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.pages.index_page import TaskRow
from sfumato.pages.item_listing import shown_items
from sfumato.pages.small_curves import MOST, thinned
from sfumato.pages.subject import Columns
from sfumato.pages.wanted import Wanted
from sfumato.service.metrics import CollectorMetrics
from sfumato.service.running_task import RunningTask
from sfumato.service.task_subject import TaskSubject

__all__ = ["task_rows"]

KINDS = {
    "binary": "on or off",
    "category": "one item",
    "set": "several items",
    "attributes": "attributes",
    "moves": "moves",
    "number": "a number",
}
"""What devices hold, in a few words."""


def task_rows(
    visible: Sequence[RunningTask], metrics: CollectorMetrics, now: float
) -> list[TaskRow]:
    """Return a row for each task that a visitor may see.

    Parameters
    ----------
    visible
        The tasks.
    metrics
        What the collector has counted.
    now
        The present time.

    """
    return [_row(running, metrics, now) for running in visible]


def _row(running: RunningTask, metrics: CollectorMetrics, now: float) -> TaskRow:
    subject = TaskSubject(running, metrics)
    spec = running.published.spec
    state = subject.state(now)
    return TaskRow(
        name=running.name,
        title=spec["title"],
        state=state.name,
        kind=KINDS.get(spec["values"]["kind"], spec["values"]["kind"]),
        promise=f"{running.protocol.guarantee.model}"
        + (", window" if running.protocol.guarantee.window else ""),
        epsilon=float(spec["epsilon"]),
        closed=running.closed,
        periods=running.periods,
        start=float(spec["start"]),
        closed_at=running.closes_at(running.closed) if running.closed else None,
        reports=subject.n,
        readers="anybody" if running.public else "analysts",
        quantity=subject.quantity,
        curve=_curve(subject),
    )


def _curve(subject: TaskSubject) -> Columns | None:
    """Return the curve of the largest item, in as many periods as a small curve shows."""
    items = list(shown_items(subject.last_known(), Wanted()))[:1]
    if not subject.closed or not items:
        return None
    step = max(1, subject.closed // MOST)
    rows = subject.columns(items, slice((subject.closed - 1) % step, None, step))
    return thinned(Columns(*(side[:, 0] for side in rows)))
