"""Attacks on a collector, each to be run from a process of its own.

An attack lasts for some seconds, comes from addresses of its own, and ignores what it is answered.
"""

from __future__ import annotations

import json
import secrets
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Final

import numpy as np

from sfumato.wire.reports import BATCH_TYPE, MOST_REPORTS

__all__ = ["ATTACKS", "connect"]

ADDRESSES: Final = tuple(f"127.0.1.{k}" for k in range(1, 5))


def connect(port: int, address: str) -> socket.socket:
    """Return a connection from an address of this machine."""
    return socket.create_connection(("127.0.0.1", port), timeout=30, source_address=(address, 0))


class Attack:
    """The aim of an attack, and the time until its end.

    Parameters
    ----------
    port
        The port of the collector.
    name
        The id of a task whose reports are sealed, in hexadecimal digits.
    good
        A batch with one good report of this task, to be sent again and again.
    plain
        The same of a task whose reports are not sealed.
    seconds
        The length of the attack.

    """

    def __init__(self, port: int, name: str, good: bytes, plain: bytes, seconds: float) -> None:
        self.port, self.name, self.good, self.plain = port, name, good, plain
        self.end = time.monotonic() + seconds

    def head(self, length: int) -> bytes:
        """Return the head of an upload."""
        return (
            f"POST /v1/tasks/{self.name}/reports HTTP/1.1\r\nHost: h\r\n"
            f"Content-Type: {BATCH_TYPE}\r\nContent-Length: {length}\r\n\r\n"
        ).encode()

    def batch(self, reports: bytes, count: int) -> bytes:
        """Return a batch of reports as bytes, with its head."""
        body = self.good[:40] + count.to_bytes(4, "little") + reports
        return self.head(len(body)) + body

    def going_on(self) -> bool:
        """Return whether there is time left."""
        return time.monotonic() < self.end

    def sleep(self) -> None:
        """Stay silent until the end."""
        time.sleep(max(0.0, self.end - time.monotonic()))


def announced(attack: Attack) -> None:
    """Eight connections announce 8 MiB each and stay silent."""
    socks = [connect(attack.port, ADDRESSES[0]) for _ in range(8)]
    for sock in socks:
        sock.sendall(attack.head(8 << 20) + attack.good[:10])
    attack.sleep()


def idle(attack: Attack) -> None:
    """1,024 connections say nothing; those that are closed are opened again."""
    socks: list[socket.socket] = []
    while attack.going_on():
        with suppress(OSError):
            while len(socks) < 1024:
                socks.append(connect(attack.port, ADDRESSES[0]))
        time.sleep(0.2)
        for sock in list(socks):
            sock.settimeout(0.0)
            with suppress(BlockingIOError):
                with suppress(ConnectionError):
                    if sock.recv(1):
                        continue
                sock.close()
                socks.remove(sock)


def garbage(attack: Attack) -> None:
    """Four addresses send batches of 65,536 reports whose seals are random bytes."""
    size = len(attack.good) - 44
    body = attack.good[44:64] + secrets.token_bytes(size - 20)
    _flood(attack, attack.batch(body * MOST_REPORTS, MOST_REPORTS))


def replays(attack: Attack) -> None:
    """Four addresses send batches of 65,536 copies of a good report, which all open."""
    count = min(MOST_REPORTS, (8 << 20) // (len(attack.good) - 44) - 1)
    _flood(attack, attack.batch(attack.good[44:] * count, count))


def ids(attack: Attack) -> None:
    """Four addresses send batches of 65,536 reports, all with new ids, to a task without seals."""
    plain = attack.plain
    other = Attack(attack.port, plain[4:36].hex(), plain, b"", 0.0)
    reports = np.tile(np.frombuffer(plain[44:], np.uint8), (MOST_REPORTS, 1))

    def fresh() -> bytes:
        new = reports.copy()
        names = np.frombuffer(secrets.token_bytes(16 * MOST_REPORTS), np.uint8)
        new[:, :16] = names.reshape(MOST_REPORTS, 16)
        return other.batch(new.tobytes(), MOST_REPORTS)

    _flood(attack, fresh)


def tiny(attack: Attack) -> None:
    """48 connections send one report after the other."""
    _flood(attack, attack.head(len(attack.good)) + attack.good, each=12)


def drops(attack: Attack) -> None:
    """200 connections send heads and bodies byte by byte."""
    socks = [connect(attack.port, ADDRESSES[k % 4]) for k in range(200)]
    request = attack.head(1000) + bytes(1000)
    for place in range(len(request)):
        if not attack.going_on():
            return
        for k, sock in enumerate(socks):
            start = 0 if k % 2 else len(request) - 1000
            with suppress(OSError):
                at = place if not k % 2 else min(start + place, len(request) - 1)
                sock.sendall(
                    request[:start] + b"x" if not place and k % 2 else request[at : at + 1]
                )
        time.sleep(0.05)


def pages(attack: Attack) -> None:
    """Four addresses ask for the page and for events again and again, and read nothing."""
    socks: list[socket.socket] = []
    paths = (f"/tasks/{attack.name}", f"/v1/tasks/{attack.name}/events", "/v1/tasks")
    while attack.going_on():
        for k in range(40):
            with suppress(OSError):
                sock = connect(attack.port, ADDRESSES[k % 4])
                sock.sendall(f"GET {paths[k % 3]} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
                socks.append(sock)
        time.sleep(0.25)
        while len(socks) > 800:
            socks.pop(0).close()


def questions(attack: Attack) -> None:
    """Four addresses keep eight questions each waiting about the task with the most periods.

    They are what takes longest: all curves and ways to look at them, no two of them the same.
    """
    with urllib.request.urlopen(f"http://127.0.0.1:{attack.port}/v1/tasks", timeout=30) as listed:
        tasks = json.load(listed)["tasks"]
    name = max(tasks, key=lambda task: task["periods"])["task_id"]
    numbers = count(1)

    def ask(address: str) -> None:
        while attack.going_on():
            number = next(numbers)
            decoder = ("posterior", "filtered", "smoothed")[number % 3]
            path = (
                f"/v1/tasks/{name}/answers?query=curve&projection=simplex&decoder={decoder}"
                f"&level=0.9{number}"
                if number % 4
                else f"/tasks/{name}?decoder={decoder}&first=1&last={number % 200 + 2}"
            )
            with suppress(OSError), connect(attack.port, address) as sock:
                sock.sendall(f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n".encode())
                _read(sock)

    _from_all(attack, ask, each=8)


def _flood(attack: Attack, request: bytes | Callable[[], bytes], each: int = 1) -> None:
    """Send a request from four addresses, over some connections each, as fast as it is read."""

    def send(address: str) -> None:
        while attack.going_on():
            with suppress(OSError), connect(attack.port, address) as sock:
                while attack.going_on():
                    sock.sendall(request if isinstance(request, bytes) else request())
                    if not _read(sock):
                        raise ConnectionError

    _from_all(attack, send, each)


def _from_all(attack: Attack, send: Callable[[str], None], each: int) -> None:
    """Call a function for each address in some threads, until the end."""
    threads = [
        threading.Thread(target=send, args=(address,), daemon=True)
        for address in ADDRESSES
        for _ in range(each)
    ]
    for thread in threads:
        thread.start()
    attack.sleep()


def _read(sock: socket.socket) -> bool:
    """Read a response to its end; return whether the connection goes on."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = sock.recv(65_536)
        if not part:
            return False
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0] or 0)
    while len(body) < length:
        body += sock.recv(1 << 20)
    return b"connection: close" not in head.lower()


def _named() -> Iterator[tuple[str, Callable[[Attack], None]]]:
    for attack in (announced, idle, garbage, replays, ids, tiny, drops, pages, questions):
        yield attack.__name__, attack


ATTACKS: Final = dict(_named())

if __name__ == "__main__":
    kind, port_, name_, good_, seconds_ = sys.argv[1:]
    sys.stdout.write("begun\n")
    sys.stdout.flush()
    bodies = Path(good_).read_bytes(), Path(good_).with_name("plain").read_bytes()
    ATTACKS[kind](Attack(int(port_), name_, *bodies, float(seconds_)))
