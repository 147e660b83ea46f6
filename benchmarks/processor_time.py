"""The processor time and the memory of other processes, as ``/proc`` tells them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["children", "processor_seconds", "resident_bytes"]

TICK: Final = 1 / os.sysconf("SC_CLK_TCK")


def processor_seconds(process: int, *, alone: bool = False) -> float:
    """Return the seconds of processor time of a process and, unless alone, of its children."""
    total = 0.0
    for number, fields in _processes():
        mine = number == process
        if mine or (int(fields[1]) == process and not alone):
            times = fields[11:15] if mine and not alone else fields[11:13]
            total += sum(map(int, times)) * TICK
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
