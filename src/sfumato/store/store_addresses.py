"""Opening a store by its address: a file, or a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from sfumato.store.report_tables import ReportTables
from sfumato.store.sqlite import SQLiteStore

__all__ = ["is_database", "open_store"]


def is_database(address: str | Path) -> bool:
    """Return whether an address is that of a PostgreSQL database.

    Examples
    --------
    >>> is_database("postgresql://db.example/reports"), is_database("collector.db")
    (True, False)

    """
    return str(address).startswith(("postgresql://", "postgres://"))


def open_store(address: str | Path, *, claimed: bool = False) -> ReportTables:
    """Return the store at an address; raise InputError if it cannot be opened.

    Parameters
    ----------
    address
        A file, or ``postgresql://user@host/database``, which needs the extra ``postgres``.
    claimed
        Whether the process that started this one has claimed the file for all its workers.

    """
    if not is_database(address):
        return SQLiteStore(address, claimed=claimed)
    from sfumato.store.postgres import PostgresStore  # noqa: PLC0415 -- it needs an extra

    return PostgresStore(str(address))
