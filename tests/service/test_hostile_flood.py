"""However many hostile requests come: no crash, no status 500, a short log, and no more memory."""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from socket import SHUT_WR
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from tests.service.attacks import connect
from tests.service.fleets import Fleet, batch, joined
from tests.service.running import Running
from tests.service.test_attacks import TASK, WEEK

from sfumato.service import RunningTask
from sfumato.wire.reports import BATCH_TYPE

HEAD = 44
"""The number of bytes of a batch before its reports."""
CLIENTS = 32
PEOPLE = 10_000
"""The devices whose good reports are made into hostile ones; each sends one in 32 periods."""
MANY = 1_000_000
"""The number of hostile requests of a long run."""
MOST_GROWTH = 48 << 20
EXPECTED = {"200", "400", "401", "404", "405", "411", "413", "429"}
"""The statuses that a hostile request can get."""


def _uploads(task: RunningTask) -> list[bytes]:
    """Return good batches, of which hostile ones are made."""
    messages = Fleet(task, PEOPLE).messages(["3"] * PEOPLE)
    return [batch(task, messages[:n]) for n in (1, 7, 60, len(messages))]


def _many(good: list[bytes]) -> int:
    """Return the number of reports of the largest batch."""
    return (len(good[-1]) - HEAD) // (len(good[0]) - HEAD)


def _hostile(path: str, good: list[bytes], rng: np.random.Generator) -> bytes:
    """Return a request with something wrong in its body, its head, each report, or in all of it."""
    kind = int(rng.integers(13))
    body = bytearray(good[-1 if kind == 12 else rng.integers(3)])
    if kind == 0:
        return rng.bytes(int(rng.integers(1, 300)))
    if kind == 1:
        body = bytearray(rng.bytes(int(rng.integers(0, 400))))
    elif kind == 2:
        del body[int(rng.integers(len(body))) :]
    elif kind == 3:
        body[36:44] = rng.bytes(8)  # the key and the number of reports
    elif kind == 4:
        body[36:40] = rng.bytes(4)
    elif kind == 12:
        reports = np.frombuffer(body, np.uint8)[HEAD:].reshape(-1, len(good[0]) - HEAD)
        rows = np.arange(len(reports))
        reports[rows, rng.integers(reports.shape[1], size=len(rows))] ^= rng.integers(
            1, 256, len(rows), dtype=np.uint8
        )
    elif kind < 10:
        for _ in range(int(rng.integers(1, 6))):
            body[rng.integers(len(body))] ^= int(rng.integers(1, 256))
    length = str(len(body)) if kind != 10 else "9" * int(rng.integers(8, 30))
    if kind == 11:
        path = path[: rng.integers(1, len(path))] + "".join(map(chr, rng.integers(33, 127, 9)))
    head = (
        f"POST {path} HTTP/1.1\r\nHost: h\r\nContent-Type: {BATCH_TYPE}\r\n"
        f"Authorization: Bearer {rng.integers(1 << 60)}\r\nContent-Length: {length}\r\n\r\n"
    )
    return head.encode() + bytes(body)


class _Client(Thread):
    """Sends hostile requests one after the other, and counts what they are answered."""

    def __init__(self, port: int, path: str, good: list[bytes], seed: int, count: int) -> None:
        super().__init__()
        self._port, self._path, self._good = port, path, good
        self._rng, self.left = np.random.default_rng(seed), count
        self.statuses: Counter[str] = Counter()

    def run(self) -> None:
        while self.left:
            with suppress(OSError), connect(self._port, "127.0.0.1") as sock:
                sock.settimeout(5)
                while self.left:
                    self.left -= 1
                    request = _hostile(self._path, self._good, self._rng)
                    sock.sendall(request)
                    if not request.startswith(b"POST"):
                        sock.shutdown(SHUT_WR)  # nothing that is waited for comes any more
                    if not self._answered(sock):
                        break

    def _answered(self, sock: Any) -> bool:
        """Read a response; return whether the connection can be used again."""
        received = b""
        while b"\r\n\r\n" not in received:
            part = sock.recv(65_536)
            if not part:
                return False
            received += part
        head, _, body = received.partition(b"\r\n\r\n")
        self.statuses[head[9:12].decode()] += 1
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0] or 0)
        while len(body) < length:
            body += sock.recv(65_536)
        # What is not read of a body is no next request.
        return head[9:12] in (b"200", b"400") and b"connection: close" not in head.lower()


def _resident(running: Running) -> int:
    pages = Path(f"/proc/{running.pid}/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def _flooded(folder: Path, count: int) -> Iterator[tuple[int, int, Counter[str], int]]:
    """Send so many hostile requests; yield in ten steps what came of them.

    That is their number so far, the bytes of memory, the statuses, and the size of a large batch.
    """
    with Running(folder / "collector.db", log=folder / "log") as running:
        start = int(time.time()) - WEEK - 60
        made = running.publish(TASK, start=start, grace=8 * WEEK, public=True)
        task = joined(running, made["task_id"])
        port, path = urlsplit(running.url).port or 0, f"/v1/tasks/{task.name}/reports"
        statuses: Counter[str] = Counter()
        good = _uploads(task)
        for step in range(10):
            each = count // (10 * CLIENTS)
            clients = [_Client(port, path, good, 100 * step + k, each) for k in range(CLIENTS)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
                statuses += client.statuses
            yield (
                (step + 1) * CLIENTS * each,
                _resident(running),
                statuses,
                _many(good),
            )
        assert running.read("/readyz") == b'{"status":"ready"}'
        assert running.stop() == 0


def _holds(folder: Path, steps: list[tuple[int, int, Counter[str], int]]) -> None:
    statuses = steps[-1][2]
    assert {"200", "400"} <= set(statuses) <= EXPECTED
    assert statuses["200"] + statuses["400"] > 0.5 * steps[-1][0]
    lines = (folder / "log").read_text().splitlines()
    events = [json.loads(line) for line in lines if line.startswith("{")]
    assert not [line for line in lines if "Traceback" in line]
    assert not [event for event in events if event.get("level") == "error"]


def test_hostile_requests_are_refused_without_a_crash(tmp_path: Path) -> None:
    _holds(tmp_path, list(_flooded(tmp_path, 2000)))


@pytest.mark.slow
def test_a_million_hostile_requests_leave_nothing_behind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = list(_flooded(tmp_path, int(os.environ.get("SFUMATO_HOSTILE", str(MANY)))))
    _holds(tmp_path, steps)
    with capsys.disabled():
        print(  # noqa: T201 -- the figures themselves
            f"\n{steps[-1][0]:,} hostile requests, of which one in 13 has {steps[-1][3]} wrong "
            f"reports: {dict(steps[-1][2])}; "
            f"{steps[1][1] >> 20} MiB after a fifth, {steps[-1][1] >> 20} MiB at the end"
        )
    assert steps[-1][1] - steps[1][1] < MOST_GROWTH
