"""Whether what is acknowledged is kept: the file, the disk, the memory, the clock and the writer.

Reports are acknowledged only while nothing is wrong; what is wrong is a sentence for the operator.
"""

from __future__ import annotations

import os
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from sfumato.errors import SfumatoError

__all__ = ["Health", "Lost", "free_memory"]

LEAST_DISK: Final = 32 << 20
LEAST_MEMORY: Final = 64 << 20
"""The numbers of bytes of disk and of memory that have to be free."""

PROBE: Final = 5.0
"""The number of seconds between two attempts to write to a store elsewhere."""

STUCK: Final = 20.0
"""The number of seconds after which a clock or a writer that does not go on is stuck."""

_MAGIC: Final = b"SQLite format 3\0"
_GROUPS: Final = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
)


class Lost(SfumatoError):
    """The file that reports were written to is not there any more."""


class Health:
    """Looks after everything that an acknowledged report depends on.

    Parameters
    ----------
    path
        The file of the store; None if it is none of this machine.
    busy_since
        A function that returns since when the writer does the same work; None if it is free.
    clock
        A clock that only goes forward.
    probe
        A function that tries to write to a store elsewhere, and returns what went wrong; None if
        nothing did.

    """

    def __init__(
        self,
        path: Path | None = None,
        busy_since: Callable[[], float | None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        probe: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._path = path
        self._busy_since = busy_since
        self._clock = clock
        self._probe = probe
        # It stays open: if it were closed, SQLite would lose its locks on the file.
        self._file = None if path is None else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._journal: int | None = None
        self._short = 0
        self._lock = threading.Lock()
        self._ticked = clock()
        self._failure = ""
        self._next_probe = clock() + PROBE
        self.troubles: list[str] = []
        """What is wrong, as it was seen at the last look."""

    def tick(self) -> None:
        """Note that the clock that closes periods goes on."""
        self._ticked = self._clock()

    def failed(self, what: str, error: Exception) -> None:
        """Note that something has failed; this is trouble until something can be written again."""
        self._failure = f"{what} failed ({type(error).__name__})"

    def committed(self) -> None:
        """Note that a commit succeeded; raise Lost if it is not on the file that is there."""
        self._failure = ""
        for trouble in self._about_identity():
            raise Lost(trouble)

    def look(self) -> list[str]:
        """Look at everything; return a sentence for each trouble."""
        with self._lock:
            try:
                self.troubles = list(self._all())
            except OSError as error:  # as of a disk that fails
                self.troubles = [f"the database file cannot be looked at ({error.strerror})"]
            return self.troubles

    def _all(self) -> Iterator[str]:
        yield from self._about_identity()
        yield from self._about_content()
        yield from self._about_disk()
        free = free_memory()
        if free is not None and free < LEAST_MEMORY:
            yield f"memory is exhausted: {free >> 20} MiB are free"
        now = self._clock()
        if now - self._ticked > STUCK:
            yield f"the clock has not closed periods for {now - self._ticked:.0f} s"
        since = self._busy_since()
        if since is not None and now - since > STUCK:
            yield f"the writer has been doing the same work for {now - since:.0f} s"

    def _about_identity(self) -> Iterator[str]:
        """Yield what is wrong if the files that SQLite writes to are not those with their names."""
        if self._path is None or self._file is None:
            return
        own = os.fstat(self._file)
        try:
            there = self._path.stat()
        except OSError:
            yield "the database file was deleted; what is written now would be lost"
            return
        if (there.st_dev, there.st_ino) != (own.st_dev, own.st_ino):
            yield "the database file was replaced; what is written now would be lost"
        try:
            journal: int | None = self._path.with_name(f"{self._path.name}-wal").stat().st_ino
        except OSError:
            journal = None
        if self._journal is None:
            self._journal = journal
        elif journal != self._journal:
            yield "the write-ahead log was deleted or replaced; what is written now would be lost"

    def _about_content(self) -> Iterator[str]:
        """Yield what is wrong with the beginning and the length of the database file."""
        if self._file is None:
            return
        head = os.pread(self._file, 100, 0)
        if len(head) < 100 or not head.startswith(_MAGIC):
            yield "the database file is corrupt: it does not begin as one"
            return
        (page,), (pages,) = struct.unpack(">H", head[16:18]), struct.unpack(">I", head[28:32])
        is_short = os.fstat(self._file).st_size < pages * (65_536 if page == 1 else page)
        # While SQLite moves pages into the file, it may be shorter for a moment.
        self._short = self._short + 1 if is_short else 0
        if self._short > 2:
            yield "the database file is corrupt: it has been cut off"

    def _about_disk(self) -> Iterator[str]:
        """Yield what is wrong with the disk; after a commit that failed, try to write."""
        if self._path is None:
            if not self._failure and self._clock() >= self._next_probe:
                self._next_probe = self._clock() + PROBE
                if self._probe() is not None:  # it is tried again before it counts as trouble
                    self._failure = "the last attempt to write failed"
                return
            yield from self._about_failure(self._probe)
            return
        folder = self._path.resolve().parent
        try:
            disk = os.statvfs(folder)
        except OSError as error:
            yield f"the folder of the database is gone ({error.strerror})"
            return
        free = disk.f_bavail * disk.f_frsize
        if disk.f_flag & os.ST_RDONLY:
            yield "the disk is read-only"
        elif free < LEAST_DISK:
            yield f"the disk is full: {free >> 20} MiB are free"
        else:
            yield from self._about_failure(lambda: _written(folder))

    def _about_failure(self, attempt: Callable[[], str | None]) -> Iterator[str]:
        """Yield what is wrong if the last commit failed and nothing can be written now either.

        No upload is let in meanwhile, so that no commit could show that all is well again.
        """
        if not self._failure:
            return
        reason = attempt()
        if reason is None:
            self._failure = ""
        else:
            yield f"{self._failure}, and nothing can be written ({reason})"


def _written(folder: Path) -> str | None:
    """Write and remove a file; return what went wrong, None if nothing did."""
    path = folder / f".sfumato-{os.getpid()}-probe"
    try:
        with path.open("wb") as file:
            file.write(bytes(1 << 16))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        return error.strerror
    finally:
        with suppress(OSError):
            path.unlink()
    return None


def free_memory() -> int | None:
    """Return how many bytes of memory are free for this process; None if nobody knows."""
    if sys.platform != "linux":
        return None
    free = []
    with suppress(OSError, ValueError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        free += [int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")]
    for most, current in _GROUPS:
        with suppress(OSError, ValueError):  # "max" is no number, and no limit
            limit = int(Path(most).read_text())
            free.append(limit - int(Path(current).read_text()) + _reclaimable(Path(most).parent))
    return min(free, default=None)


def _reclaimable(group: Path) -> int:
    """Return how many bytes of a control group are copies of files, which make room if needed."""
    for line in (group / "memory.stat").read_text().splitlines():
        name, _, number = line.partition(" ")
        if name in ("inactive_file", "total_inactive_file"):
            return int(number)
    return 0
