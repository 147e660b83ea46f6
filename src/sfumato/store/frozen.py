"""One moment of a store that others go on writing to, for readers that take their time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NoReturn

from sfumato.errors import InputError
from sfumato.randomness import secure
from sfumato.store.report_tables import ReportTables
from sfumato.store.schema import CELLS, STEPS, migrate
from sfumato.store.sqlite import SQLiteStore
from sfumato.store.store_addresses import is_database
from sfumato.store.store_claims import refuse_nameless
from sfumato.wire.sqlite_tables import COUNT, Tables

__all__ = ["FrozenFile", "frozen"]


class FrozenFile(SQLiteStore):
    """One moment of a store in a file: nothing that is written later is seen, nor is it held up.

    Parameters
    ----------
    path
        The file, which a collector may be using.

    """

    def __init__(self, path: Path) -> None:
        ReportTables.__init__(self, secure())
        self.name, self._path = str(path), path
        if not path.is_file():
            raise InputError(f"{path} is no file; the store of a collector is expected.")
        self._frozen = self._snapshot()

    def _snapshot(self) -> Tables:
        try:
            address = f"{self._path.absolute().as_uri()}?mode=rw"
            connection = sqlite3.connect(
                address, uri=True, isolation_level=None, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise InputError(f"{self.name} cannot be read ({error}).") from error
        tables = Tables(connection, self.name)
        try:
            tables.run("PRAGMA query_only = ON")
            ((version,),) = tables.rows("PRAGMA user_version", cells=(COUNT,))
            if version == len(STEPS):
                migrate(tables)  # which refuses the file of another program
            else:
                self._brought_up_to_date()
            tables.run("BEGIN")
            tables.demand({table: tuple(cells) for table, cells in CELLS.items()})
        except sqlite3.Error as error:
            connection.close()
            raise InputError(f"{self.name} is no store of a collector ({error}).") from error
        except BaseException:
            connection.close()
            raise
        return tables

    def _brought_up_to_date(self) -> None:
        """Bring the store of an earlier version up to date; a collector must not have it."""
        with closing(SQLiteStore(self._path)) as store:
            for task in store.tasks():
                for period in store.unpacked(task.task_id):
                    store.pack(task.task_id, period)

    @contextmanager
    def _reading(self) -> Iterator[Tables]:
        yield self._frozen

    @contextmanager
    def _writing(self) -> Iterator[NoReturn]:
        raise InputError(f"{self.name} is read only here.")
        yield

    def close(self) -> None:
        """Let go of the moment."""
        self._frozen.connection.close()


@contextmanager
def frozen(address: str | Path) -> Iterator[ReportTables]:
    """Give one moment of the store at an address; raise InputError if there is none.

    Parameters
    ----------
    address
        A file, or ``postgresql://user@host/database``; collectors may be using it.

    """
    refuse_nameless(address)
    if not is_database(address):
        with closing(FrozenFile(Path(address))) as file:
            yield file
        return
    from sfumato.store.postgres import PostgresStore  # noqa: PLC0415 -- it needs an extra

    with closing(PostgresStore(str(address))) as store, store.frozen():
        yield store
