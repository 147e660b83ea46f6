"""One HTTP exchange that ends in time, whatever the other side does.

The timeout of a socket applies to each operation, so a server that sends a byte now and then could
hold a device for as long as it likes. Here the whole exchange has one time limit, and the response
a length limit; redirects are not followed, and nothing is decompressed.
"""

from __future__ import annotations

import io
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any, Final
from urllib.parse import SplitResult

__all__ = ["HTTPException", "exchange"]

HEADS: Final = 1 << 16
"""The number of bytes that a response may have in addition to its body."""
BLOCK: Final = 1 << 16

Address = tuple[Any, Any, Any, Any, Any]


def exchange(
    url: SplitResult, body: bytes | None, headers: Mapping[str, str], timeout: float, largest: int
) -> tuple[int, bytes]:
    """Return the status and the body of a response; raise TimeoutError if it takes too long.

    Parameters
    ----------
    url
        The address: http or https, and a host.
    body
        The body of a POST request; None for a GET request.
    headers
        Further headers of the request.
    timeout
        The time limit in seconds.
    largest
        The largest number of bytes of the body; one more is read if it is longer.

    """
    end = time.monotonic() + timeout
    secure = url.scheme == "https"
    host, port = url.hostname or "", url.port or (443 if secure else 80)
    connection = HTTPConnection(host, port)
    with _connected(host, port, end) as plain:
        sock = _sealed(plain, host, end) if secure else plain
        with sock:
            timed: Any = _Timed(sock, end, 2 * largest + HEADS)
            connection.sock = timed
            path = (url.path or "/") + (f"?{url.query}" if url.query else "")
            every = {"Host": url.netloc.rpartition("@")[2], "Connection": "close", **headers}
            connection.request("GET" if body is None else "POST", path, body, every)
            answer = connection.getresponse()
            return answer.status, answer.read(largest + 1)


def _left(end: float) -> float:
    left = end - time.monotonic()
    if left <= 0:
        raise TimeoutError("it took too long")
    return left


def _connected(host: str, port: int, end: float) -> socket.socket:
    """Return a connection to the first reachable address of a host."""
    failure: OSError = OSError("the host has no address")
    for family, kind, protocol, _, address in _addresses(host, port, end):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(_left(end))
            sock.connect(address)
        except OSError as error:
            sock.close()
            failure = error
        else:
            return sock
    raise failure


def _addresses(host: str, port: int, end: float) -> list[Address]:
    """Return the addresses of a host; a lookup that takes too long is abandoned."""
    results: list[Any] = []

    def resolve() -> None:
        try:
            results.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, ValueError) as error:
            results.append(error)

    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        pass  # the host is a name
    thread = threading.Thread(target=resolve, daemon=True)
    thread.start()
    thread.join(_left(end))
    if not results:
        raise TimeoutError("looking the host up took too long")
    if isinstance(results[0], Exception):
        raise results[0]
    addresses: list[Address] = results[0]
    return addresses


def _sealed(plain: socket.socket, host: str, end: float) -> ssl.SSLSocket:
    plain.settimeout(_left(end))
    return ssl.create_default_context().wrap_socket(plain, server_hostname=host)


class _Timed:
    """The part of a socket that a connection needs, with one time limit for all operations."""

    def __init__(self, sock: socket.socket, end: float, most: int) -> None:
        self._sock = sock
        self._end = end
        self._most = most

    def sendall(self, data: Any) -> None:
        """Send all of the data, block by block."""
        view = memoryview(data)
        while view:
            self._sock.settimeout(_left(self._end))
            view = view[self._sock.send(view[:BLOCK]) :]

    def makefile(self, mode: str) -> io.BufferedReader:
        """Return a file to read the response from."""
        del mode
        return io.BufferedReader(_Incoming(self._sock, self._end, self._most))

    def close(self) -> None:
        """Leave the socket open, because a response may still be read; its opener closes it."""


class _Incoming(io.RawIOBase):
    """The incoming bytes of a socket, limited in time and length."""

    def __init__(self, sock: socket.socket, end: float, most: int) -> None:
        self._sock = sock
        self._end = end
        self._room = most

    def readable(self) -> bool:
        """Return that the stream can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the bytes that have arrived."""
        self._sock.settimeout(_left(self._end))
        count = self._sock.recv_into(buffer)
        self._room -= count
        if self._room < 0:
            raise OSError("the answer is too long")
        return count
