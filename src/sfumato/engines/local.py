"""The reference engine, which runs in one process, one batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sfumato.arrays import Array
from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Ask, Place
from sfumato.core.tally import Tallies, Tally
from sfumato.engines.rows import Row, Seen
from sfumato.errors import MismatchError, ReportError
from sfumato.streams.judging import Judge
from sfumato.streams.registry import stream_of
from sfumato.wire.published import Published
from sfumato.wire.reports import Layout

__all__ = ["aggregate", "tally"]


def tally(mechanism: Mechanism, batches: Iterable[Array]) -> Tally:
    """Return the tally of all batches; memory does not grow with their number."""
    total = Tally.zero(mechanism.tally_shape)
    for batch in batches:
        total = total + mechanism.tally(batch)
    return total


def aggregate(
    task: Published, rows: Iterable[Row], asked: Mapping[Place, Ask] | None = None
) -> Tallies[Place]:
    """Return the tallies of a task's reports, by place.

    Rows may come in any order, and a repeated row counts once, by its number. Memory does not grow
    with the number of reports.

    Parameters
    ----------
    task
        The task as it was published.
    rows
        The reports, as :func:`exported` reads them.
    asked
        All questions of the task, by the place of their answers; needed if devices are asked.

    """
    stream = stream_of(task.spec)
    if stream.rounds and asked is None:
        raise MismatchError("devices of this task are asked; its questions are expected, too.")
    layout = Layout(stream.payload)
    judge, seen = Judge(stream, layout, asked), Seen()
    totals: Tallies[Place] = Tallies()
    for row in rows:
        if row.task_id != task.task_id:
            raise MismatchError(
                f"row {row.sequence} is of task {row.task_id.hex()[:12]}; rows of task "
                f"{task.task_id.hex()[:12]} are expected."
            )
        size = layout.content_dtype.itemsize
        if not row.contents or len(row.contents) % size:
            raise ReportError(
                f"row {row.sequence} has {len(row.contents)} bytes; contents of {size} bytes each "
                "are expected."
            )
        if seen.add(row.sequence):
            totals = totals + judge.checked(row.period, layout.contents(row.contents))
    return totals
