"""Stores that several collectors have at a time, as tests open them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path

from tests.store.own_postgres import OwnPostgres

from sfumato.store import SQLiteStore
from sfumato.store.postgres import PostgresStore
from sfumato.store.report_tables import ReportTables

__all__ = ["SharedDatabase", "SharedFile", "Sharing"]


class Sharing(ABC):
    """A store, and other processes' views of it.

    Parameters
    ----------
    folder
        An empty folder.

    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = self.opened()
        self._opened = [self.store]

    @abstractmethod
    def opened(self) -> ReportTables:
        """Return the store as one more process opens it."""

    def another(self) -> ReportTables:
        """Return the store as another process has it."""
        self._opened.append(self.opened())
        return self._opened[-1]

    def close(self) -> None:
        """Close the store everywhere."""
        for store in reversed(self._opened):
            store.close()


class SharedFile(Sharing):
    """One SQLite file that the workers of a collector share."""

    def opened(self) -> ReportTables:
        """Return the store as one more worker opens it."""
        return SQLiteStore(self.folder / "collector.db", claimed=True)


class SharedDatabase(Sharing):
    """A PostgreSQL database that several collectors share.

    Parameters
    ----------
    server
        The server, whose database is emptied first.

    """

    def __init__(self, server: OwnPostgres) -> None:
        self.server = server
        server.empty()
        super().__init__(server.folder)

    def opened(self) -> ReportTables:
        """Return the store as one more collector opens it."""
        return PostgresStore(self.server.dsn)
