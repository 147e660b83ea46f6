"""Ports for servers that are told where to listen, and do so again after they were killed."""

from __future__ import annotations

import atexit
import socket
from itertools import count
from typing import Final

__all__ = ["own_port"]

FIRST: Final = 15_000
"""Above what servers use, and far below what systems give away by themselves."""
_HELD: Final[list[socket.socket]] = []


@atexit.register
def _let_go() -> None:
    while _HELD:
        _HELD.pop().close()


def own_port() -> int:
    """Return a free port that nobody else gets before this process ends.

    A port that the system chooses is for whoever asks next once it is closed. So this is another
    one, and is held by a socket of another protocol, which leaves it free for servers of this one.
    """
    for port in count(FIRST):
        holder = socket.socket(type=socket.SOCK_DGRAM)
        try:
            holder.bind(("127.0.0.1", port))
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            holder.close()
        else:
            _HELD.append(holder)
            return port
    raise AssertionError("no port is free")
