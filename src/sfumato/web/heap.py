"""Memory of a server that goes back to the system as soon as it is free."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from typing import Final

__all__ = ["return_large_blocks"]

LARGE: Final = 1 << 20
"""The number of bytes from which on a block of memory is mapped on its own."""
SLACK: Final = 16 << 20
"""The number of free bytes at the end of the heap that are kept for the next allocation."""
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3


def return_large_blocks() -> None:
    """Have each block of a megabyte or more go back to the system when it is freed.

    The C library of GNU raises the size from which it does so to that of the largest block that
    was ever freed, and keeps smaller ones between others that are still in use. A server that has
    answered a large question once would stay as large as it was then. Other libraries are left as
    they are.
    """
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # another C library
            change = ctypes.CDLL(None).mallopt
            change(_MMAP_THRESHOLD, LARGE)
            change(_TRIM_THRESHOLD, SLACK)
