"""Files that somebody else wrote: what is wrong with one is said in one sentence."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from stat import S_ISREG
from typing import Final

import pyarrow as pa

from sfumato.errors import InputError, SfumatoError

__all__ = ["describing", "is_parquet", "readable"]

_MAGIC: Final = b"PAR1"


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Raise InputError, with one sentence, where a reader stumbles over a broken file."""
    if not S_ISREG(path.stat().st_mode):
        raise InputError(f"{path} is not a regular file; the name of a file is expected.")
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError, csv.Error) as error:
        if isinstance(error, OSError) and error.filename:
            raise
        # A reader may quote the whole row it stumbled over: people's data have no place here.
        reason = re.sub(
            r".*Expected (\d+) columns, got (\d+).*",
            r"a row has \2 cells where the header has \1; is the separator right?",
            str(error).splitlines()[0],
        )
        reason = re.sub(
            "straddling object.*", "a row is longer than 1 MB, or a quote is not closed", reason
        )
        end = "" if reason.endswith("?") else "."
        raise InputError(f"{path} cannot be read: {reason.rstrip('.')}{end}") from error


def is_parquet(path: Path) -> bool:
    """Return whether a file begins like a Parquet file, whatever its name is."""
    with readable(path), path.open("rb") as file:
        return file.read(len(_MAGIC)) == _MAGIC


@contextmanager
def describing(path: Path, what: str, error_type: type[SfumatoError]) -> Iterator[None]:
    """Raise an error of a type, with one sentence, where a file's description makes no sense.

    Parameters
    ----------
    path
        The file.
    what
        What is described, such as "mechanism".
    error_type
        The type of the error.

    """
    try:
        yield
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        reason = str(error).removesuffix(".")
        raise error_type(
            f"{path} describes its {what} in a way that cannot be used: {reason}."
        ) from error
