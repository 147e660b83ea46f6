"""The shuffler's store: one SQLite file that holds sealed reports until they are handed on.

Nothing about senders is in it: no address, no time, no credential. Reports are sorted by id before
they are written, and rows have random numbers, so that tables do not show in which order uploads
came. What is deleted is overwritten (``secure_delete``), and the log is emptied after each batch.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Final, NamedTuple

from sfumato.claims import Claim
from sfumato.errors import InputError
from sfumato.wire.sqlite_tables import (
    ANY,
    BYTES,
    COUNT,
    NUMBER,
    TEXT,
    Cell,
    Tables,
    exactly,
    refuse_other_files,
)

__all__ = ["Batched", "Bucket", "Holding"]

APPLICATION: Final = 0x53465348  # "SFSH"
VERSION: Final = 3
ROW_BITS: Final = 62
"""The number of bits of the random number of a row; two alike would be refused."""

_TABLES: Final = """
CREATE TABLE tasks (task_id BLOB PRIMARY KEY, published BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE waiting (row INTEGER PRIMARY KEY, task_id BLOB NOT NULL, key_id INTEGER NOT NULL,
                      period INTEGER NOT NULL, n INTEGER NOT NULL, reports BLOB NOT NULL);
CREATE TABLE batches (batch INTEGER PRIMARY KEY, task_id BLOB NOT NULL, key_id INTEGER NOT NULL,
                      period INTEGER NOT NULL, n INTEGER NOT NULL, reports BLOB NOT NULL);
CREATE TABLE counts (task_id BLOB NOT NULL, fate TEXT NOT NULL, n INTEGER NOT NULL,
                     PRIMARY KEY (task_id, fate)) WITHOUT ROWID;
"""
_OVER: Final = """
CREATE TABLE over (task_id BLOB PRIMARY KEY, period INTEGER NOT NULL) WITHOUT ROWID;
"""
_CHANGES: Final = {
    # It had the ids in a table of their own, and counted what is added up now.
    1: "DROP TABLE ids; DELETE FROM counts WHERE fate = 'acknowledged';",
    2: "",
}
"""What to do with the tables of earlier versions, by version, before new ones are made."""
_TASK: Final = exactly(32)
_HELD: Final[dict[str, Cell]] = {
    "task_id": _TASK,
    "key_id": NUMBER,
    "period": NUMBER,
    "n": COUNT,
    "reports": BYTES,
}
CELLS: Final[dict[str, dict[str, Cell]]] = {
    "tasks": {"task_id": _TASK, "published": BYTES},
    "waiting": {"row": COUNT, **_HELD},
    "batches": {"batch": COUNT, **_HELD},
    "counts": {"task_id": _TASK, "fate": TEXT, "n": COUNT},
    "over": {"task_id": _TASK, "period": NUMBER},
}
"""The values that each column may have, by table and column."""


class Bucket(NamedTuple):
    """Reports that may be mixed: of one task, which have one size, one key and one period."""

    task_id: bytes
    key_id: int
    period: int


class Batched(NamedTuple):
    """A batch on its way to the collector: its number, its bucket, and its mixed reports."""

    number: int
    bucket: Bucket
    n: int
    reports: bytes


def _refuse_no_holding(path: str | Path) -> None:
    refuse_other_files(path, APPLICATION, "store of a shuffler")


class Holding:
    """The reports of a shuffler in one file; each call is one transaction, on disk when it returns.

    Parameters
    ----------
    path
        The file; it is made if there is none, readable for its owner only.

    """

    def __init__(self, path: str | Path) -> None:
        self._lock = RLock()
        try:
            self._claim = Claim(path, check=_refuse_no_holding)
        except OSError as error:
            raise InputError(f"{path} cannot be opened ({error}).") from error
        try:
            self._open(path)
        except BaseException:
            self._claim.release()
            raise

    def _open(self, path: str | Path) -> None:
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db = Tables(connection, str(path))
        try:
            for setting in (
                "locking_mode = EXCLUSIVE",
                "journal_mode = WAL",
                "synchronous = FULL",
                "secure_delete = ON",
            ):
                self._db.run(f"PRAGMA {setting}")
            self._prepare()
            self._empty_log()  # after a crash it may still have what was erased
        except sqlite3.Error as error:
            connection.close()
            raise InputError(f"{path} is no store of a shuffler ({error}).") from error
        except BaseException:
            connection.close()
            raise

    def _prepare(self) -> None:
        """Make the tables of a new file; raise InputError if it belongs to another program."""
        ((application,),) = self._db.rows("PRAGMA application_id", cells=(ANY,))
        ((version,),) = self._db.rows("PRAGMA user_version", cells=(ANY,))
        ((tables,),) = self._db.rows("SELECT count(*) FROM sqlite_master", cells=(COUNT,))
        if not tables:
            marks = f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION};"
            self._db.run_all(f"BEGIN IMMEDIATE; {_TABLES} {_OVER} {marks} COMMIT;")
        elif application == APPLICATION and version in _CHANGES:
            mark = f"PRAGMA user_version = {VERSION};"
            self._db.run_all(f"BEGIN; {_CHANGES[version]} {_OVER} {mark} COMMIT;")
        elif (application, version) != (APPLICATION, VERSION):
            raise InputError(f"{self._db.name} is no store of a shuffler of this version.")
        self._db.demand({table: tuple(cells) for table, cells in CELLS.items()})

    @contextmanager
    def _transaction(self) -> Iterator[Tables]:
        with self._lock, self._db.transaction():
            yield self._db

    def _read(self, table: str, columns: str, rest: str = "", *given: Any) -> list[tuple[Any, ...]]:
        cells = [CELLS[table][column] for column in columns.split(", ")]
        with self._lock:
            return self._db.rows(f"SELECT {columns} FROM {table} {rest}", given, cells=cells)  # noqa: S608 -- all of it is written here

    # ---- tasks -------------------------------------------------------------------------------

    def keep_task(self, task_id: bytes, published: bytes) -> None:
        """Store a published task, in place of the same task with earlier keys."""
        with self._transaction() as db:
            db.run("INSERT OR REPLACE INTO tasks VALUES (?, ?)", (task_id, published))

    def tasks(self) -> dict[bytes, bytes]:
        """Return all published tasks by their id."""
        return dict(self._read("tasks", "task_id, published"))

    def over(self) -> dict[bytes, int]:
        """Return the last period of each task whose buckets have left or expired."""
        return dict(self._read("over", "task_id, period"))

    # ---- reports -----------------------------------------------------------------------------

    def add(self, arrived: dict[Bucket, tuple[bytes, int]]) -> None:
        """Store new reports of some buckets, each with their number."""
        rows = [
            (secrets.randbits(ROW_BITS), *bucket, n, reports)
            for bucket, (reports, n) in arrived.items()
        ]
        # One row is a transaction of its own.
        with self._lock if len(rows) == 1 else self._transaction():
            for row in rows:
                self._db.run(
                    "INSERT INTO waiting (row, task_id, key_id, period, n, reports) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    row,
                )

    def came(self, task_id: bytes, period: int) -> list[bytes]:
        """Return all reports of a period that wait, under any key, many at a time."""
        rest = "WHERE task_id = ? AND period = ?"
        return [row[0] for row in self._read("waiting", "reports", rest, task_id, period)]

    def waiting(self) -> Counter[Bucket]:
        """Return how many reports wait in each bucket."""
        total: Counter[Bucket] = Counter()
        for *bucket, n in self._read("waiting", "task_id, key_id, period, n"):
            total[Bucket(*bucket)] += n
        return total

    def leaving(self) -> Counter[bytes]:
        """Return how many reports of each task are on their way, in batches."""
        total: Counter[bytes] = Counter()
        for task_id, n in self._read("batches", "task_id, n"):
            total[task_id] += n
        return total

    def reports(self, bucket: Bucket) -> bytes:
        """Return the waiting reports of a bucket."""
        rest = "WHERE task_id = ? AND key_id = ? AND period = ?"
        return b"".join(row[0] for row in self._read("waiting", "reports", rest, *bucket))

    def batch(self, bucket: Bucket, batches: list[tuple[int, bytes]]) -> None:
        """Put batches, each with its number of reports, in place of a bucket's waiting reports."""
        with self._transaction() as db:
            for n, reports in batches:
                db.run(
                    "INSERT INTO batches (task_id, key_id, period, n, reports) "
                    "VALUES (?, ?, ?, ?, ?)",
                    (*bucket, n, reports),
                )
            self._drop(bucket)
        self._empty_log()

    def expire(self, bucket: Bucket, n: int) -> None:
        """Erase the waiting reports of a bucket that has stayed too small, and count them."""
        with self._transaction():
            self._drop(bucket)
            self._count(bucket.task_id, "expired", n)
        self._empty_log()

    def _drop(self, bucket: Bucket) -> None:
        """Erase the waiting reports of a bucket, and note that its period is over for good."""
        rest = "WHERE task_id = ? AND key_id = ? AND period = ?"
        self._db.run(f"DELETE FROM waiting {rest}", bucket)  # noqa: S608
        self._db.run(
            "INSERT INTO over VALUES (?, ?) "
            "ON CONFLICT DO UPDATE SET period = max(period, excluded.period)",
            (bucket.task_id, bucket.period),
        )

    def batches(self) -> list[Batched]:
        """Return the batches that are on their way."""
        rows = self._read("batches", "batch, task_id, key_id, period, n, reports")
        return [Batched(row[0], Bucket(*row[1:4]), *row[4:]) for row in rows]

    def handed_on(self, batch: Batched, fates: Counter[str]) -> None:
        """Erase a batch that the collector has acknowledged, and count what became of it."""
        with self._transaction() as db:
            db.run("DELETE FROM batches WHERE batch = ?", (batch.number,))
            for fate, n in fates.items():
                self._count(batch.bucket.task_id, fate, n)
        self._empty_log()

    # ---- counts ------------------------------------------------------------------------------

    def _count(self, task_id: bytes, fate: str, n: int) -> None:
        self._db.run(
            "INSERT INTO counts VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET n = n + excluded.n",
            (task_id, fate, n),
        )

    def counts(self, task_id: bytes) -> dict[str, int]:
        """Return how many reports of a task met each fate, and how many were acknowledged."""
        rest = "WHERE task_id = ?"
        with self._lock:
            fates = dict(self._read("counts", "fate, n", rest, task_id))
            held = [*self._read("waiting", "n", rest, task_id)]
            held += self._read("batches", "n", rest, task_id)
        acknowledged = sum(fates.values()) + sum(n for (n,) in held)
        return {"acknowledged": acknowledged, **fates} if acknowledged else {}

    def _empty_log(self) -> None:
        """Empty the write-ahead log, which still has what was deleted."""
        with self._lock:
            self._db.run("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.connection.close()
            self._claim.release()
