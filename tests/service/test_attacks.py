"""Nobody can stop the collector: honest uploads go on during attacks, and after them as before."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from tests.service.attacks import ADDRESSES, ATTACKS, Attack, connect
from tests.service.closed_tasks import closed_task
from tests.service.fleets import Fleet, batch, joined
from tests.service.running import Running

from sfumato.service import RunningTask
from sfumato.wire.reports import BATCH_TYPE

HONEST = "127.0.0.2"
WEEK = 604_800
PATIENCE = 5.0
"""The number of seconds in which an honest upload is acknowledged, and a page is answered."""
MOST_MEMORY = 1 << 30

TASK: dict[str, Any] = {
    "title": "Under attack",
    "epsilon": 2.0,
    "periods": 32,
    "period": "1 week",
    "changes": 8,
    "values": {"kind": "category", "items": 16},
    "mix": {"snapshot": 1.0},
}


@dataclass
class Target:
    """A collector in a process of its own, a task, reports of honest devices, and a small task."""

    running: Running
    task: RunningTask
    good: Path
    singles: Iterator[bytes]
    small: str

    @property
    def port(self) -> int:
        return urlsplit(self.running.url).port or 0

    def memory(self) -> int:
        """Return the largest number of bytes that the collector has had in memory."""
        status = Path(f"/proc/{self.running.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) << 10

    def spent(self) -> float:
        """Return the processor seconds that the collector has spent."""
        numbers = Path(f"/proc/{self.running.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, numbers[11:13])) / os.sysconf("SC_CLK_TCK")

    def waiting(self) -> float:
        """Return how many reports wait for their receipts."""
        text = self.running.read("/metrics", "SFUMATO_ANALYST_TOKEN").decode()
        return float(text.rpartition("\nsfumato_reports_waiting ")[2].split()[0])

    def ask(self, request: bytes) -> tuple[float, bytes]:
        """Send a request on a connection of its own; return seconds and response."""
        began = time.monotonic()
        with connect(self.port, HONEST) as sock:
            sock.sendall(request)
            response = b""
            while part := sock.recv(1 << 20):
                response += part
        return time.monotonic() - began, response

    def upload(self) -> tuple[float, bytes]:
        """Send the report of an honest device."""
        body = next(self.singles)
        head = (
            f"POST /v1/tasks/{self.task.name}/reports HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
            f"Content-Type: {BATCH_TYPE}\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return self.ask(head.encode() + body)

    def pages(self) -> Iterator[tuple[float, bytes]]:
        """Look at the task's page, at all tasks, and at an answer and the page of another task."""
        answer = f"/v1/tasks/{self.small}/answers?query=mean&period=8&decoder=posterior&level=0.9"
        for path in (f"/tasks/{self.task.name}", "/", answer, f"/tasks/{self.small}"):
            head = f"GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
            yield self.ask(head.encode())


def _singles(task: RunningTask) -> Iterator[bytes]:
    seed = 0
    while True:
        seed += 1
        for message in Fleet(task, 200, seed).messages(["0"] * 200):
            yield batch(task, [message])


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    folder = tmp_path_factory.mktemp("attacked")
    small, _ = (closed_task(folder / "collector.db", *size) for size in ((8, 3), (256, 300)))
    with Running(folder / "collector.db") as running:
        try:
            connect(urlsplit(running.url).port or 0, HONEST).close()
        except OSError:
            pytest.skip("this system has no other addresses of its own")
        start = int(time.time()) - WEEK - 60
        made = running.publish(TASK, start=start, grace=8 * WEEK, public=True)
        task = joined(running, made["task_id"])
        singles = _singles(task)
        good = folder / "good"
        good.write_bytes(next(singles))
        plain = running.publish(TASK, start=start, grace=8 * WEEK, public=True, sealed=False)
        good.with_name("plain").write_bytes(next(_singles(joined(running, plain["task_id"]))))
        yield Target(running, task, good, singles, small)


@dataclass
class Visit:
    """What honest devices and a reader of the page see for some seconds."""

    target: Target
    seconds: float
    uploads: list[float] = field(default_factory=list)
    pages: list[float] = field(default_factory=list)
    problems: list[bytes] = field(default_factory=list)

    def run(self, pause: float = 0.02) -> Visit:
        end = time.monotonic() + self.seconds
        reader = threading.Thread(target=self._look, args=(end,))
        reader.start()
        while time.monotonic() < end:
            seconds, response = self.target.upload()
            self.uploads.append(seconds)
            if b'"accepted":1' not in response:
                self.problems.append(response[:500])
            time.sleep(pause)
        reader.join()
        return self

    def _look(self, end: float) -> None:
        while time.monotonic() < end:
            for seconds, response in self.target.pages():
                self.pages.append(seconds)
                if not response.startswith(b"HTTP/1.1 200"):
                    self.problems.append(response[:500])
            time.sleep(0.5)

    @property
    def p99(self) -> float:
        return float(np.quantile(self.uploads, 0.99))


def _attacked(target: Target, kind: str, seconds: float) -> Visit:
    words = [kind, str(target.port), target.task.name, str(target.good), str(seconds + 1)]
    attacker = subprocess.Popen(  # noqa: S603 -- our own module
        [sys.executable, str(Path(__file__).with_name("attacks.py")), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert attacker.stdout is not None
    assert attacker.stdout.readline() == b"begun\n"
    time.sleep(0.5)
    visit = Visit(target, seconds).run()
    assert attacker.communicate(timeout=60)[1] == b""
    return visit


def _holds(target: Target, visit: Visit) -> None:
    assert not visit.problems
    assert max(visit.uploads) < PATIENCE
    assert max(visit.pages) < PATIENCE
    assert target.memory() < MOST_MEMORY


@pytest.mark.parametrize("kind", ATTACKS)
def test_honest_uploads_and_readers_are_served_during_an_attack(target: Target, kind: str) -> None:
    _holds(target, _attacked(target, kind, 2.0))


def test_what_those_have_sent_who_have_left_is_not_opened(target: Target) -> None:
    count = 60_000
    report = target.good.read_bytes()[44:]
    batch_ = Attack(target.port, target.task.name, target.good.read_bytes(), b"", 0.0).batch
    socks = [connect(target.port, address) for address in ADDRESSES]
    for sock in socks:
        sock.sendall(batch_(report * count, count))
    _until(lambda: target.waiting() > 3 * count)
    began = target.spent()
    for sock in socks:
        sock.close()
    _until(lambda: target.waiting() == 0)
    assert target.spent() - began < 5.0  # all of them take more than twice as long
    assert b'"accepted":1' in target.upload()[1]


def _until(holds: Callable[[], bool]) -> None:
    patience = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < patience
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ATTACKS)
def test_after_a_long_attack_all_is_as_before(
    target: Target, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = Visit(target, 20).run()
    during = _attacked(target, kind, 30.0)
    time.sleep(10)
    after = Visit(target, 20).run()
    with capsys.disabled():
        print(  # noqa: T201 -- the figures themselves
            f"\n{kind}: p99 {1e3 * before.p99:.0f} ms before, {1e3 * after.p99:.0f} ms after; "
            f"during it at most {max(during.uploads):.2f} s for {len(during.uploads)} uploads, "
            f"{max(during.pages):.2f} s for a page; {target.memory() >> 20} MiB"
        )
    _holds(target, during)
    assert after.p99 < 2 * before.p99
