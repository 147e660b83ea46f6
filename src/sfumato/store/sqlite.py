"""The embedded store: one SQLite file that only its owner can read.

It uses a write-ahead log with full synchronisation: a finished transaction survives a killed
process and a power failure. Only one process can have a file open at a time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.claims import Claim
from sfumato.core.tally import Place, Tallies, Tally
from sfumato.errors import InputError
from sfumato.store.interface import Count, Filled, Release, Store, StoredTask
from sfumato.store.schema import CELLS, migrate
from sfumato.wire.sqlite_tables import COUNT, Damaged, Tables

__all__ = ["SQLiteStore"]

_OF_A_PERIOD: Final = "WHERE task_id = ? AND period = ?"


class SQLiteStore(Store):
    """A store in one file.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> store = SQLiteStore(f"{folder}/collector.db")
    >>> store.add_task(bytes(32), b"{}", {}, public=True)
    True
    >>> tally = Tally(2, np.array([1, 1]))
    >>> store.commit([Filled(bytes(32), 0, 1, 2, bytes(32), b"ab", {Place(1, 1): tally})])
    >>> store.tallies(bytes(32))
    Tallies({Place(span=1, period=1, part=0): Tally(n=2, sums=[1, 1])})
    >>> store.close()

    """

    def __init__(self, path: str | Path) -> None:
        self._name = str(path)
        self._lock = RLock()
        try:
            self._claim = Claim(path)
        except OSError as error:
            raise _unopened(path, error) from error
        try:
            self._open(path)
        except BaseException:
            self._claim.release()
            raise

    def _open(self, path: str | Path) -> None:
        try:
            self._connection = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=1.0
            )
        except sqlite3.Error as error:
            raise _unopened(path, error) from error
        self._tables = Tables(self._connection, self._name)
        try:
            for setting in ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = FULL"):
                self._tables.run(f"PRAGMA {setting}")
            self._tables.run("BEGIN IMMEDIATE")  # takes the lock, and keeps it
            self._tables.run("COMMIT")
            migrate(self._tables)
            self._tables.demand({table: tuple(cells) for table, cells in CELLS.items()})
        except sqlite3.OperationalError as error:
            self._connection.close()
            raise InputError(
                f"{path} cannot be used ({error}); one collector at a time can have it."
            ) from error
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise InputError(f"{path} is no store ({error}).") from error
        except BaseException:
            self._connection.close()
            raise

    @contextmanager
    def _transaction(self) -> Iterator[Tables]:
        with self._lock, self._tables.transaction():
            yield self._tables

    def _read(self, table: str, columns: str, rest: str = "", *given: Any) -> list[tuple[Any, ...]]:
        """Return some columns of some rows of a table, checked."""
        cells = [CELLS[table][column] for column in columns.split(", ")]
        query = f"SELECT {columns} FROM {table} {rest}"  # noqa: S608 -- all of it is written here
        with self._lock:
            return self._tables.rows(query, given, cells=cells)

    def _counted(self, query: str, *given: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query with two columns of counts."""
        with self._lock:
            return self._tables.rows(query, given, cells=(COUNT, COUNT))

    # ---- tasks -------------------------------------------------------------------------------

    def add_task(
        self, task_id: bytes, published: bytes, keys: Mapping[int, bytes], *, public: bool
    ) -> bool:
        """Add a task; return whether it is new."""
        with self._transaction() as db:
            added = db.run(
                "INSERT OR IGNORE INTO tasks VALUES (?, ?, ?)", (task_id, published, public)
            )
            if not added.rowcount:
                return False
            for name, private in keys.items():
                db.run(
                    "INSERT INTO keys (task_id, key_id, private) VALUES (?, ?, ?)",
                    (task_id, name, private),
                )
        return True

    def tasks(self) -> list[StoredTask]:
        """Return all tasks, in the order in which they were added."""
        stored = []
        for task_id, published, public in self._read(
            "tasks", "task_id, published, public", "ORDER BY rowid"
        ):
            keys = self._read("keys", "key_id, private, until", "WHERE task_id = ?", task_id)
            closed = self._read("releases", "period", "WHERE task_id = ?", task_id)
            until = {name: last for name, _, last in keys if last is not None}
            private = {name: key for name, key, _ in keys}
            last = max((period for (period,) in closed), default=0)
            stored.append(StoredTask(task_id, published, private, bool(public), last, until))
        return stored

    def replace_key(
        self, task_id: bytes, key_id: int, private: bytes, published: bytes, until: int
    ) -> None:
        """Give a task a new key; its earlier keys open reports up to period ``until`` only."""
        with self._transaction() as db:
            db.run(
                "UPDATE keys SET until = min(coalesce(until, ?1), ?1) WHERE task_id = ?2",
                (until, task_id),
            )
            db.run(
                "INSERT INTO keys (task_id, key_id, private) VALUES (?, ?, ?)",
                (task_id, key_id, private),
            )
            db.run("UPDATE tasks SET published = ? WHERE task_id = ?", (published, task_id))

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
                "DELETE FROM keys WHERE task_id = ?1 AND until <= "
                "(SELECT coalesce(max(period), 0) FROM releases WHERE task_id = ?1)",
                (task_id,),
            )

    @contextmanager
    def _erasing(self) -> Iterator[Tables]:
        """Run a transaction; what it deletes is gone from the files when it is over."""
        with self._lock:
            self._tables.run("PRAGMA secure_delete = ON")
            try:
                with self._transaction() as db:
                    yield db
            finally:
                self._tables.run("PRAGMA secure_delete = OFF")
            self._tables.run("PRAGMA wal_checkpoint(TRUNCATE)")  # the log had it as well

    # ---- reports -----------------------------------------------------------------------------

    def commit(self, filled: Sequence[Filled]) -> None:
        """Append reports and add up their tallies, for all buckets or for none."""
        with self._transaction() as db:
            for one in filled:
                bucket = (one.task_id, one.key_id, one.period)
                db.run(
                    "INSERT INTO batches (task_id, key_id, period, n, ids, contents) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    (*bucket, one.n, one.ids, one.contents),
                )
                for place, tally in one.tallies.items():
                    self._fold((*bucket, place.span, place.part), tally)

    def _fold(self, place: tuple[Any, ...], tally: Tally) -> None:
        """Add a tally to the stored one of its place."""
        rest = "WHERE task_id = ? AND key_id = ? AND period = ? AND span = ? AND block = ?"
        rows = self._read("tallies", "n, shape, sums", rest, *place)
        total = self._tally(*rows[0]) + tally if rows else tally
        shape = ",".join(map(str, total.sums.shape))
        self._tables.run(
            "INSERT OR REPLACE INTO tallies (task_id, key_id, period, span, block, n, shape, sums) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (*place, total.n, shape, total.sums.astype("<i8").tobytes()),
        )

    def _tally(self, n: int, shape: str, sums: bytes) -> Tally:
        try:
            sides = [int(side) for side in shape.split(",")]
            return Tally(n, np.frombuffer(sums, "<i8").reshape(sides))
        except (ValueError, OverflowError):
            raise Damaged(self._name, "a tally is not whole") from None

    def ids(self, task_id: bytes, period: int) -> Iterator[bytes]:
        """Yield the ids of a period's reports, many at a time."""
        for (ids,) in self._read("batches", "ids", _OF_A_PERIOD, task_id, period):
            yield ids

    def contents(self, task_id: bytes, period: int) -> Iterator[bytes]:
        """Yield the opened contents of a period's reports, many at a time."""
        for (contents,) in self._read("batches", "contents", _OF_A_PERIOD, task_id, period):
            yield contents

    def tallies(self, task_id: bytes, period: int | None = None) -> Tallies[Place]:
        """Return the tallies of a task, or of one of its periods."""
        rows = self._read(
            "tallies",
            "period, span, block, n, shape, sums",
            "WHERE task_id = ? AND (?2 IS NULL OR period = ?2)",
            task_id,
            period,
        )
        return _added((Place(span, p, part), self._tally(*kept)) for p, span, part, *kept in rows)

    def recount(self, task_id: bytes, count: Count) -> Tallies[Place]:
        """Return the tallies of a task, counted anew from its reports."""
        counted: Tallies[Place] = Tallies()
        for (batch,) in self._read("batches", "batch", "WHERE task_id = ?", task_id):
            ((period, contents),) = self._read(
                "batches", "period, contents", "WHERE batch = ?", batch
            )
            counted += Tallies(count(period, contents))
        return counted

    def participation(self, task_id: bytes) -> dict[int, int]:
        """Return the number of reports of each period."""
        query = "SELECT period, sum(n) FROM tallies WHERE task_id = ? GROUP BY period"
        return dict(self._counted(query, task_id))

    # ---- rounds ------------------------------------------------------------------------------

    def close_round(self, task_id: bytes, period: int, number: int) -> None:
        """Record that a round is over, so that no further answer to it counts."""
        with self._transaction() as db:
            db.run("INSERT INTO rounds VALUES (?, ?, ?)", (task_id, period, number))

    def rounds(self, task_id: bytes) -> dict[int, int]:
        """Return how many rounds of each period are over, without the last one of a period."""
        query = "SELECT period, count(*) FROM rounds WHERE task_id = ? GROUP BY period"
        return dict(self._counted(query, task_id))

    # ---- releases ----------------------------------------------------------------------------

    def close_period(self, task_id: bytes, release: Release) -> None:
        """Record what a period released, so that no further report of it counts."""
        figures = np.stack([release.values, release.variances]).astype("<f8").tobytes()
        with self._transaction() as db:
            db.run(
                "INSERT INTO releases VALUES (?, ?, ?, ?)",
                (task_id, release.period, release.n, figures),
            )

    def releases(self, task_id: bytes) -> list[Release]:
        """Return the releases of all closed periods, in order."""
        rest = "WHERE task_id = ? ORDER BY period"
        rows = self._read("releases", "period, n, figures", rest, task_id)
        if [period for period, _, _ in rows] != list(range(1, len(rows) + 1)):
            raise Damaged(self._name, "it lacks what a period released")
        if len({len(figures) for _, _, figures in rows}) > 1 or any(
            len(row[2]) % 16 for row in rows
        ):
            raise Damaged(self._name, "what a period released is not whole")
        releases = [Release(period, n, *_figures(figures)) for period, n, figures in rows]
        if any((release.variances < 0).any() for release in releases):
            raise Damaged(self._name, "what a period released has a variance below 0")
        return releases

    # ---- tokens ------------------------------------------------------------------------------

    def set_token(self, role: str, digest: bytes) -> None:
        """Store the digest of the token of a role, in place of any earlier one."""
        with self._transaction() as db:
            db.run("INSERT OR REPLACE INTO tokens VALUES (?, ?)", (role, digest))

    def tokens(self) -> dict[bytes, str]:
        """Return the role of each token, by the token's digest."""
        return dict(self._read("tokens", "digest, role"))

    def close(self) -> None:
        """Close the store."""
        with self._lock:
            self._connection.close()
            self._claim.release()


def _figures(data: bytes) -> Floats:
    """Return values and variances; every nan becomes the quiet one, which raises no warning."""
    figures = np.frombuffer(data, "<f8").reshape(2, -1)
    return np.where(np.isnan(figures), np.nan, figures)


def _unopened(path: str | Path, error: Exception) -> InputError:
    return InputError(
        f"{path} cannot be opened ({error}); a file in a folder that can be written is expected."
    )


def _added(pairs: Iterable[tuple[Place, Tally]]) -> Tallies[Place]:
    total: dict[Place, Tally] = {}
    for key, tally in pairs:
        total[key] = total[key] + tally if key in total else tally
    return Tallies(total)
