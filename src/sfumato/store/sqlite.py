"""The embedded store: one SQLite file that only its owner can read.

It uses a write-ahead log with full synchronisation: a finished transaction survives a killed
process and a power failure. One collector can have a file at a time; the workers of a collector
share it, and wait for each other's transactions.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import ClassVar, Final

from sfumato.claims import Claim
from sfumato.errors import InputError
from sfumato.randomness import Source
from sfumato.store.engine_tables import EngineTables
from sfumato.store.schema import CELLS, migrate
from sfumato.store.store_claims import claimed_store, unopened
from sfumato.store.task_lives import TaskLives
from sfumato.store.task_tables import Database
from sfumato.wire.sqlite_tables import Tables

try:
    import fcntl
except ImportError:  # not a Unix system
    fcntl = None  # type: ignore[assignment]

__all__ = ["SQLiteStore", "closing_lock"]

PATIENCE: Final = 30.0
"""The longest time, in seconds, for which a transaction waits for those of other workers."""


class SQLiteStore(TaskLives, EngineTables):
    """A store in one file.

    Parameters
    ----------
    path
        The file; it is created if there is none.
    claimed
        Whether the process that started this one has claimed the file for all its workers.
    rng
        Where the order of reports in the log comes from; by default the operating system.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from sfumato.core.tally import Place, Tally
    >>> from sfumato.store import Filled
    >>> folder = tempfile.mkdtemp()
    >>> store = SQLiteStore(f"{folder}/collector.db")
    >>> store.add_task(bytes(32), b"{}", {}, public=True)
    True
    >>> tally = Tally(2, np.array([1, 1]))
    >>> store.commit([Filled(bytes(32), 0, 1, 2, bytes(32), b"ab", {Place(1, 1): tally})])
    [True]
    >>> store.tallies(bytes(32))
    Tallies({Place(span=1, period=1, part=0): Tally(n=2, sums=[1, 1])})
    >>> store.close()

    """

    _in_order: ClassVar[str] = "rowid"

    def __init__(
        self, path: str | Path, *, claimed: bool = False, rng: Source | None = None
    ) -> None:
        super().__init__(rng)
        self.name = str(path)
        self._path = self.file = Path(path)
        self._write_lock, self._read_lock = RLock(), RLock()
        self._claim: Claim | None = None
        if not claimed:
            self._claim = claimed_store(path)
        try:
            self._tables = self._open()
            try:
                self._reader_tables = self._open()
            except BaseException:
                self._tables.connection.close()
                raise
        except BaseException:
            if self._claim is not None:
                self._claim.release()
            raise

    def _open(self) -> Tables:
        try:
            connection = sqlite3.connect(
                self._path, isolation_level=None, check_same_thread=False, timeout=PATIENCE
            )
        except sqlite3.Error as error:
            raise unopened(self._path, error) from error
        tables = Tables(connection, self.name)
        try:
            for setting in ("journal_mode = WAL", "synchronous = FULL"):
                tables.run(f"PRAGMA {setting}")
            migrate(tables)
            tables.demand({table: tuple(cells) for table, cells in CELLS.items()})
        except sqlite3.OperationalError as error:
            connection.close()
            raise InputError(
                f"{self._path} cannot be used ({error}); one collector at a time can have it."
            ) from error
        except sqlite3.DatabaseError as error:
            connection.close()
            raise InputError(f"{self._path} is no store ({error}).") from error
        except BaseException:
            connection.close()
            raise
        return tables

    @contextmanager
    def _writing(self) -> Iterator[Database]:
        self.signs.give()
        with self._write_lock, self._tables.transaction():
            yield self._tables

    @contextmanager
    def _reading(self) -> Iterator[Database]:
        self.signs.give()
        with self._read_lock:
            yield self._reader_tables

    def _share(self, db: Database, task_id: bytes, period: int) -> None:
        """Do nothing: a transaction that writes is the only one."""

    def _exclude(self, db: Database, task_id: bytes, period: int) -> None:
        """Do nothing: a transaction that writes is the only one."""

    @contextmanager
    def closing(self) -> Iterator[bool]:
        """Give whether this process closes periods now; others do not."""
        with self.signs.of_this_thread():
            if self._claim is not None:  # there are no others
                yield True
                return
            with self._locked_out() as ours:
                yield ours

    @contextmanager
    def _locked_out(self) -> Iterator[bool]:
        """Keep other workers from closing periods; give whether they are kept from it."""
        held = os.open(closing_lock(self._path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
            else:
                yield True
        finally:
            os.close(held)

    @contextmanager
    def _wiping(self) -> Iterator[Database]:
        with self._write_lock:
            self._tables.run("PRAGMA secure_delete = ON")
            try:
                with self._writing() as db:
                    yield db
            finally:
                self._tables.run("PRAGMA secure_delete = OFF")

    def _wiped(self) -> None:
        with self._write_lock:
            self._tables.run("PRAGMA busy_timeout = 0")  # somebody may read for long, as a backup
            try:
                self._tables.run("PRAGMA wal_checkpoint(TRUNCATE)")  # the log had it as well
            finally:
                self._tables.run(f"PRAGMA busy_timeout = {int(1000 * PATIENCE)}")

    def close(self) -> None:
        """Close the store."""
        with self._write_lock, self._read_lock:
            self._tables.connection.close()
            self._reader_tables.connection.close()
            if self._claim is not None:
                closing_lock(self._path).unlink(missing_ok=True)  # of workers that were killed
                self._claim.release()


def closing_lock(path: Path) -> Path:
    """Return the file whose lock the worker has that closes periods."""
    return path.with_name(f"{path.name}.closing")
