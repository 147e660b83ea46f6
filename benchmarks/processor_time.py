"""The processor time and the memory of other processes, as ``/proc`` tells them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

__all__ = ["processor_seconds", "resident_bytes"]

TICK: Final = 1 / os.sysconf("SC_CLK_TCK")


def processor_seconds(process: int, *, alone: bool = False) -> float:
    """Return the seconds of processor time of a process and, unless alone, of its children."""
    total = 0.0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has ended
        mine = int(path.parent.name) == process
        if mine or (int(fields[1]) == process and not alone):
            times = fields[11:15] if mine and not alone else fields[11:13]
            total += sum(map(int, times)) * TICK
    return total


def resident_bytes(process: int) -> int:
    """Return the memory that a process has now."""
    status = Path(f"/proc/{process}/status").read_text()
    return 1024 * int(re.search(r"VmRSS:\s+(\d+)", status)[1])  # type: ignore[index]
