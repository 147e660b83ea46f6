"""Export of reports for other tools, without anything that links a report to its sender.

What is exported are the rows of a task's log: the contents of closed periods, without ids and times
of arrival, in an order that was drawn over all reports of a period when it closed. A row has the
same number in every export, so that engines count it once, whatever is exported again. Memory does
not grow with the number of reports.
"""

from __future__ import annotations

from collections.abc import Iterator

from sfumato.engines.rows import Row
from sfumato.errors import InputError
from sfumato.service.running_task import RunningTask
from sfumato.store import Store

__all__ = ["exported"]


def exported(store: Store, running: RunningTask) -> Iterator[Row]:
    """Yield the rows of a task's log; raise InputError if a closed period is not in it yet.

    An archived task has none, even while they are being erased.
    """
    if running.is_archived:
        return
    unpacked = store.unpacked(running.task_id)
    if unpacked:
        raise InputError(
            f"period {unpacked[0]} was closed by an earlier version, and is not in the log yet; a "
            "collector that starts with this store packs it."
        )
    for row in store.log(running.task_id):
        if row.period <= running.closed:
            yield Row(row.sequence, running.task_id, row.period, row.contents)
