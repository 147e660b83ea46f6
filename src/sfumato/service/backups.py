"""Copies of a store that are made while its collector runs, and putting one in its place.

A copy is one moment of the store, compact and checked: it has no log of changes and no pages of
what was deleted. After it was put in place, exactly those reports are missing that were
acknowledged since that moment; which periods they can be of follows from the clock.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfumato.claims import Claim
from sfumato.errors import InputError
from sfumato.files.writing import complete_or_absent, refuse_target
from sfumato.service.engine_task import resumed
from sfumato.service.running_task import RunningTask
from sfumato.store import SQLiteStore
from sfumato.store.schema import APPLICATION

__all__ = ["ShortTask", "back_up", "restore"]


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
    """Copy a store to a file, also while a collector uses it; return the copy's size in bytes."""
    with _reading(store) as source, complete_or_absent(target, force=force) as file:
        copy = Path(file.name)
        copy.chmod(0o600)
        try:
            source.execute("VACUUM INTO ?", [str(copy)])
        except sqlite3.Error as error:
            raise InputError(f"{store} cannot be copied ({error}).") from error
        _check(copy, store)
    return target.stat().st_size


def restore(backup: Path, store: Path, now: float, *, force: bool = False) -> list[ShortTask]:
    """Put a copy of a store in its place; return the tasks that may lack reports since.

    The collector of the store must have stopped. Nothing is changed if the copy is damaged.

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
    with _reading(backup):
        _check(backup, backup)
    refuse_target(store, force=force)
    is_new = not store.exists()
    try:
        claim = Claim(store)
    except OSError as error:
        raise InputError(f"{store} cannot be replaced ({error}).") from error
    try:
        with complete_or_absent(store, force=True) as file, backup.open("rb") as content:
            Path(file.name).chmod(0o600)
            shutil.copyfileobj(content, file)
            for name in ("-wal", "-shm"):  # what belongs to the store that was there
                store.with_name(store.name + name).unlink(missing_ok=True)
    except BaseException:
        if is_new:  # the claim has made an empty file
            store.unlink(missing_ok=True)
        raise
    finally:
        claim.release()
    with closing(SQLiteStore(store)) as opened:
        tasks = [resumed(stored, opened) for stored in opened.tasks()]
        shorts = [short for task in tasks if (short := _short(task, now)) is not None]
        for short in shorts:
            opened.note_gap(bytes.fromhex(short.task_id), short.first, short.last)
        return shorts


def _short(running: RunningTask, now: float) -> ShortTask | None:
    first, last = running.sealed + 1, min(running.period_at(now), running.published.periods)
    if last < first:
        return None
    return ShortTask(running.name, str(running.published.spec["title"]), first, last)


@contextmanager
def _reading(path: Path) -> Iterator[Any]:
    """Give a connection to a store, without the right to the file that a collector has."""
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
    """Raise InputError unless all pages of a copy are whole."""
    with closing(sqlite3.connect(copy)) as opened:
        problems = [str(row[0]) for row in opened.execute("PRAGMA integrity_check(1)")]
    if problems != ["ok"]:
        raise InputError(f"{store} is damaged: {problems[0][:200]}; no copy is made of it.")
