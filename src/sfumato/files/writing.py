"""Writing files and folders that are complete or absent, whatever happens meanwhile."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from sfumato.errors import ExistingFile, InputError

__all__ = [
    "PICTURES",
    "TABLES",
    "complete_or_absent",
    "folder_complete_or_absent",
    "folder_to_disk",
    "named",
    "refuse_target",
    "size_in_words",
]


PICTURES: Final = (".png", ".svg", ".pdf")
TABLES: Final = (".csv", ".parquet")
"""How the names of pictures and of tables may end."""


def refuse_target(path: Path, suffixes: tuple[str, ...] = (), *, force: bool) -> None:
    """Raise InputError now if a file could not be written later.

    Parameters
    ----------
    path
        The file.
    suffixes
        How its name may end; in any way if nothing is said.
    force
        Whether it may be replaced if it exists.

    """
    if suffixes and path.suffix.lower() not in suffixes:
        raise InputError(f"{path} ends in {path.suffix!r}; {' or '.join(suffixes)} is expected.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; name the file to write.")
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}.")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a regular file and is left as it is.")
    if path.exists() and not force:
        raise ExistingFile(f"{path} exists; {ExistingFile.remedy}.")


@contextmanager
def named(path: Path) -> Iterator[None]:
    """Let an error that names no file, such as a full disk, name the one that is being written."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


@contextmanager
def complete_or_absent(path: Path, *, force: bool) -> Iterator[BinaryIO]:
    """Open a file that gets its name when all of it is on disk; after an error there is none."""
    refuse_target(path, force=force)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with named(path), part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        refuse_target(path, force=force)  # somebody else may have been quicker
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    folder_to_disk(path.parent)


def folder_to_disk(path: Path) -> None:
    """Wait until the names of a folder's files are on disk."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@contextmanager
def folder_complete_or_absent(path: Path, *, force: bool = False) -> Iterator[Path]:
    """Make a folder that gets its name when it is complete; after an error all is as before."""
    if path.exists() and not force:
        raise ExistingFile(f"{path} exists; {ExistingFile.remedy}.")
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: there is no folder {path.parent}.")
    part, old = (
        path.with_name(f".{path.name}.{secrets.token_hex(4)}.{kind}") for kind in ("part", "old")
    )
    part.mkdir()
    try:
        yield part
        if force and path.exists():
            path.rename(old)
        part.rename(path)  # fails if somebody else has put something there
    except BaseException:
        if old.exists() and not path.exists():
            old.rename(path)
        shutil.rmtree(part, ignore_errors=True)
        raise
    folder_to_disk(path.parent)
    shutil.rmtree(old, ignore_errors=True)


def size_in_words(size: float) -> str:
    """Return a number of bytes in words.

    Examples
    --------
    >>> size_in_words(200_000)
    '200 kB'

    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.3g} TB"
