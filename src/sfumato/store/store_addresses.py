"""Opening a store by its address: a file, or a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sfumato.errors import SfumatoError
from sfumato.store.report_tables import ReportTables
from sfumato.store.sqlite import SQLiteStore, closing_lock
from sfumato.store.store_claims import claimed_store

__all__ = ["DatabaseAway", "claimed_for_workers", "is_database", "open_store"]


class DatabaseAway(SfumatoError):
    """The database cannot be reached, or has broken off."""


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


@contextmanager
def claimed_for_workers(address: str | Path) -> Iterator[tuple[int, ...]]:
    """Claim the file of a store for several processes, which then open it as ``claimed``.

    Gives the descriptors that these must inherit, so that the file stays claimed until the last of
    them has ended; a database needs none.
    """
    if is_database(address):
        yield ()
        return
    claim = claimed_store(address)
    try:
        yield (claim.descriptor,)
    finally:
        closing_lock(Path(address)).unlink(missing_ok=True)
        claim.release()
