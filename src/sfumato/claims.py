"""Files that one owner has at a time, whatever else a process opens and closes.

The locks that SQLite takes belong to a process and a file: as soon as the process closes any other
descriptor of that file, they are gone, and another process gets in. So a file is claimed before it
is touched. A claim is a lock (``flock``) on a file of its own beside the one that is claimed, which
belongs to whoever opened it and stays until that one lets go, or ends in whatever way. A system
without ``flock`` claims nothing: it says so, and whoever needs a file of its own is refused.
"""

from __future__ import annotations

import os
import sys
import threading
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Final

from sfumato.errors import InputError

try:
    import fcntl
except ImportError:  # no Unix
    fcntl = None  # type: ignore[assignment]

__all__ = ["Claim"]

_PRIVATE: Final = 0o600
_PUBLIC: Final = 0o644
_GUARD: Final = threading.RLock()
"""Held while claims change; also by a claim that ends while the same thread makes another one."""
_CLAIMED: Final[dict[tuple[int, int], int]] = {}
"""The descriptor that holds the lock, by the device and inode of what this process has claimed."""


class Claim:
    """A file that nobody else has; it is made if it is not there.

    Parameters
    ----------
    path
        The file.
    private
        Whether only its owner may read it.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "app.journal"
    >>> claim = Claim(path)
    >>> Claim(path)
    Traceback (most recent call last):
    ...
    sfumato.errors.InputError: .../app.journal is in use already, by this process or another; ...
    >>> claim.release()
    >>> Claim(path).release()

    """

    def __init__(self, path: str | Path, *, private: bool = True) -> None:
        if fcntl is None:
            raise InputError(
                f"{path} cannot be kept from a second owner, as {sys.platform} has no flock; "
                "Linux, macOS or another Unix is expected, or a journal in memory."
            )
        real = Path(path).resolve()
        lock = real.with_name(f"{real.name}.lock")
        with _GUARD:
            if _identity(real) in _CLAIMED:  # perhaps by another name
                raise _taken(path)
            held = _locked(lock)
            if held is None:
                raise _taken(path)
            try:
                identity = _touched(real, private=private)
            except BaseException:
                _unlock(held, lock)
                raise
            _CLAIMED[identity] = held
        self._end = weakref.finalize(self, _release, identity, held, lock, os.getpid())

    def release(self) -> None:
        """Let others have the file; close whatever was opened of it before."""
        self._end()


def _taken(path: str | Path) -> InputError:
    return InputError(
        f"{path} is in use already, by this process or another; one at a time can have it."
    )


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _locked(lock: Path) -> int | None:
    """Return a descriptor that holds the lock, or None if somebody else has it."""
    while True:
        held = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(held)
            return None
        except BaseException:
            os.close(held)
            raise
        about = os.fstat(held)
        if _identity(lock) == (about.st_dev, about.st_ino):
            return held
        os.close(held)  # whoever had it has removed it in between


def _touched(path: Path, *, private: bool) -> tuple[int, int]:
    """Make the file if it is not there; return which one it is."""
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _PRIVATE if private else _PUBLIC)
    try:
        about = os.fstat(opened)
        if private and about.st_mode & 0o077:
            os.fchmod(opened, _PRIVATE)
    finally:
        os.close(opened)
    return about.st_dev, about.st_ino


def _unlock(held: int, lock: Path) -> None:
    about = os.fstat(held)
    if _identity(lock) == (about.st_dev, about.st_ino):  # and not one that was made meanwhile
        with suppress(OSError):
            lock.unlink()
    os.close(held)


def _release(identity: tuple[int, int], held: int, lock: Path, process: int) -> None:
    if os.getpid() != process:  # a child that was forked has no claim of its own
        return
    with _GUARD:
        if _CLAIMED.pop(identity, None) is not None:
            _unlock(held, lock)


def _forget() -> None:
    """Let go, in a child that was forked, of what its parent has claimed and keeps."""
    for held in _CLAIMED.values():
        os.close(held)
    _CLAIMED.clear()
    _GUARD.release()


if fcntl is not None:
    # No other thread may hold the guard at a fork: the child would wait for it for ever.
    os.register_at_fork(
        before=_GUARD.acquire, after_in_parent=_GUARD.release, after_in_child=_forget
    )
