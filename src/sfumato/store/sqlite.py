"""The embedded store: one SQLite file that only its owner can read.

Write-ahead log with full synchronisation: a transaction that returned survives a killed process
and a lost power supply. One process has a file at a time.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import RLock
from typing import Any

import numpy as np

from sfumato.core.tally import Place, Tallies, Tally
from sfumato.errors import InputError
from sfumato.store.interface import Count, Filled, Release, Store, StoredTask
from sfumato.store.schema import migrate

__all__ = ["SQLiteStore"]


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
    >>> store.commit([Filled(bytes(32), 0, 1, 2, bytes(32), b"ab", {(1, 0): tally})])
    >>> store.tallies(bytes(32))
    Tallies({(1, 1, 0): Tally(n=2, sums=[1, 1])})
    >>> store.close()

    """

    def __init__(self, path: str | Path) -> None:
        self._name = str(path)
        self._lock = RLock()
        try:
            _owned(path)
            self._connection = sqlite3.connect(
                path, isolation_level=None, check_same_thread=False, timeout=1.0
            )
        except (OSError, sqlite3.Error) as error:
            raise InputError(
                f"{path} cannot be opened ({error}); a file in a folder that can be written is "
                "expected."
            ) from error
        try:
            for setting in ("locking_mode = EXCLUSIVE", "journal_mode = WAL", "synchronous = FULL"):
                self._connection.execute(f"PRAGMA {setting}")
            self._connection.execute("BEGIN IMMEDIATE")  # takes the lock, and keeps it
            self._connection.execute("COMMIT")
            migrate(self._connection, self._name)
        except sqlite3.OperationalError as error:
            self._connection.close()
            raise InputError(
                f"{path} cannot be used ({error}); one collector at a time can have it."
            ) from error
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise InputError(f"{path} is no store ({error}).") from error
        except InputError:
            self._connection.close()
            raise

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk may have rolled back already
                    self._connection.execute("ROLLBACK")
                raise

    def _rows(self, query: str, *given: Any) -> list[Any]:
        with self._lock:
            return self._connection.execute(query, given).fetchall()

    # ---- tasks -------------------------------------------------------------------------------

    def add_task(
        self, task_id: bytes, published: bytes, keys: Mapping[int, bytes], *, public: bool
    ) -> bool:
        """Take in a task; return whether it is new."""
        with self._transaction() as db:
            added = db.execute(
                "INSERT OR IGNORE INTO tasks VALUES (?, ?, ?)", (task_id, published, public)
            )
            if not added.rowcount:
                return False
            db.executemany(
                "INSERT INTO keys (task_id, key_id, private) VALUES (?, ?, ?)",
                [(task_id, name, private) for name, private in keys.items()],
            )
        return True

    def tasks(self) -> list[StoredTask]:
        """Return all tasks, in the order in which they came."""
        found = []
        for task_id, published, public in self._rows(
            "SELECT task_id, published, public FROM tasks ORDER BY rowid"
        ):
            keys = self._rows("SELECT key_id, private FROM keys WHERE task_id = ?", task_id)
            until = self._rows(
                "SELECT key_id, until FROM keys WHERE task_id = ? AND until IS NOT NULL", task_id
            )
            ((closed,),) = self._rows(
                "SELECT coalesce(max(period), 0) FROM releases WHERE task_id = ?", task_id
            )
            found.append(
                StoredTask(task_id, published, dict(keys), bool(public), closed, dict(until))
            )
        return found

    def replace_key(
        self, task_id: bytes, key_id: int, private: bytes, published: bytes, until: int
    ) -> None:
        """Give a task a new key; those before open reports up to a period, and no later ones."""
        with self._transaction() as db:
            db.execute(
                "UPDATE keys SET until = min(coalesce(until, ?1), ?1) WHERE task_id = ?2",
                (until, task_id),
            )
            db.execute(
                "INSERT INTO keys (task_id, key_id, private) VALUES (?, ?, ?)",
                (task_id, key_id, private),
            )
            db.execute("UPDATE tasks SET published = ? WHERE task_id = ?", (published, task_id))

    def erase_keys(self, task_id: bytes) -> None:
        """Erase the keys that open only reports of periods that have closed."""
        with self._lock:
            self._connection.execute("PRAGMA secure_delete = ON")
            try:
                with self._transaction() as db:
                    db.execute(
                        "DELETE FROM keys WHERE task_id = ?1 AND until <= "
                        "(SELECT coalesce(max(period), 0) FROM releases WHERE task_id = ?1)",
                        (task_id,),
                    )
            finally:
                self._connection.execute("PRAGMA secure_delete = OFF")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # the log had it as well

    # ---- reports -----------------------------------------------------------------------------

    def commit(self, filled: Sequence[Filled]) -> None:
        """Append the reports of some buckets and fold their tallies, all together or not at all."""
        with self._transaction() as db:
            for one in filled:
                bucket = (one.task_id, one.key_id, one.period)
                db.execute(
                    "INSERT INTO batches (task_id, key_id, period, n, ids, contents) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    (*bucket, one.n, one.ids, one.contents),
                )
                for place, tally in one.tallies.items():
                    _fold(db, (*bucket, place.span, place.part), tally)

    def ids(self, task_id: bytes, period: int) -> Iterator[bytes]:
        """Yield the ids of a period's reports, some together."""
        for (ids,) in self._rows(
            "SELECT ids FROM batches WHERE task_id = ? AND period = ?", task_id, period
        ):
            yield ids

    def contents(self, task_id: bytes, period: int) -> Iterator[bytes]:
        """Yield the opened contents of a period's reports, some together."""
        for (contents,) in self._rows(
            "SELECT contents FROM batches WHERE task_id = ? AND period = ?", task_id, period
        ):
            yield contents

    def tallies(self, task_id: bytes, period: int | None = None) -> Tallies[Place]:
        """Return the tallies of a task, or of one of its periods."""
        rows = self._rows(
            "SELECT period, span, block, n, shape, sums FROM tallies "
            "WHERE task_id = ? AND (?2 IS NULL OR period = ?2)",
            task_id,
            period,
        )
        return _added((Place(span, p, part), _tally(*kept)) for p, span, part, *kept in rows)

    def recount(self, task_id: bytes, count: Count) -> Tallies[Place]:
        """Return the same from the reports themselves."""
        counted: Tallies[Place] = Tallies()
        for (batch,) in self._rows("SELECT batch FROM batches WHERE task_id = ?", task_id):
            ((period, contents),) = self._rows(
                "SELECT period, contents FROM batches WHERE batch = ?", batch
            )
            counted += Tallies(count(period, contents))
        return counted

    def participation(self, task_id: bytes) -> dict[int, int]:
        """Return how many reports each period has."""
        return dict(
            self._rows(
                "SELECT period, sum(n) FROM tallies WHERE task_id = ? GROUP BY period", task_id
            )
        )

    # ---- rounds ------------------------------------------------------------------------------

    def close_round(self, task_id: bytes, period: int, number: int) -> None:
        """Write down that a round is over; no answer to it counts any more."""
        with self._transaction() as db:
            db.execute("INSERT INTO rounds VALUES (?, ?, ?)", (task_id, period, number))

    def rounds(self, task_id: bytes) -> dict[int, int]:
        """Return how many rounds of each period are over, but for those of one round."""
        query = "SELECT period, count(*) FROM rounds WHERE task_id = ? GROUP BY period"
        return dict(self._rows(query, task_id))

    # ---- releases ----------------------------------------------------------------------------

    def close_period(self, task_id: bytes, release: Release) -> None:
        """Write down what was released; no report of the period counts any more."""
        figures = np.stack([release.values, release.variances]).astype("<f8").tobytes()
        with self._transaction() as db:
            db.execute(
                "INSERT INTO releases VALUES (?, ?, ?, ?)",
                (task_id, release.period, release.n, figures),
            )

    def releases(self, task_id: bytes) -> list[Release]:
        """Return what was released, period by period."""
        return [
            Release(period, n, *np.frombuffer(figures, "<f8").reshape(2, -1))
            for period, n, figures in self._rows(
                "SELECT period, n, figures FROM releases WHERE task_id = ? ORDER BY period", task_id
            )
        ]

    # ---- tokens ------------------------------------------------------------------------------

    def set_token(self, role: str, digest: bytes) -> None:
        """Let whoever knows what has this digest act in a role, instead of anyone before."""
        with self._transaction() as db:
            db.execute("INSERT OR REPLACE INTO tokens VALUES (?, ?)", (role, digest))

    def tokens(self) -> dict[bytes, str]:
        """Return the role of each token by its digest."""
        return dict(self._rows("SELECT digest, role FROM tokens"))

    def close(self) -> None:
        """Let go of the store."""
        with self._lock:
            self._connection.close()


def _owned(path: str | Path) -> None:
    """Make the file if there is none; in any case nobody but its owner may read it."""
    opened = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    os.fchmod(opened, 0o600)
    os.close(opened)


def _fold(db: sqlite3.Connection, place: tuple[Any, ...], tally: Tally) -> None:
    """Add a tally to what its place has."""
    row = db.execute(
        "SELECT n, shape, sums FROM tallies WHERE task_id = ? AND key_id = ? AND period = ? "
        "AND span = ? AND block = ?",
        place,
    ).fetchone()
    total = tally if row is None else _tally(*row) + tally
    shape = ",".join(map(str, total.sums.shape))
    db.execute(
        "INSERT OR REPLACE INTO tallies (task_id, key_id, period, span, block, n, shape, sums) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (*place, total.n, shape, total.sums.astype("<i8").tobytes()),
    )


def _tally(n: int, shape: str, sums: bytes) -> Tally:
    sides = [int(side) for side in shape.split(",")]
    return Tally(n, np.frombuffer(sums, "<i8").reshape(sides))


def _added(pairs: Iterable[tuple[Place, Tally]]) -> Tallies[Place]:
    total: dict[Place, Tally] = {}
    for key, tally in pairs:
        total[key] = total[key] + tally if key in total else tally
    return Tallies(total)
