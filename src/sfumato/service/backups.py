"""Copies of a store that are made while its collector runs, and putting one in its place.

A copy is one moment of the store, compact and checked: it has no log of changes and no pages of
what was deleted. After it was put in place, exactly those reports are missing that were
acknowledged since that moment; which periods they can be of follows from the clock.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from sfumato.claims import Claim
from sfumato.errors import InputError
from sfumato.files.writing import complete_or_absent, refuse_target
from sfumato.service.engine_task import resumed
from sfumato.service.running_task import RunningTask
from sfumato.store import SQLiteStore
from sfumato.store.schema import APPLICATION, CELLS, STEPS, migrate
from sfumato.wire.sqlite_tables import ANY, Tables

__all__ = ["ShortTask", "back_up", "restore"]

LOGS: Final = ("-wal", "-shm")
"""How the names of the files end that SQLite keeps beside a store."""


@dataclass(frozen=True)
class ShortTask:
    """A task of a store that was put in place: the periods that may lack reports.

    Parameters
    ----------
    task_id, title
        The task.
    first, last
        The first and the last of these periods.

    """

    task_id: str
    title: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"{self.title!r} may lack reports of periods {self.first}..{self.last}"


def back_up(store: Path, target: Path, *, force: bool = False) -> int:
    """Copy a store to a file, also while a collector uses it; return the copy's size in bytes.

    A file that is replaced must be a copy or another store, and no collector may be using it.
    """
    if target.exists() and store.exists() and target.samefile(store):
        raise InputError(f"{target} is the store itself; another file is expected for the copy.")
    _refuse_databases(target)
    with _reading(store) as source, _replaced(target, force=force) as file:
        copy = Path(file.name)
        try:
            source.execute("VACUUM INTO ?", [str(copy)])
        except sqlite3.Error as error:
            raise InputError(f"{store} cannot be copied ({error}).") from error
        _check(copy, store)
    return target.stat().st_size


def restore(backup: Path, store: Path, now: float, *, force: bool = False) -> list[ShortTask]:
    """Put a copy of a store in its place; return the tasks that may lack reports since.

    The collector of the store must have stopped. Nothing is changed unless the copy can be used: it
    is opened beside the store, which it then replaces.

    Parameters
    ----------
    backup
        The copy.
    store
        The file of the store.
    now
        The time in seconds since 1970.
    force
        Whether a store that is there is replaced.

    """
    if store.exists() and backup.exists() and store.samefile(backup):
        raise InputError(f"{backup} is the store itself; a copy of it is expected.")
    _refuse_databases(store)
    with _reading(backup):
        _check(backup, backup)
    with _replaced(store, force=force) as file:
        copy = Path(file.name)
        with backup.open("rb") as content:
            shutil.copyfileobj(content, file)
        file.flush()
        with _opened(copy, backup) as opened:
            tasks = [resumed(stored, opened) for stored in opened.tasks()]
            shorts = [short for task in tasks if (short := _short(task, now)) is not None]
            for short in shorts:
                opened.note_gap(bytes.fromhex(short.task_id), short.first, short.last)
        return shorts


@contextmanager
def _replaced(target: Path, *, force: bool) -> Iterator[BinaryIO]:
    """Give a file beside the target that takes its place when all of it is on disk.

    It gets the owner of what it replaces, or of the folder. Of what belonged to the store that was
    there, nothing is left; after an error all is as before.
    """
    refuse_target(target, force=force)
    is_new = not target.exists()
    owner = (target.parent if is_new else target).stat()
    try:
        claim = Claim(target, private=False)  # it is replaced, whatever it is
    except OSError as error:
        raise InputError(f"{target} cannot be replaced ({error}).") from error
    real = target.resolve()
    try:
        with complete_or_absent(real, force=True) as file:
            os.fchmod(file.fileno(), 0o600)
            with suppress(OSError):  # only root may give files away
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            yield file
            _fold(real)
            for name in LOGS:
                real.with_name(real.name + name).unlink(missing_ok=True)
    except BaseException:
        if is_new:  # the claim has made an empty file
            real.unlink(missing_ok=True)
        raise
    finally:
        claim.release()


def _fold(store: Path) -> None:
    """Move what a store's log has into its file: it may stay, and that log is none of the next."""
    with suppress(sqlite3.Error):  # it may be damaged, or no store
        address = f"{store.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(address, uri=True)) as opened:
            opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextmanager
def _opened(copy: Path, source: Path) -> Iterator[SQLiteStore]:
    """Open a copy as a store; what is wrong with it is said of its source."""
    logs = [copy.with_name(copy.name + name) for name in LOGS]
    try:
        try:
            opened = SQLiteStore(copy)
        except InputError as error:
            raise InputError(str(error).replace(str(copy), str(source))) from error
        with closing(opened):
            yield opened
        if any(log.exists() for log in logs):  # no room for what has changed
            raise InputError(f"{source} cannot be restored: its copy could not be finished.")
    finally:
        for log in logs:
            log.unlink(missing_ok=True)


def _short(running: RunningTask, now: float) -> ShortTask | None:
    first, last = running.sealed + 1, min(running.period_at(now), running.published.periods)
    if last < first:
        return None
    return ShortTask(running.name, str(running.published.spec["title"]), first, last)


def _refuse_databases(path: Path) -> None:
    """Raise InputError for the address of a database, which has tools of its own."""
    if str(path).startswith(("postgresql:/", "postgres:/")):  # a path has one slash less
        raise InputError(
            "the store is a PostgreSQL database, and a file is expected here; pg_dump copies a "
            "database and pg_restore puts it back."
        )


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    """Give a connection to a store, without the right to the file that a collector has."""
    _refuse_databases(path)
    if not path.is_file():
        raise InputError(f"{path} is no file; the store of a collector is expected.")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as opened:
            ((application,),) = opened.execute("PRAGMA application_id")
            if application != APPLICATION:
                raise InputError(f"{path} is no store of a collector.")
            yield opened
    except sqlite3.Error as error:
        raise InputError(f"{path} is no store of a collector ({error}).") from error


def _check(copy: Path, store: Path) -> None:
    """Raise InputError unless all pages of a copy are whole, and its tables those of a store."""
    with closing(sqlite3.connect(copy)) as opened:
        problems = [str(row[0]) for row in opened.execute("PRAGMA integrity_check(1)")]
        if problems != ["ok"]:
            raise InputError(f"{store} is damaged: {problems[0][:200]}; no copy is made of it.")
        tables = Tables(opened, str(store))
        ((version,),) = tables.rows("PRAGMA user_version", cells=(ANY,))
        if not 0 <= version < len(STEPS):  # what is older gets its tables when it is opened
            migrate(tables)
            tables.demand({table: tuple(cells) for table, cells in CELLS.items()})
