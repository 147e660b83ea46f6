"""Collectors and devices in processes of their own, whose clock and disk a test can disturb.

The first argument says what runs here, the second is a file that a test shares with it. None of it
is a setting of the product: all of it is put in place from here.
"""

# ruff: noqa: PLC0415 -- the clock is shifted before anything that reads it is imported

from __future__ import annotations

import mmap
import os
import runpy
import shlex
import shutil
import signal
import sqlite3
import struct
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final

__all__ = ["CRASHES", "WRONG", "Controls", "Disk"]


class Disk:
    """What a disk does with what is written to it."""

    WELL, READ_ONLY, FULL = range(3)


class Controls:
    """Memory that a test shares with a process, to change the clock and the disk that it sees.

    Parameters
    ----------
    path
        The file behind it, made if there is none.

    """

    _form: ClassVar[struct.Struct] = struct.Struct("<ddqq")

    def __init__(self, path: str | Path) -> None:
        if not Path(path).exists():
            Path(path).write_bytes(bytes(self._form.size))
        with Path(path).open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), self._form.size)

    def _kept(self, at: int) -> Any:
        return self._form.unpack_from(self._memory)[at]

    def _keep(self, at: int, value: float) -> None:
        values = [*self._form.unpack_from(self._memory)]
        values[at] = value
        self._form.pack_into(self._memory, 0, *values)

    ahead = property(lambda self: self._kept(0), lambda self, to: self._keep(0, to))
    """By how many seconds the wall clock is ahead."""
    slow = property(lambda self: self._kept(1), lambda self, to: self._keep(1, to))
    """How many seconds the disk takes for a commit."""
    disk = property(lambda self: self._kept(2), lambda self, to: self._keep(2, to))
    """What the disk does, one of the numbers in ``Disk``."""
    crash = property(lambda self: self._kept(3), lambda self, to: self._keep(3, to))
    """Where the process ends, an index of ``CRASHES`` counted from 1; 0 for nowhere."""

    def shift_clock(self) -> None:
        """Let the wall clock of this process be as far ahead as this says."""
        wall = time.time
        time.time = lambda: wall() + self.ahead


# ---- collectors ----------------------------------------------------------------------------------

CRASHES: Final = (
    ("_append", "in the middle of a commit"),
    ("commit", "after a commit, before any receipt"),
    ("end_round", "after a round was sealed"),
    ("settle", "after a round was settled"),
    ("_join_writers", "in the middle of packing"),
    ("pack", "after packing"),
    ("close_round", "after a round was closed"),
    ("close_period", "after a period was closed"),
)
"""The steps of a store at whose end a collector can be killed, in words."""


def collector(controls: Controls, wrong: str, words: list[str]) -> None:
    """Run a collector; with the name of a wrong one, that one."""
    _put_in_place(controls, wrong)
    from sfumato.cli import main

    # Its workers are started by this in place of Python.
    script = Path(f"{sys.argv[2]}-worker")
    inside = map(shlex.quote, (sys.executable, __file__, "worker", *sys.argv[2:4]))
    script.write_text(f'#!/bin/sh\nexec {" ".join(inside)} "$@"\n')
    script.chmod(0o700)
    sys.executable, sys.argv = str(script), ["sfumato", *words]
    main()


def worker(controls: Controls, wrong: str, words: list[str]) -> None:
    """Run a worker of a collector, after the words ``-P -m`` and its module."""
    _put_in_place(controls, wrong)
    sys.argv = words[2:]
    runpy.run_module(words[2], run_name="__main__")


def _put_in_place(controls: Controls, wrong: str) -> None:
    controls.shift_clock()
    _replace(sqlite3, "connect", partial(sqlite3.connect, factory=_disturbed(controls)))
    from sfumato.store.settled_tables import SettledTables

    if wrong:
        WRONG[wrong]()
    for number, (step, _) in enumerate(CRASHES, 1):
        _replace(SettledTables, step, _deadly(getattr(SettledTables, step), controls, number))


def _replace(owner: Any, name: str, by: Any) -> None:
    setattr(owner, name, by)


def _disturbed(controls: Controls) -> type[sqlite3.Connection]:
    class Disturbed(sqlite3.Connection):
        """A connection whose disk is slow, full or read-only at times."""

        def execute(self, statement: str, given: Any = ()) -> sqlite3.Cursor:
            if statement == "COMMIT":
                time.sleep(controls.slow)
                if controls.disk == Disk.FULL:
                    raise sqlite3.OperationalError("database or disk is full")
            if statement.startswith("INSERT") and controls.disk == Disk.READ_ONLY:
                raise sqlite3.OperationalError("attempt to write a readonly database")
            return super().execute(statement, given)

    return Disturbed


def _deadly(step: Callable[..., Any], controls: Controls, number: int) -> Callable[..., Any]:
    def stepped(*given: Any, **more: Any) -> Any:
        result = step(*given, **more)
        if controls.crash == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return stepped


def _acknowledges_before_commit() -> None:
    """A receipt is given a moment before anything is written."""
    from sfumato.store.settled_tables import SettledTables

    commit = SettledTables.commit

    def later(store: Any, filled: Any) -> list[bool]:
        threading.Timer(0.5, commit, (store, filled)).start()
        return [True] * len(filled)

    _replace(SettledTables, "commit", later)


def _forgets_ids() -> None:
    """A process forgets ids when it ends, and nobody looks for copies when a period closes."""
    from sfumato.store.settled_tables import SettledTables

    _replace(SettledTables, "settle", lambda *_: 0)


def _counts_after_close() -> None:
    """Whether a period is open is asked at the first door only, and reports wait behind it."""
    from sfumato.service.collector import Collector
    from sfumato.service.running_task import RunningTask
    from sfumato.store.settled_tables import SettledTables

    screen = Collector.screen

    def slowly(*given: Any, **more: Any) -> Any:
        screened = screen(*given, **more)
        time.sleep(0.5)
        return screened

    _replace(Collector, "screen", slowly)
    _replace(RunningTask, "is_late", lambda _, periods, __: periods < 0)
    _replace(SettledTables, "_is_open", lambda *_: True)


def _changes_releases() -> None:
    """What a period has released is computed anew by each process, with what it knows then."""
    import numpy as np

    from sfumato.store.task_tables import TaskTables

    releases = TaskTables.releases

    def changed(store: Any, task_id: bytes, after: int = 0) -> Any:
        read = releases(store, task_id, after)
        for release in read:
            np.add(release.values, 1e-9, out=release.values)
        return read

    _replace(TaskTables, "releases", changed)


# ---- devices -------------------------------------------------------------------------------------


def devices(controls: Controls, wrong: str, words: list[str]) -> None:
    """Let the devices in a folder live until they are killed; with ``rest``, only send."""
    controls.shift_clock()
    if wrong:
        WRONG[wrong]()
    from sfumato.device import Device, Http, Limits
    from sfumato.wire.published import Published

    folder, names, epsilon, how = Path(words[0]), words[1].split(","), float(words[2]), words[3]
    tasks = [Published.parse(path.read_bytes()) for path in sorted(folder.glob("*.task"))]
    lived: list[Device] = []
    for name in names:
        path = folder / f"{name}.journal"
        # One that rests has no time, so that nothing new becomes due.
        clock = time.time if how == "live" else lambda: 0.0
        device = Device.open(path, Limits(epsilon, windows=True), clock=clock)
        device.transport = Witness(path.with_suffix(".left"), device.journal, Http(1.0))
        for task in tasks:
            device.join(task)
        lived.append(device)
    while True:
        waiting = 0
        for device in lived:
            if how == "live":
                for task in tasks:
                    device.observe(int(time.time() // 3) % 24, task.task_id.hex())
            waiting += device.flush(force=True, limit=2.0).waiting
        if how != "live" and not waiting:
            return
        time.sleep(0.1)


class Witness:
    """A transport that writes down what is about to leave a device: task, id, period, content.

    Parameters
    ----------
    path
        The file to which it is added.
    journal
        The device's journal, which knows what is in a seal.
    inner
        The transport that sends.

    """

    def __init__(self, path: Path, journal: Any, inner: Any) -> None:
        self._record = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._journal, self._inner = journal, inner

    def fetch(self, url: str) -> bytes:
        """Return what is at an address."""
        fetched: bytes = self._inner.fetch(url)
        return fetched

    def send(self, url: str, batch: bytes) -> Any:
        """Write a batch down, then hand it over."""
        task_id = batch[4:36]
        for report in self._journal.waiting(task_id):
            if report.body in batch and report.content is not None:
                head = struct.pack("<32s16sI", task_id, report.body[:16], report.period)
                entry = head + report.content
                os.write(self._record, len(entry).to_bytes(4, "little") + entry)
        return self._inner.send(url, batch)


def _draws_anew() -> None:
    """A device begins each time where it was when it joined, and draws coins that it never had."""
    from sfumato.device.journal import Journal
    from sfumato.device.keys import Chain
    from sfumato.device.sdk import Device
    from sfumato.randomness import secure

    opened, join = Journal.__init__, Device.join

    def restored(journal: Any, path: Path) -> None:
        backup = path.with_suffix(".backup")
        if backup.exists():
            for end in ("", "-wal", "-shm"):
                path.with_name(path.name + end).unlink(missing_ok=True)
            shutil.copy(backup, path)
        opened(journal, path)

    def joined(device: Any, task: Any) -> str:
        name = join(device, task)
        path = Path(device.journal.path)
        device.journal.settle_down()
        if len(device.journal.task_ids()) == 2 and not path.with_suffix(".backup").exists():
            shutil.copy(path, path.with_suffix(".backup"))
        return name

    _replace(Journal, "__init__", restored)
    _replace(Device, "join", joined)
    _replace(Chain, "coins", lambda *_: secure())


WRONG: Final[dict[str, Callable[[], None]]] = {
    "acknowledges before commit": _acknowledges_before_commit,
    "forgets ids": _forgets_ids,
    "counts after close": _counts_after_close,
    "changes releases": _changes_releases,
    "draws anew": _draws_anew,
}
"""What a wrong collector, or a wrong device, does; the checker must notice each."""

if __name__ == "__main__":
    role, shared, deviation, *rest = sys.argv[1:]
    roles = {"collector": collector, "worker": worker, "devices": devices}
    roles[role](Controls(shared), deviation, rest)
