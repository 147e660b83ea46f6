"""The processor time and the memory of other processes, as ``/proc`` tells them."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["children", "processor_seconds", "resident_bytes"]

TICK: Final = 1 / os.sysconf("SC_CLK_TCK")


def processor_seconds(process: int, *, alone: bool = False) -> float:
    """Return the seconds of processor time of a process and, unless alone, of all below it.

    What runs is read from its own clock, to the nanosecond: so that little work is never none.
    What has ended was added up by the kernel, to a hundredth of a second.
    """
    if alone:
        return time.clock_gettime(_clock(process))
    below, total = {process}, 0.0
    for number, fields in sorted(_processes()):
        if number in below or int(fields[1]) in below:
            below.add(number)
            with suppress(OSError):  # it has ended since
                total += time.clock_gettime(_clock(number))
            total += sum(map(int, fields[13:15])) * TICK
    return total


def children(process: int) -> list[int]:
    """Return the processes that a process has started."""
    return sorted(number for number, fields in _processes() if int(fields[1]) == process)


def resident_bytes(process: int) -> int:
    """Return the memory that a process has now."""
    status = Path(f"/proc/{process}/status").read_text()
    return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status)[1])  # type: ignore[index]


def _processes() -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each process, and what follows its name in ``/proc``."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        yield int(path.parent.name), fields


def _clock(process: int) -> int:
    """Return the number of the clock of a process, as Linux counts them."""
    return (~process << 3) | 2
