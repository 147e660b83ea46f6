"""The reference engine, which runs in one process, one batch at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from sfumato.arrays import Array
from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Ask, Place
from sfumato.core.tally import Tallies, Tally
from sfumato.engines.rows import Row, Seen
from sfumato.errors import MismatchError, ReportError
from sfumato.streams.amplification import TOO_FEW, fewest_counted
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
    with the number of reports. If the task's reports are shuffled, all rows of a period have to be
    there: too few of them raise MismatchError.

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
    _refuse_few(totals, fewest_counted(task.spec))
    return totals


def _refuse_few(totals: Tallies[Place], fewest: int) -> None:
    """Raise MismatchError if shuffled reports of a period are so few that none may be counted."""
    counts: Counter[int] = Counter()
    for place, each in totals.items():
        counts[place.period] += each.n
    for period, n in counts.items():
        if n < fewest:
            raise MismatchError(
                f"period {period} has {n:,} reports, {TOO_FEW}; at least {fewest:,} are expected."
            )
