"""What SQL stores have in common about tasks, keys, rounds, releases and tokens.

The statements are those that SQLite and PostgreSQL share; values go where a question mark is.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, ClassVar, Final, Protocol

import numpy as np

from sfumato.arrays import Floats
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.store.interface import Store
from sfumato.store.records import Release, StoredTask
from sfumato.store.schema import CELLS
from sfumato.wire.sqlite_tables import COUNT, Cell, Damaged

__all__ = ["Database", "TaskTables"]


WHOLE: Final = (1 << 64) - 1
"""Stands for all periods of a task: whoever excludes others from it waits for all that is added."""
LOG: Final = 0
"""Stands for the log of a task: whoever packs or acknowledges excludes others; no period is 0."""


class Database(Protocol):
    """A connection in a transaction, or for a single question."""

    name: str

    def run(self, statement: str, given: Sequence[Any] = ()) -> Any:
        """Execute a statement; return an object with the number of rows as its ``rowcount``."""

    def rows(
        self, query: str, given: Sequence[Any] = (), *, cells: Sequence[Cell]
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query; raise Damaged if a value does not fit its column."""


class TaskTables(Store):
    """A store in SQL: its tasks, keys, rounds, releases and tokens."""

    name: str
    _in_order: ClassVar[str]
    """The column that has the order in which tasks were added."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[Database]:
        """Return a transaction that is on disk when it ends, or undone if an error ends it."""

    def _wiping(self) -> AbstractContextManager[Database]:
        """Return a transaction that overwrites what it deletes; the files' log still has it."""
        return self._writing()

    def _wiped(self) -> None:
        """Let what transactions have overwritten be gone from all files, also from their log."""

    @contextmanager
    def _erasing(self) -> Iterator[Database]:
        """Give a transaction whose deleted data is gone from the files when it is over."""
        with self._wiping() as db:
            yield db
        self._wiped()

    @abstractmethod
    def _share(self, db: Database, task_id: bytes, period: int) -> None:
        """Keep others from sealing a period, or deleting the task, until the transaction ends."""

    @abstractmethod
    def _exclude(self, db: Database, task_id: bytes, period: int) -> None:
        """Wait for all transactions that add to a period, and keep others out until this ends."""

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Database]:
        """Return a connection that sees what has been committed."""

    def _read(
        self, table: str, columns: str, rest: str = "", *given: Any, db: Database | None = None
    ) -> list[tuple[Any, ...]]:
        """Return some columns of some rows of a table, checked; in a transaction or outside."""
        cells = [CELLS[table][column] for column in columns.split(", ")]
        query = f"SELECT {columns} FROM {table} {rest}"  # noqa: S608 -- all of it is written here
        if db is not None:
            return db.rows(query, given, cells=cells)
        with self._reading() as reader:
            return reader.rows(query, given, cells=cells)

    def _counts(self, query: str, *given: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query with two columns of counts."""
        with self._reading() as db:
            return db.rows(query, given, cells=(COUNT, COUNT))

    @staticmethod
    def _changed(db: Database, task_id: bytes) -> None:
        """Record that something of a task has changed."""
        db.run("UPDATE tasks SET version = version + 1 WHERE task_id = ?", (task_id,))

    # ---- tasks -------------------------------------------------------------------------------

    def add_task(
        self, task_id: bytes, published: bytes, keys: Mapping[int, bytes], *, public: bool
    ) -> bool:
        """Add a task; return whether it is new."""
        with self._writing() as db:
            self._share(db, task_id, WHOLE)
            if self._read("deleted", "digest", "WHERE digest = ?", _digest(task_id), db=db):
                raise ConfigurationError(
                    "this task was deleted here, and its devices would not send again what they "
                    "have sent; a task with another start or another title is expected."
                )
            added = db.run(
                "INSERT INTO tasks (task_id, published, public) VALUES (?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                (task_id, published, int(public)),
            )
            if not added.rowcount:
                return False
            for number, private in keys.items():
                _add_key(db, task_id, number, private)
        return True

    def tasks(self) -> list[StoredTask]:
        """Return all tasks, in the order in which they were added."""
        stored = []
        columns = "task_id, published, public, last_period, archived"
        for task_id, published, public, end, archived in self._read(
            "tasks", columns, f"ORDER BY {self._in_order}"
        ):
            keys = self._read("keys", "key_id, private, until", "WHERE task_id = ?", task_id)
            closed = self._read(
                "releases", "period", "WHERE task_id = ? ORDER BY period DESC LIMIT 1", task_id
            )
            until = {number: last for number, _, last in keys if last is not None}
            private = {number: key for number, key, _ in keys}
            last = closed[0][0] if closed else 0
            gaps = self._read("gaps", "first, last", "WHERE task_id = ? ORDER BY first", task_id)
            stored.append(
                StoredTask(
                    *(task_id, published, private, bool(public), last, until),
                    last_period=end,
                    archived=bool(archived),
                    gaps=gaps,
                )
            )
        return stored

    def versions(self) -> dict[bytes, int]:
        """Return a number for each task that grows whenever anything but its reports changes."""
        return dict(self._read("tasks", "task_id, version"))

    def _refuse_deleted(self, db: Database, task_id: bytes) -> None:
        """Raise MismatchError if a task is not there, so that nothing is kept of a deleted one."""
        self._share(db, task_id, WHOLE)
        if not self._read("tasks", "task_id", "WHERE task_id = ?", task_id, db=db):
            raise MismatchError("the task was deleted.")

    def replace_key(
        self, task_id: bytes, key_id: int, private: bytes, published: bytes, until: int
    ) -> bool:
        """Give a task a new key; its earlier keys open reports up to period ``until`` only."""
        with self._writing() as db:
            self._refuse_deleted(db, task_id)
            if not _add_key(db, task_id, key_id, private):
                return False
            db.run(
                "UPDATE keys SET until = CASE WHEN until < ? THEN until ELSE ? END "
                "WHERE task_id = ? AND key_id <> ?",
                (until, until, task_id, key_id),
            )
            db.run("UPDATE tasks SET published = ? WHERE task_id = ?", (published, task_id))
            self._changed(db, task_id)
        return True

    def rewrap_keys(self, task_id: bytes, keys: Mapping[int, bytes]) -> None:
        """Replace what is kept of some private keys, and erase what was kept before."""
        with self._erasing() as db:
            for number, private in keys.items():
                db.run(
                    "UPDATE keys SET private = ? WHERE task_id = ? AND key_id = ?",
                    (private, task_id, number),
                )

    def erase_keys(self, task_id: bytes) -> None:
        """Erase the keys that open only reports of closed periods."""
        with self._erasing() as db:
            db.run(
                "DELETE FROM keys WHERE task_id = ? AND until <= "
                "(SELECT coalesce(max(period), 0) FROM releases WHERE task_id = ?)",
                (task_id, task_id),
            )
            self._changed(db, task_id)

    @staticmethod
    def _mark_deleted(db: Database, task_id: bytes) -> None:
        """Record that a task was deleted."""
        db.run("INSERT INTO deleted VALUES (?) ON CONFLICT DO NOTHING", (_digest(task_id),))

    # ---- rounds and releases -----------------------------------------------------------------

    def close_round(self, task_id: bytes, period: int, number: int) -> None:
        """Record that a round is over, and that another one follows."""
        with self._writing() as db:
            self._refuse_deleted(db, task_id)
            db.run(
                "INSERT INTO rounds VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (task_id, period, number),
            )
            self._changed(db, task_id)

    def rounds(self, task_id: bytes) -> dict[int, int]:
        """Return how many rounds of each period are over, without the last one of a period."""
        query = "SELECT period, count(*) FROM rounds WHERE task_id = ? GROUP BY period"
        return dict(self._counts(query, task_id))

    def close_period(self, task_id: bytes, release: Release) -> bool:
        """Record what a period released; return False if another release of it is there."""
        figures = np.stack([release.values, release.variances]).astype("<f8").tobytes()
        with self._writing() as db:
            self._refuse_deleted(db, task_id)
            added = db.run(
                "INSERT INTO releases VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                (task_id, release.period, release.n, figures),
            )
            if added.rowcount:
                self._changed(db, task_id)
        return bool(added.rowcount)

    def releases(self, task_id: bytes, after: int = 0) -> list[Release]:
        """Return the releases of the closed periods after one of them, in order."""
        rest = "WHERE task_id = ? AND period > ? ORDER BY period"
        rows = self._read("releases", "period, n, figures", rest, task_id, after)
        if [period for period, _, _ in rows] != list(range(after + 1, after + len(rows) + 1)):
            raise Damaged(self.name, "it lacks what a period released")
        if len({len(figures) for _, _, figures in rows}) > 1 or any(
            len(row[2]) % 16 for row in rows
        ):
            raise Damaged(self.name, "what a period released is not whole")
        releases = [Release(period, n, *_figures(figures)) for period, n, figures in rows]
        if any((release.variances < 0).any() for release in releases):
            raise Damaged(self.name, "what a period released has a variance below 0")
        return releases

    # ---- tokens ------------------------------------------------------------------------------

    def set_token(self, role: str, digest: bytes) -> None:
        """Store the digest of the token of a role, in place of any earlier one."""
        with self._writing() as db:
            db.run("DELETE FROM tokens WHERE role = ? OR digest = ?", (role, digest))
            db.run("INSERT INTO tokens (role, digest) VALUES (?, ?)", (role, digest))

    def drop_token(self, role: str) -> bool:
        """Delete the token of a role; return whether there was one."""
        with self._erasing() as db:
            return bool(db.run("DELETE FROM tokens WHERE role = ?", (role,)).rowcount)

    def tokens(self) -> dict[bytes, str]:
        """Return the role of each token, by the token's digest."""
        return dict(self._read("tokens", "digest, role"))


def _add_key(db: Database, task_id: bytes, key_id: int, private: bytes) -> bool:
    added = db.run(
        "INSERT INTO keys (task_id, key_id, private) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (task_id, key_id, private),
    )
    return bool(added.rowcount)


def _digest(task_id: bytes) -> bytes:
    """Return what is kept of a deleted task."""
    return hashlib.sha256(b"sfumato deleted task " + task_id).digest()


def _figures(data: bytes) -> Floats:
    """Return values and variances; every nan becomes the quiet one, which raises no warning."""
    figures = np.frombuffer(data, "<f8").reshape(2, -1)
    return np.where(np.isnan(figures), np.nan, figures)
