"""What SQL stores have in common about the lives of tasks: how they end, and what they may lack."""

from __future__ import annotations

from typing import Final

from sfumato.store.schema import CELLS
from sfumato.store.settled_tables import SettledTables
from sfumato.store.task_tables import WHOLE

__all__ = ["TaskLives"]

_LATER: Final = "WHERE task_id = ? AND period > ?"


class TaskLives(SettledTables):
    """A store in SQL: tasks that end or are archived, and periods that lack reports."""

    def delete_task(self, task_id: bytes) -> None:
        """Delete a task and everything that is kept of it, also from the files."""
        tables = [table for table, cells in CELLS.items() if "task_id" in cells]
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
            for table in ("batches", "tallies"):
                db.run(f"DELETE FROM {table} {_LATER}", (task_id, last_period))  # noqa: S608
            self._changed(db, task_id)
        return True

    def archive_task(self, task_id: bytes) -> None:
        """Erase reports, ids and keys of a task, also from the files; tallies and releases stay."""
        with self._erasing() as db:
            self._exclude(db, task_id, WHOLE)  # what is being packed is seen below
            for table in ("batches", "log", "counted", "keys"):
                db.run(f"DELETE FROM {table} WHERE task_id = ?", (task_id,))  # noqa: S608
            db.run("UPDATE periods SET packed = 1 WHERE task_id = ?", (task_id,))
            db.run("UPDATE tasks SET archived = 1 WHERE task_id = ?", (task_id,))
            self._changed(db, task_id)

    def note_gap(self, task_id: bytes, first: int, last: int) -> None:
        """Record that some periods may lack reports which were acknowledged."""
        with self._writing() as db:
            self._refuse_deleted(db, task_id)
            db.run(
                "INSERT INTO gaps VALUES (?, ?, ?) ON CONFLICT DO NOTHING", (task_id, first, last)
            )
            self._changed(db, task_id)
