"""Claims on the files of stores, which leave the files of other programs as they are."""

from __future__ import annotations

from pathlib import Path

from sfumato.claims import Claim
from sfumato.errors import InputError
from sfumato.store.schema import APPLICATION
from sfumato.wire.sqlite_tables import refuse_other_files

__all__ = ["claimed_store", "refuse_nameless", "refuse_no_store", "unopened"]


def claimed_store(path: str | Path) -> Claim:
    """Return a claim on the file of a store, which is created if there is none."""
    refuse_nameless(path)
    try:
        return Claim(path, check=refuse_no_store)
    except OSError as error:
        raise unopened(path, error) from error


def refuse_nameless(address: str | Path) -> None:
    """Raise InputError if the address of a store is empty."""
    if not str(address).strip():
        raise InputError(
            f"the store is {str(address)!r}; a file or postgresql://user@host/database is expected."
        )


def refuse_no_store(path: str | Path) -> None:
    """Raise InputError if a file is there that is no store; this process must not have it open."""
    refuse_other_files(path, APPLICATION, "store of sfumato")


def unopened(path: str | Path, error: Exception) -> InputError:
    """Return the error of a file that cannot be opened."""
    reason = getattr(error, "strerror", None) or error
    return InputError(
        f"{path} cannot be opened ({reason}); a file in a folder that can be written is expected."
    )
