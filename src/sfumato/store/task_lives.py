"""What SQL stores have in common about the lives of tasks: how they end, and what they may lack.

A task is deleted, ended or archived in one short transaction, after which nobody reads what it has
lost. That is erased afterwards, in as many short transactions as it takes; whoever finds some of it
after a kill goes on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from sfumato.store.packing import in_steps
from sfumato.store.report_tables import IN_TASK
from sfumato.store.schema import CELLS
from sfumato.store.settled_tables import SettledTables
from sfumato.store.task_tables import WHOLE, Database
from sfumato.wire.sqlite_tables import COUNT

__all__ = ["TaskLives"]


@dataclass(frozen=True)
class _Large:
    """A table that can have very many rows of one task.

    Parameters
    ----------
    stays
        What holds for rows that are not to be erased.
    key
        The columns by which the others are erased, in order.
    size
        The number of bytes of a row.

    """

    stays: str
    key: tuple[str, ...]
    size: str


_THERE: Final = "EXISTS (SELECT 1 FROM tasks WHERE tasks.task_id = {}.task_id{})"
_LARGE: Final = {
    "batches": _Large(IN_TASK, ("period", "batch"), "length(ids) + length(contents)"),
    "log": _Large(_THERE.format("log", " AND archived = 0"), ("sequence",), "length(contents)"),
    "counted": _Large(
        _THERE.format("counted", " AND archived = 0"), ("period", "first"), "length(ids)"
    ),
    "tallies": _Large(_THERE.format("tallies", ""), ("period",), "length(sums)"),
}
"""The large tables, in the order in which a task is erased from them."""

_Row = tuple[Any, ...]
"""The values of the key of a row, or of rows that share one, and their number of bytes."""


class TaskLives(SettledTables):
    """A store in SQL: tasks that end or are archived, and periods that lack reports."""

    def delete_task(self, task_id: bytes) -> None:
        """Delete a task with its keys and releases; `erase_left` erases its reports and tallies."""
        tables = {table for table, cells in CELLS.items() if "task_id" in cells} - _LARGE.keys()
        with self._erasing() as db:
            self._exclude(db, task_id, WHOLE)  # what is being counted is seen below
            if self._read("tasks", "task_id", "WHERE task_id = ?", task_id, db=db):
                self._mark_deleted(db, task_id)
            for table in sorted(tables, key="tasks".__eq__):  # the task itself comes last
                db.run(f"DELETE FROM {table} WHERE task_id = ?", (task_id,))  # noqa: S608
            readers = f"analyst of {task_id.hex()} %"
            db.run("DELETE FROM tokens WHERE role LIKE ?", (readers,))

    def end_task(self, task_id: bytes, last_period: int) -> bool:
        """Record that a task ends with a period; return False if it was ended before."""
        with self._erasing() as db:
            self._exclude(db, task_id, WHOLE)  # what is being counted is seen below
            rest = "WHERE task_id = ? ORDER BY period DESC LIMIT 1"
            for (sealed,) in self._read("periods", "period", rest, task_id, db=db):
                last_period = max(last_period, sealed)  # another process has closed it since
            ended = db.run(
                "UPDATE tasks SET last_period = ? WHERE task_id = ? AND last_period IS NULL",
                (last_period, task_id),
            )
            if not ended.rowcount:
                return False
            db.run("DELETE FROM tallies WHERE task_id = ? AND period > ?", (task_id, last_period))
            self._changed(db, task_id)
        return True

    def archive_task(self, task_id: bytes) -> None:
        """Archive a task and erase its keys; `erase_left` erases its reports and their ids."""
        with self._erasing() as db:
            self._exclude(db, task_id, WHOLE)  # what is being packed is seen below
            db.run("DELETE FROM keys WHERE task_id = ?", (task_id,))
            db.run("UPDATE periods SET packed = 1 WHERE task_id = ?", (task_id,))
            db.run("UPDATE tasks SET archived = 1 WHERE task_id = ?", (task_id,))
            self._changed(db, task_id)

    # ---- what is left ------------------------------------------------------------------------

    def left(self) -> list[bytes]:
        """Return the tasks of which something is still to be erased."""
        tasks: set[bytes] = set()
        for table, large in _LARGE.items():
            rest = f"WHERE NOT {large.stays} GROUP BY task_id"
            tasks.update(task_id for (task_id,) in self._read(table, "task_id", rest))
        return sorted(tasks)

    def erase_left(self, task_id: bytes, patience: float = math.inf) -> bool:
        """Erase what a task has lost, also from the files; return False if there was no time."""
        end, erased = time.monotonic() + patience, False
        for table in _LARGE:
            for step in in_steps(self._rows_to_erase(table, task_id), lambda row: int(row[-1])):
                if erased and time.monotonic() > end:
                    return False
                with self._wiping() as db:
                    self._exclude(db, task_id, WHOLE)  # what is settled or packed is seen below
                    self._erase(db, table, task_id, step)
                erased = True
        if erased:
            self._wiped()
        return True

    def _rows_to_erase(self, table: str, task_id: bytes) -> list[_Row]:
        large = _LARGE[table]
        key = ", ".join(large.key)
        query = (
            f"SELECT {key}, CAST(sum({large.size}) AS BIGINT) FROM {table} "  # noqa: S608
            f"WHERE task_id = ? AND NOT {large.stays} GROUP BY {key} ORDER BY {key}"
        )
        cells = [*(CELLS[table][column] for column in large.key), COUNT]
        with self._reading() as db:
            return db.rows(query, (task_id,), cells=cells)

    @staticmethod
    def _erase(db: Database, table: str, task_id: bytes, step: Sequence[_Row]) -> None:
        """Erase some rows that follow each other in the order of their key."""
        *outer, inner = _LARGE[table].key
        same = "".join(f" AND {column} = ?" for column in outer)
        for values, rows in groupby(step, lambda row: row[: len(outer)]):
            *_, (*_, last, _) = rows
            stays = _LARGE[table].stays
            db.run(
                f"DELETE FROM {table} WHERE task_id = ? AND NOT {stays}{same} "  # noqa: S608
                f"AND {inner} <= ?",
                (task_id, *values, last),
            )

    def note_gap(self, task_id: bytes, first: int, last: int) -> None:
        """Record that some periods may lack reports which were acknowledged."""
        with self._writing() as db:
            self._refuse_deleted(db, task_id)
            db.run(
                "INSERT INTO gaps VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (task_id, first, last)
            )
            self._changed(db, task_id)
