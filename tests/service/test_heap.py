"""Memory that a server has freed goes back to the system, also between what is still in use."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import sys
from pathlib import Path
from sfumato.web.heap import return_large_blocks

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

if sys.argv[1] == "returned":
    return_large_blocks()
del (large := [bytearray(b"x" * (30 << 20))])[:]  # from now on such blocks are kept, by default
before, small = resident(), []
for _ in range(40):
    large.append(bytearray(b"x" * (2 << 20)))
    small.append(bytearray(b"x" * 4000))
large.clear()
print((resident() - before) >> 20)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another library allocates")
def test_large_blocks_between_small_ones_go_back_to_the_system() -> None:
    left = {
        how: int(subprocess.check_output([sys.executable, "-c", SCRIPT, how]))  # noqa: S603
        for how in ("kept", "returned")
    }
    assert left["returned"] < 8
    assert left["kept"] > 16, "the allocator does so by itself, and this is of no use"
