"""Single uploads on kept and on new connections, for the benchmark of the collector."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from sfumato.wire.reports import BATCH_TYPE, Batch

__all__ = ["CLIENTS", "alone", "send_all"]

CLIENTS: Final = 64
"""The number of clients that send at the same time, each one report after the other."""


def alone(bodies: Sequence[bytes], size: int) -> list[bytes]:
    """Return a batch for each report of some batches."""
    single = []
    for body in bodies:
        _, key_id, reports = Batch.records(body, size)
        head = body[:36] + key_id.to_bytes(4, "little") + (1).to_bytes(4, "little")
        single += [head + report for report in reports]
    return single


@dataclass
class _Client:
    """One connection, or one after the other, over which requests are sent in turn."""

    address: tuple[str, int]
    requests: list[bytes]
    sock: Any = None
    received: bytes = b""
    accepted: int = 0

    def begin(self) -> None:
        """Send the next request."""
        if self.sock is None:
            self.sock = socket.create_connection(self.address)
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.sock.sendall(self.requests.pop())

    def read(self) -> bool:
        """Read what is there; return whether the response is complete."""
        part = self.sock.recv(65_536)
        if not part:
            raise RuntimeError("The collector has closed a connection without a response.")
        self.received += part
        if not self.received.endswith(b"}"):
            return False
        self.accepted += b'"accepted":1' in self.received
        return True

    def leave(self) -> None:
        """Close the connection."""
        self.sock.close()
        self.sock = None


def send_all(url: str, path: str, bodies: Sequence[bytes], *, kept: bool) -> int:
    """Send each body as an upload of its own, from 64 clients; return how many were accepted."""
    parts = urlsplit(url)
    address = (parts.hostname or "", parts.port or 80)
    close = "" if kept else "Connection: close\r\n"
    head = f"POST {path} HTTP/1.1\r\nHost: here\r\nContent-Type: {BATCH_TYPE}\r\n{close}"
    requests = [f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body for body in bodies]
    clients = [_Client(address, requests[k::CLIENTS]) for k in range(CLIENTS)]
    with selectors.DefaultSelector() as selector:
        for client in clients:
            client.begin()
            selector.register(client.sock, selectors.EVENT_READ, client)
        while selector.get_map():
            for key, _ in selector.select():
                client = key.data
                if not client.read():
                    continue
                if kept and client.requests:
                    client.begin()
                    continue
                selector.unregister(client.sock)
                client.leave()
                if client.requests:
                    client.begin()
                    selector.register(client.sock, selectors.EVENT_READ, client)
    return sum(client.accepted for client in clients)
