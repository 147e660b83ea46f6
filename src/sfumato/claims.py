"""Claims on files, so that each has one owner at a time.

SQLite's locks belong to a process and a file: as soon as the process closes any other descriptor of
that file, they are lost, and another process can open it. So a file is claimed before it is used. A
claim is a lock (``flock``) on a separate file beside it, which its owner holds until it is released
or the process ends. Without ``flock`` no file can be claimed, and an error says so.
"""

from __future__ import annotations

import errno
import os
import stat
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from sfumato.errors import InputError

try:
    import fcntl
except ImportError:  # not a Unix system
    fcntl = None  # type: ignore[assignment]

__all__ = ["Claim"]

_PRIVATE: Final = 0o600
_PUBLIC: Final = 0o644
_GUARD: Final = threading.RLock()
"""A lock that is held while claims change; a thread may hold it more than once."""
_CLAIMED: Final[dict[tuple[int, int], int]] = {}
"""The descriptor that holds each lock, by the device and inode of the claimed file."""


class Claim:
    """A claim on a file, which is created if it does not exist.

    Parameters
    ----------
    path
        The file; a folder, a device or a pipe is refused and left as it is.
    private
        Whether only its owner may read it.
    check
        A function that raises an error if a file that is there is none of its owner's, before
        anything of it is changed; nobody else has the file meanwhile.

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

    def __init__(
        self,
        path: str | Path,
        *,
        private: bool = True,
        check: Callable[[str | Path], None] = lambda _: None,
    ) -> None:
        if fcntl is None:
            raise InputError(
                f"{path} cannot be kept from a second owner, as {sys.platform} has no flock; "
                "Linux, macOS or another Unix is expected, or a journal in memory."
            )
        real = _regular(path)
        lock = real.with_name(f"{real.name}.lock")
        with _GUARD:
            if _identity(real) in _CLAIMED:  # perhaps under another name
                raise _taken(path)
            held = _locked(lock)
            if held is None:
                raise _taken(path)
            try:
                check(path)
                identity = _touched(real, private=private)
            except BaseException:
                _unlock(held, lock)
                raise
            _CLAIMED[identity] = self._held = held
        self._end = weakref.finalize(self, _release, identity, held, lock, os.getpid())

    @property
    def descriptor(self) -> int:
        """The open file that holds the claim, also for a process that inherits it."""
        return self._held

    def release(self) -> None:
        """Release the file; everything that was opened of it must be closed before."""
        self._end()


def _taken(path: str | Path) -> InputError:
    return InputError(
        f"{path} is in use already, by this process or another; one at a time can have it."
    )


def _regular(path: str | Path) -> Path:
    """Return the path without links; raise InputError if there is something that is no file."""
    try:
        real = Path(path).resolve()
        mode = real.stat().st_mode
    except FileNotFoundError:
        return real
    except (OSError, RuntimeError) as error:  # a RuntimeError is what Python 3.11 makes of a loop
        if isinstance(error, OSError) and error.errno != errno.ELOOP:
            raise
        raise InputError(f"{path} is a link that leads to itself; a file is expected.") from None
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise InputError(f"{path} is {kind}, and is left as it is; a file is expected.")
    return real


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def _locked(lock: Path) -> int | None:
    """Return a descriptor that holds the lock; None if another owner has it."""
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
        os.close(held)  # its earlier owner has removed the file in between


def _touched(path: Path, *, private: bool) -> tuple[int, int]:
    """Create the file if it does not exist; return its device and inode."""
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
    # And not a file that was created in between.
    if _identity(lock) == (about.st_dev, about.st_ino):
        with suppress(OSError):
            lock.unlink()
    os.close(held)


def _release(identity: tuple[int, int], held: int, lock: Path, process: int) -> None:
    if os.getpid() != process:  # a forked child has no claim of its own
        return
    with _GUARD:
        if _CLAIMED.pop(identity, None) is not None:
            _unlock(held, lock)


def _forget() -> None:
    """Drop the parent's claims in a forked child; the parent keeps them."""
    for held in _CLAIMED.values():
        os.close(held)
    _CLAIMED.clear()
    _GUARD.release()


if fcntl is not None:
    # No other thread may hold the guard at a fork, or the child would wait for it for ever.
    os.register_at_fork(
        before=_GUARD.acquire, after_in_parent=_GUARD.release, after_in_child=_forget
    )
