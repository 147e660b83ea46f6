"""What keeps processes from going on for a while: they stand still, or their files cannot grow."""

from __future__ import annotations

import os
import resource
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

__all__ = ["limited", "stopped"]


@contextmanager
def stopped(pids: Sequence[int]) -> Iterator[None]:
    """Let processes stand still."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


@contextmanager
def limited(processes: Callable[[], Sequence[int]]) -> Iterator[None]:
    """Let no file that processes write to grow beyond two pages."""
    for pid in processes():
        _limit(pid, 8192)
    try:
        yield
    finally:
        for pid in processes():
            _limit(pid, resource.RLIM_INFINITY)


def _limit(pid: int, size: int) -> None:
    with suppress(ProcessLookupError):
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))
