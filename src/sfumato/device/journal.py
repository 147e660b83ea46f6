"""One file that says all a device knows: what it has spent, where it stands, what is not yet sent.

A SQLite database (with its log of changes beside it while it is open) that only its owner may
read. A period is taken in by one transaction that moves
the state and the keys on and puts the finished report beside them; only then may the report leave.
Whatever is overwritten is zeroed in the file (what a disk keeps of it is beyond a program's reach).
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sfumato.errors import InputError, MismatchError

__all__ = ["Joined", "Journal", "Waiting"]

SCHEMA: Final = 2
_TABLES: Final = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE ledger (task_id BLOB PRIMARY KEY, units INTEGER NOT NULL, title TEXT NOT NULL,
                     at INTEGER NOT NULL, left_at INTEGER,
                     promise TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE tasks (task_id BLOB PRIMARY KEY, published BLOB NOT NULL, state TEXT NOT NULL,
                    ids BLOB NOT NULL, chain BLOB NOT NULL, value TEXT) WITHOUT ROWID;
CREATE TABLE reports (task_id BLOB NOT NULL, period INTEGER NOT NULL, round INTEGER NOT NULL,
                      key_id INTEGER NOT NULL, body BLOB,
                      outcome TEXT, at INTEGER, tries INTEGER NOT NULL DEFAULT 0,
                      PRIMARY KEY (task_id, period, round)) WITHOUT ROWID;
"""
_STEPS: Final = {
    # Tasks had one key, one report for a period, and a horizon.
    b"1": """
ALTER TABLE ledger ADD COLUMN promise TEXT NOT NULL DEFAULT 'for everything it will ever send';
ALTER TABLE reports RENAME TO before;
CREATE TABLE reports (task_id BLOB NOT NULL, period INTEGER NOT NULL, round INTEGER NOT NULL,
                      key_id INTEGER NOT NULL, body BLOB,
                      outcome TEXT, at INTEGER, tries INTEGER NOT NULL DEFAULT 0,
                      PRIMARY KEY (task_id, period, round)) WITHOUT ROWID;
INSERT INTO reports SELECT task_id, period, 0,
  (SELECT count(*) FROM tasks, json_each(tasks.published, '$.keys')
   WHERE tasks.task_id = before.task_id), body, outcome, at, tries FROM before;
DROP TABLE before;
UPDATE facts SET value = X'32' WHERE name = 'schema'
""",
}


@dataclass(frozen=True)
class Joined:
    """A task the device takes part in."""

    task_id: bytes
    published: bytes
    state: dict[str, Any]
    ids: bytes
    chain: bytes
    value: Any


@dataclass(frozen=True)
class Waiting:
    """A report that has not been acknowledged: where it belongs, and its bytes."""

    period: int
    round: int
    key_id: int
    body: bytes
    tries: int = 0


class Journal:
    """The file, as verbs."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        if self.path != ":memory:":
            _own(Path(path))
        try:
            self._base = sqlite3.connect(self.path, isolation_level=None)
            self._base.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._base.execute("PRAGMA secure_delete = ON")
            self._base.execute("PRAGMA synchronous = FULL")
            self._base.execute("PRAGMA journal_mode = WAL")
            with self.transaction():
                self._prepare()
        except sqlite3.DatabaseError as error:
            raise InputError(f"{self.path} cannot be used as a journal ({error}).") from error

    def _prepare(self) -> None:
        found = self._base.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if not found:
            for statement in _TABLES.split(";"):
                self._base.execute(statement)
            self.set_fact("schema", str(SCHEMA).encode())
        try:
            schema = self.fact("schema")
            while schema in _STEPS:
                for statement in _STEPS[schema].split(";"):
                    self._base.execute(statement)
                schema = self.fact("schema")
        except sqlite3.OperationalError:
            schema = None
        if schema != str(SCHEMA).encode():
            raise InputError(f"{self.path} is no journal of this version; a new file is expected.")

    def close(self) -> None:
        """Let go of the file."""
        self._base.close()

    def settle_down(self) -> None:
        """Fold the log of changes into the file: it held what has been overwritten."""
        self._base.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All of what follows, or none of it."""
        self._base.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._base.execute("ROLLBACK")
            raise
        self._base.execute("COMMIT")

    # ---- facts -----------------------------------------------------------------------------

    def fact(self, name: str) -> bytes | None:
        """Return a fact of the device."""
        row = self._base.execute("SELECT value FROM facts WHERE name = ?", [name]).fetchone()
        return None if row is None else bytes(row[0])

    def set_fact(self, name: str, value: bytes) -> None:
        """Write a fact of the device."""
        self._base.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", [name, value])

    # ---- the ledger ------------------------------------------------------------------------

    def payments(self) -> list[tuple[bytes, int, str, int, int | None, str]]:
        """Return task id, units, title, when it was joined and left, and for what, in order."""
        query = (
            "SELECT task_id, units, title, at, left_at, promise FROM ledger ORDER BY at, task_id"
        )
        return self._base.execute(query).fetchall()

    def pay(self, task_id: bytes, units: int, title: str, at: int, promise: str) -> None:
        """Record a payment."""
        self._base.execute(
            "INSERT INTO ledger VALUES (?, ?, ?, ?, NULL, ?)", [task_id, units, title, at, promise]
        )

    # ---- tasks -----------------------------------------------------------------------------

    def tasks(self) -> list[Joined]:
        """Return the tasks the device takes part in."""
        query = "SELECT task_id, published, state, ids, chain, value FROM tasks ORDER BY task_id"
        return [_joined(row) for row in self._base.execute(query)]

    def task(self, task_id: bytes) -> Joined:
        """Return one of them."""
        query = "SELECT task_id, published, state, ids, chain, value FROM tasks WHERE task_id = ?"
        row = self._base.execute(query, [task_id]).fetchone()
        if row is None:
            raise MismatchError(
                f"task is {task_id.hex()[:16]}; this device takes no part in it, join it first."
            )
        return _joined(row)

    def add(self, task: Joined) -> None:
        """Take part in a task."""
        self._base.execute(
            "INSERT INTO tasks VALUES (?, ?, ?, ?, ?, NULL)",
            [task.task_id, task.published, json.dumps(task.state), task.ids, task.chain],
        )

    def set_published(self, task_id: bytes, published: bytes) -> None:
        """Take over a task's new key."""
        self._base.execute("UPDATE tasks SET published = ? WHERE task_id = ?", [published, task_id])

    def set_value(self, task_id: bytes, value: Any) -> None:
        """Write what was observed last."""
        self._base.execute(
            "UPDATE tasks SET value = ? WHERE task_id = ?", [json.dumps(value), task_id]
        )

    def step(self, task_id: bytes, state: dict[str, Any], chain: bytes) -> None:
        """Move a task's state and keys on."""
        self._base.execute(
            "UPDATE tasks SET state = ?, chain = ? WHERE task_id = ?",
            [json.dumps(state), chain, task_id],
        )

    def forget(self, task_id: bytes, at: int) -> None:
        """Erase all of a task but what it has cost."""
        self._base.execute("DELETE FROM tasks WHERE task_id = ?", [task_id])
        self._base.execute("DELETE FROM reports WHERE task_id = ?", [task_id])
        self._base.execute("UPDATE ledger SET left_at = ? WHERE task_id = ?", [at, task_id])

    # ---- reports ---------------------------------------------------------------------------

    def put(self, task_id: bytes, report: Waiting) -> None:
        """Keep a finished report until it is acknowledged."""
        self._base.execute(
            "INSERT INTO reports (task_id, period, round, key_id, body) VALUES (?, ?, ?, ?, ?)",
            [task_id, report.period, report.round, report.key_id, report.body],
        )

    def waiting(self, task_id: bytes) -> list[Waiting]:
        """Return the reports that have not been acknowledged, in order."""
        query = (
            "SELECT period, round, key_id, body, tries FROM reports "
            "WHERE task_id = ? AND outcome IS NULL ORDER BY period, round"
        )
        return [Waiting(*row) for row in self._base.execute(query, [task_id])]

    def settle(self, task_id: bytes, report: Waiting, outcome: str, at: int) -> None:
        """Write what became of a report; its bytes are no longer needed."""
        self._base.execute(
            "UPDATE reports SET outcome = ?, at = ?, body = NULL "
            "WHERE task_id = ? AND period = ? AND round = ?",
            [outcome, at, task_id, report.period, report.round],
        )

    def tried(self, task_id: bytes) -> None:
        """Count one more try to send what waits."""
        self._base.execute(
            "UPDATE reports SET tries = tries + 1 WHERE task_id = ? AND outcome IS NULL", [task_id]
        )

    def outcomes(self, task_id: bytes) -> list[tuple[int, str | None, int | None]]:
        """Return each report's period, what became of it, and when."""
        query = "SELECT period, outcome, at FROM reports WHERE task_id = ? ORDER BY period, round"
        return self._base.execute(query, [task_id]).fetchall()


def _joined(row: Any) -> Joined:
    task_id, published, state, ids, chain, value = row
    held = None if value is None else json.loads(value)
    return Joined(task_id, published, json.loads(state), ids, chain, held)


def _own(path: Path) -> None:
    """Make the file, if it is not there, so that only its owner may read it."""
    if not path.parent.is_dir():
        raise InputError(f"{path} is in no folder; one that exists is expected.")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        if os.fstat(descriptor).st_mode & 0o077:
            os.fchmod(descriptor, 0o600)
    finally:
        os.close(descriptor)
