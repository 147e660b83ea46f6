"""Uploads that come at random moments, so many a second, as those of many devices do.

The sender does not wait for responses before it sends the next upload (an open loop), so that what
is measured is the cost at a rate, and not at the rate that a sender and a server agree on.
"""

from __future__ import annotations

import re
import selectors
import socket
import time
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np

from sfumato.wire.reports import BATCH_TYPE

__all__ = ["send_at_rate"]

_ACCEPTED: Final = re.compile(rb'"accepted": ?(\d+)')


class _Line:
    """One connection, with the response that is on its way."""

    def __init__(self, address: tuple[str, int]) -> None:
        self.sock: Any = socket.create_connection(address)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""

    def is_done(self) -> bool:
        """Read what is there; return whether the response is complete."""
        part = self.sock.recv(65_536)
        if not part:
            raise RuntimeError("A connection was closed without a response.")
        self.received += part
        return self.received.endswith(b"}")

    def accepted(self) -> int:
        """Return the number of accepted reports in the response, and forget it."""
        found = _ACCEPTED.search(self.received)
        if found is None:
            raise RuntimeError(f"An upload was refused: {self.received[-300:]!r}.")
        self.received = b""
        return int(found[1])


class _Sender:
    """The connections to one server or several, which take turns."""

    def __init__(self, urls: Sequence[str], *, kept: bool) -> None:
        self.addresses = [(urlsplit(url).hostname or "", urlsplit(url).port or 80) for url in urls]
        self._kept = kept
        self._free: list[list[_Line]] = [[] for _ in urls]
        self._selector = selectors.DefaultSelector()
        self.waiting = self.accepted = 0

    def send(self, turn: int, request: bytes) -> None:
        """Send one request on a free connection, or on a new one."""
        index = turn % len(self.addresses)
        line = self._free[index].pop() if self._free[index] else _Line(self.addresses[index])
        line.sock.sendall(request)
        self._selector.register(line.sock, selectors.EVENT_READ, (index, line))
        self.waiting += 1

    def receive(self, seconds: float) -> None:
        """Take the responses that come within some seconds."""
        for key, _ in self._selector.select(seconds):
            index, line = key.data
            if not line.is_done():
                continue
            self._selector.unregister(line.sock)
            self.waiting -= 1
            self.accepted += line.accepted()
            if self._kept:
                self._free[index].append(line)
            else:
                line.sock.close()

    def close(self) -> None:
        """Close all connections."""
        for key in list(self._selector.get_map().values()):
            key.data[1].sock.close()
        for line in (line for lines in self._free for line in lines):
            line.sock.close()
        self._selector.close()


def send_at_rate(
    urls: Sequence[str], path: str, bodies: Sequence[bytes], rate: float, *, kept: bool
) -> tuple[int, float]:
    """Send each body as an upload of its own at random moments, so many a second on average.

    Returns how many reports were accepted, and how many seconds it took.

    Parameters
    ----------
    urls
        The servers, which take turns.
    path
        The path of the uploads.
    bodies
        The bodies.
    rate
        The number of uploads per second.
    kept
        Whether connections are kept, each for its next upload, or new for each upload.

    """
    close = "" if kept else "Connection: close\r\n"
    head = f"POST {path} HTTP/1.1\r\nHost: here\r\nContent-Type: {BATCH_TYPE}\r\n{close}"
    due = np.cumsum(np.random.default_rng(1).exponential(1 / rate, len(bodies)))
    sender = _Sender(urls, kept=kept)
    began = time.perf_counter()
    try:
        for turn, (moment, body) in enumerate(zip(due.tolist(), bodies, strict=True)):
            sender.receive(0)
            while (left := began + moment - time.perf_counter()) > 0:
                sender.receive(left)
            sender.send(turn, f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        while sender.waiting:
            sender.receive(1.0)
    finally:
        sender.close()
    return sender.accepted, time.perf_counter() - began
