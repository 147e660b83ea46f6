"""Tables in our SQLite files, with a check of everything that is read, as files can be damaged.

SQLite stores any type in any column, and finds broken pages only when it reads them. So every cell
that is read is checked against the values that its column may have, and errors of SQLite itself
become one sentence that names the file.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from sfumato.errors import InputError

__all__ = [
    "ANY",
    "BYTES",
    "COUNT",
    "FLAG",
    "NUMBER",
    "TEXT",
    "TIME",
    "Cell",
    "Damaged",
    "Tables",
    "exactly",
    "optional",
    "refuse_other_files",
    "shown",
]


class Damaged(InputError):
    """One of our files is damaged."""

    def __init__(self, name: str, what: str) -> None:
        super().__init__(f"{name} is damaged: {what}; it cannot be gone on with.")


@dataclass(frozen=True)
class Cell:
    """The values that a column may have: a description, and a function that checks a value."""

    words: str
    fits: Callable[[Any], bool]


def _whole(most: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and 0 <= value <= most


ANY: Final = Cell("anything", lambda _: True)
BYTES: Final = Cell("bytes", lambda value: type(value) is bytes)
TEXT: Final = Cell("text", lambda value: type(value) is str)
COUNT: Final = Cell("a whole number from 0 on", _whole(1 << 53))
NUMBER: Final = Cell("a whole number of 32 bits", _whole((1 << 32) - 1))
FLAG: Final = Cell("0 or 1", _whole(1))
TIME: Final = Cell("seconds since 1970", _whole(1 << 36))


def exactly(size: int) -> Cell:
    """Return the cell type of exactly ``size`` bytes."""
    return Cell(f"{size} bytes", lambda value: type(value) is bytes and len(value) == size)


def optional(cell: Cell) -> Cell:
    """Return a cell type that also allows None."""
    return Cell(f"{cell.words} or nothing", lambda value: value is None or cell.fits(value))


class Tables:
    """A connection to one of our SQLite files.

    Parameters
    ----------
    connection
        The open connection to the file.
    name
        The name of the file in error messages.

    Examples
    --------
    >>> tables = Tables(sqlite3.connect(":memory:"), "app.journal")
    >>> tables.rows("SELECT 1, 'a'", cells=(COUNT, TEXT))
    [(1, 'a')]
    >>> tables.rows("SELECT 1, 2.5", cells=(COUNT, TEXT))
    Traceback (most recent call last):
    ...
    sfumato.wire.sqlite_tables.Damaged: app.journal is damaged: it has 2.5 where text is ...

    """

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self.connection = connection
        self.name = name
        self._process = os.getpid()

    def run(self, statement: str, given: Sequence[Any] = ()) -> sqlite3.Cursor:
        """Execute a statement whose result is not read."""
        self._refuse_fork()
        try:
            return self.connection.execute(statement, given)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._translated(error) from error

    @contextmanager
    def transaction(self) -> Iterator[Self]:
        """Do all of what follows, or nothing of it."""
        self.run("BEGIN IMMEDIATE")
        try:
            yield self
            self.run("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):  # a full disk may have caused a rollback already
                self.connection.execute("ROLLBACK")
            raise

    def run_all(self, script: str) -> None:
        """Execute several statements, one after the other."""
        self._refuse_fork()
        try:
            self.connection.executescript(script)
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._translated(error) from error

    def rows(
        self, query: str, given: Sequence[Any] = (), *, cells: Sequence[Cell]
    ) -> list[tuple[Any, ...]]:
        """Return the rows of a query; raise Damaged if a value does not fit its column."""
        self._refuse_fork()
        try:
            rows = self.connection.execute(query, given).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise self._translated(error) from error
        for row in rows:
            for value, cell in zip(row, cells, strict=True):
                if not cell.fits(value):
                    what = f"it has {shown(value)} where {cell.words} is expected"
                    raise Damaged(self.name, what)
        return rows

    def demand(self, columns: dict[str, Sequence[str]]) -> None:
        """Raise Damaged unless the file has these tables with these columns."""
        for table, names in columns.items():
            there = [row[1] for row in self.rows(f"PRAGMA table_info({table})", cells=(ANY,) * 6)]
            if sorted(there) != sorted(names):
                listed = ", ".join(map(str, there)) or "no columns"
                raise Damaged(self.name, f"its table {table} has {listed}")

    def _refuse_fork(self) -> None:
        """Raise InputError in a forked child process, which does not hold the lock on the file."""
        if os.getpid() != self._process:
            raise InputError(
                f"{self.name} was opened before this process was forked; open it here, once the "
                "process that has it has closed it."
            )

    def _translated(self, error: Exception) -> Exception:
        """Return the error to raise: Damaged, or the same error if the file is not at fault."""
        if isinstance(error, sqlite3.ProgrammingError):  # used in another thread, or already closed
            return InputError(f"{self.name} cannot be used here ({str(error).partition('.')[0]}).")
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        return Damaged(self.name, str(error)) if code in _OF_THE_FILE else error


_OF_THE_FILE: Final = frozenset(
    {
        sqlite3.SQLITE_ERROR,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_CONSTRAINT,
        sqlite3.SQLITE_MISMATCH,
        sqlite3.SQLITE_SCHEMA,
        sqlite3.SQLITE_RANGE,
        sqlite3.SQLITE_FORMAT,
    }
)
"""The SQLite error codes that mean that a file is damaged."""


def shown(value: Any) -> str:
    """Return a value as a sentence shows it."""
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return repr(value)[:40]


_MAGIC: Final = b"SQLite format 3\0"
_APPLICATION: Final = slice(68, 72)
"""Where the header of an SQLite file has the number of the program that it belongs to."""
_FIRST_CELLS: Final = slice(103, 105)
"""Where the first page has how much there is on it: nothing in a file without tables."""


def refuse_other_files(path: str | Path, application: int, kind: str) -> None:
    """Raise InputError if a file is there that is not of this kind; it is only read.

    A file that is empty, or without tables yet, may become one of any kind. This process must not
    have it open, or SQLite would lose its locks.

    Parameters
    ----------
    path
        The file.
    application
        The number that files of this kind have in their header.
    kind
        What a file of this kind is called, as in "store of a shuffler".

    """
    try:
        with Path(path).open("rb") as file:
            head = file.read(_FIRST_CELLS.stop)
    except FileNotFoundError:
        return
    if head and not head.startswith(_MAGIC):
        raise InputError(
            f"{path} is no {kind}, and is left as it is; one, or the name of a new file, is "
            "expected."
        )
    owner = int.from_bytes(head[_APPLICATION])
    if owner != application and (owner or any(head[_FIRST_CELLS])):
        raise InputError(f"{path} belongs to another program; a {kind} is expected.")
