"""The store of a deployment: a PostgreSQL database that several collectors share.

What is acknowledged is as safe as the database makes it: ``fsync`` and ``synchronous_commit`` must
stay on there. A database that is away makes each call fail with one sentence; the next call
connects anew, so that nothing has to be started again when it is back.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import RLock
from typing import Any, ClassVar, Final

import psycopg
from psycopg import conninfo

from sfumato.errors import InputError, SfumatoError
from sfumato.randomness import Source
from sfumato.store.engine_tables import EngineTables
from sfumato.store.postgres_schema import FIRST, POSTGRES_STEPS
from sfumato.store.schema import CELLS
from sfumato.store.store_addresses import DatabaseAway
from sfumato.store.task_lives import TaskLives
from sfumato.store.task_tables import WHOLE, Database
from sfumato.wire.sqlite_tables import COUNT, FLAG, TEXT, Cell, Damaged, shown

__all__ = ["SETTINGS", "DatabaseAway", "PostgresStore", "translated"]

CLOSER: Final = 0x5346554D_0001
MIGRATION: Final = 0x5346554D_0002
"""The numbers of the database's locks for closing periods, and for bringing tables up to date."""
PAUSE: Final = 0.5
"""The shortest time, in seconds, between two attempts to reach a database that is away."""
SILENT: Final = 15_000
"""The milliseconds without a sign of the network after which a connection is lost."""
SETTINGS: Final = {
    "connect_timeout": 3,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": SILENT,
    "application_name": "sfumato",
}
PROBE: Final = 2_000
"""The milliseconds after which an attempt to write has failed."""
STALLED: Final = 30_000
"""The milliseconds after which the database ends the transaction of a process that stands still."""
CLOSING: Final = 120_000
"""The same for a process that closes periods, which may compute for long between two questions."""


@contextmanager
def translated() -> Iterator[None]:
    """Turn errors of the database into DatabaseAway, without what was sent to it."""
    try:
        yield
    except psycopg.Error as error:
        raise DatabaseAway(f"the database cannot be read ({_short(error)}).") from None


class _Refusing(DatabaseAway):
    """The database can be reached and refuses, as for want of rights or because it is read-only."""


class _Session:
    """One connection to the database, made anew when it is lost."""

    def __init__(self, dsn: str, name: str, stalled: int = STALLED, silent: int = SILENT) -> None:
        self._dsn = dsn
        self._settings = SETTINGS | {"tcp_user_timeout": silent}
        self.name = name
        self._stalled = stalled
        self.lock = RLock()
        self._connection: psycopg.Connection[Any] | None = None
        self._next_try = 0.0

    def connection(self) -> psycopg.Connection[Any]:
        """Return the open connection; raise DatabaseAway if there can be none now."""
        if self._connection is None or self._connection.closed:
            if time.monotonic() < self._next_try:
                raise DatabaseAway(f"{self.name} was out of reach a moment ago; it is tried again.")
            try:
                self._connection = psycopg.connect(
                    self._dsn,
                    autocommit=True,
                    options=f"-c idle_in_transaction_session_timeout={self._stalled}",
                    **self._settings,  # type: ignore[arg-type]
                )
            except psycopg.Error as error:
                self._next_try = time.monotonic() + PAUSE
                raise DatabaseAway(f"{self.name} cannot be reached ({_short(error)}).") from error
        return self._connection

    def run(self, statement: str, given: Sequence[Any] = ()) -> Any:
        """Execute a statement; return a cursor."""
        try:
            text: Any = statement.replace("?", "%s")
            return self.connection().execute(text, given, binary=True)
        except psycopg.Error as error:
            raise self._translated(error) from error

    def rows(
        self, query: str, given: Sequence[Any] = (), *, cells: Sequence[Cell]
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query; raise Damaged if a value does not fit its column."""
        try:
            rows: list[tuple[Any, ...]] = self.run(query, given).fetchall()
        except psycopg.Error as error:
            raise self._translated(error) from error
        for row in rows:
            for value, cell in zip(row, cells, strict=True):
                if not cell.fits(value):
                    what = f"it has {shown(value)} where {cell.words} is expected"
                    raise Damaged(self.name, what)
        return rows

    @contextmanager
    def transaction(self) -> Iterator[Database]:
        """Do all of what follows, or nothing of it; if the database breaks off, nobody knows."""
        with self.lock:
            try:
                with self.connection().transaction():
                    yield self
            except psycopg.Error as error:
                raise self._translated(error) from error

    def close(self) -> None:
        """Close the connection."""
        with self.lock, suppress(psycopg.Error):
            if self._connection is not None:
                self._connection.close()

    def _translated(self, error: psycopg.Error) -> Exception:
        lost = self._connection is None or self._connection.closed
        if lost or isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
            self.close()
            return DatabaseAway(f"{self.name} has broken off ({_short(error)}).")
        if isinstance(error, (psycopg.errors.InsufficientPrivilege, psycopg.InternalError)):
            return _Refusing(f"{self.name} refuses what is needed ({_short(error)}).")
        if isinstance(error, psycopg.ProgrammingError):
            return Damaged(self.name, _short(error))
        return error


class PostgresStore(TaskLives, EngineTables):
    """A store in a PostgreSQL database.

    Parameters
    ----------
    dsn
        The address of the database, ``postgresql://user@host/name``, or settings of libpq.
    rng
        Where the order of reports in the log comes from; by default the operating system.

    """

    _in_order: ClassVar[str] = "position"

    def __init__(self, dsn: str, *, rng: Source | None = None) -> None:
        super().__init__(rng)
        self.name, self._dsn = _name(dsn), dsn
        self._writer_session = _Session(dsn, self.name)
        self._reader_session = _Session(dsn, self.name)
        self._closer_session = _Session(dsn, self.name, CLOSING)
        self._prober_session = _Session(dsn, self.name, silent=2 * PROBE)
        self._next_sign = 0.0
        """When the database hears next that this process is still at work with closing."""
        try:
            with self._writer_session.transaction() as db:
                self._migrate(db)
        except _Refusing as error:
            self.close()
            raise InputError(
                f"{error} A user who may create, read and write its tables is expected."
            ) from error
        except DatabaseAway as error:
            raise InputError(
                f"{error} An address like postgresql://user@host/database is expected."
            ) from error
        except BaseException:
            self.close()
            raise

    def _migrate(self, db: Database) -> None:
        """Bring the tables up to date; raise InputError if they are of a later version."""
        db.run("SELECT pg_advisory_xact_lock(?)", (MIGRATION,))
        db.run("CREATE TABLE IF NOT EXISTS sfumato_schema (version BIGINT NOT NULL)")
        rows = db.rows("SELECT version FROM sfumato_schema", cells=(COUNT,))
        version = rows[0][0] if rows else FIRST - 1
        newest = FIRST - 1 + len(POSTGRES_STEPS)
        if not FIRST - 1 <= version <= newest:
            raise InputError(
                f"{self.name} has version {version}; this sfumato knows versions up to {newest}, "
                "a newer one is needed."
            )
        for step in POSTGRES_STEPS[version - FIRST + 1 :]:
            for statement in filter(str.strip, step.split(";")):
                db.run(statement)
        if version < newest:
            db.run("DELETE FROM sfumato_schema")
            db.run("INSERT INTO sfumato_schema VALUES (?)", (newest,))
        self._demand(db)

    def _demand(self, db: Database) -> None:
        """Raise Damaged unless all tables have the columns that they should have."""
        query = (
            "SELECT CAST(column_name AS TEXT) FROM information_schema.columns "
            "WHERE table_schema = current_schema() AND table_name = ?"
        )
        for table, columns in CELLS.items():
            there = {name for (name,) in db.rows(query, (table,), cells=(TEXT,))}
            if there - {self._in_order} != set(columns):
                listed = ", ".join(sorted(there)) or "no columns"
                raise Damaged(self.name, f"its table {table} has {listed}")

    def _writing(self) -> AbstractContextManager[Database]:
        self._go_on()
        return self._writer_session.transaction()

    @contextmanager
    def _reading(self) -> Iterator[Database]:
        self._go_on()
        with self._reader_session.lock:
            yield self._reader_session

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Let everything that is read until the end be of one moment, however long that takes."""
        session = self._reader_session
        with session.lock:
            session.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            session.run("SET LOCAL idle_in_transaction_session_timeout = 0")
            try:
                yield
            finally:
                with suppress(DatabaseAway):
                    session.run("ROLLBACK")

    @contextmanager
    def _piped(self) -> Iterator[None]:
        with self._writer_session.connection().pipeline():
            yield

    def _share(self, db: Database, task_id: bytes, period: int) -> None:
        numbers = _number(task_id, WHOLE), _number(task_id, period)
        db.run("SELECT pg_advisory_xact_lock_shared(?), pg_advisory_xact_lock_shared(?)", numbers)

    def _exclude(self, db: Database, task_id: bytes, period: int) -> None:
        if period != WHOLE:
            self._share(db, task_id, WHOLE)
        db.run("SELECT pg_advisory_xact_lock(?)", (_number(task_id, period),))

    @contextmanager
    def closing(self) -> Iterator[bool]:
        """Give whether this process closes periods now; others do not.

        The lock is that of a transaction, which the database ends if this process stands still or
        its machine is gone. Then another one closes; whoever comes second changes nothing. It is
        kept for as long as this process goes on, however much there is to move.
        """
        session = self._closer_session
        with session.lock:
            session.run("BEGIN")
            try:
                query = "SELECT CAST(pg_try_advisory_xact_lock(?) AS INTEGER)"
                ((ours,),) = session.rows(query, (CLOSER,), cells=(FLAG,))
                with self.signs.of_this_thread():
                    yield bool(ours)
            finally:
                with suppress(DatabaseAway):  # a lost connection has lost the lock as well
                    session.run("ROLLBACK")

    def _go_on(self) -> None:
        """Keep the right to close periods, if this thread has it and is still at work."""
        if self.signs.give() and time.monotonic() >= self._next_sign:
            self._next_sign = time.monotonic() + CLOSING / 4000
            with suppress(DatabaseAway):  # another one may close now
                self._closer_session.run("SELECT 1")

    def unwritable(self) -> str | None:
        """Return why nothing can be written now, tried on a connection of its own.

        It stays open while all is well, as there may be no room for another one.
        """
        session = self._prober_session
        try:
            with session.lock:
                session.run(f"SET statement_timeout = {PROBE}")
                session.run(f"SET lock_timeout = {PROBE // 4}")
                session.run("UPDATE writers SET last = last")
        except (SfumatoError, psycopg.Error) as error:
            # Whoever waits for another that writes can write.
            if isinstance(error.__cause__, psycopg.errors.LockNotAvailable):
                return None
            session.close()
            self._prober_session = _Session(self._dsn, self.name, silent=2 * PROBE)
            return _short(error)
        return None

    def close(self) -> None:
        """Close all connections."""
        sessions = (self._writer_session, self._reader_session, self._closer_session)
        for session in (*sessions, self._prober_session):
            session.close()


def _name(dsn: str) -> str:
    """Return how the database is called in sentences: without user and password."""
    try:
        settings = conninfo.conninfo_to_dict(dsn)
    except psycopg.Error as error:
        raise InputError(
            f"this is no address of a database ({_short(error)}); "
            "postgresql://user@host/database is expected."
        ) from error
    host, port = settings.get("host", ""), settings.get("port", "")
    where = f" at {host}" + (f":{port}" if port else "") if host else ""
    return f"the database {settings.get('dbname', '')}".rstrip() + where


def _short(error: Exception) -> str:
    """Return what the database says first, or the last line of an error that says something.

    That is not what the client sent, which may be private.
    """
    primary = getattr(getattr(error, "diag", None), "message_primary", None)
    if primary:
        return str(primary).strip().rstrip(".")[:160]
    lines = [line.strip().rstrip(".") for line in str(error).splitlines()]
    causes = [line for line in lines if line and not line.endswith("?")]  # hints are questions
    return (causes[-1] if causes else type(error).__name__)[:160]


def _number(task_id: bytes, period: int) -> int:
    """Return the number of the lock of a period."""
    text = task_id + period.to_bytes(8, "little")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little", signed=True)
