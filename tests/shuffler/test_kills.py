"""Shuffler and collector in processes of their own, killed again and again, over a watched line.

Devices send everything twice, in any order, for as long as it is not acknowledged. Between shuffler
and collector is a line that loses responses, and notes how many reports leave in each batch.
"""

from __future__ import annotations

import os
import random
import time
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
from tests.ports import own_port
from tests.service.fleets import Fleet, batch
from tests.service.running import TOKENS, Running
from tests.small_tasks import lights

from sfumato.cli.processes import Command
from sfumato.device.transport import Http, Unreachable
from sfumato.service.collector import Collector
from sfumato.shuffler.holding import Holding
from sfumato.store import SQLiteStore
from sfumato.streams.registry import stream_of
from sfumato.wire.published import Published
from sfumato.wire.reports import Batch, Layout
from sfumato.wire.sealing import OVERHEAD

LEAST, DEVICES = 20, 60
WEEK = 604_800
TASK = lights(2, "1 week")


class Line(ThreadingHTTPServer):
    """The way from the shuffler to a collector that may be gone; responses are lost at times."""

    daemon_threads = True

    def __init__(self, rng: random.Random) -> None:
        super().__init__(("127.0.0.1", 0), _Passing)
        self.collector = ""
        self.rng = rng
        self.left: list[tuple[bytes, int]] = []
        self.lossy = True
        Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a line that broke."""


class _Passing(BaseHTTPRequestHandler):
    server: Line

    def do_GET(self) -> None:
        self._pass(None)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        task_id, _, count = Batch.head(body)
        self.server.left.append((task_id, count))
        self._pass(body)

    def _pass(self, body: bytes | None) -> None:
        line = HTTPConnection(self.server.collector.removeprefix("http://"), timeout=30)
        line.request(self.command, self.path, body, dict(self.headers))
        answered = line.getresponse()
        content = answered.read()
        if self.server.lossy and self.server.rng.random() < 0.3:
            raise OSError("lost")
        self.send_response(answered.status)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class Scene:
    """Both processes, each of which can be killed and started again."""

    def __init__(self, folder: Path, rng: random.Random) -> None:
        self.folder, self.port, self.line = folder, own_port(), Line(rng)
        self.url = f"http://127.0.0.1:{self.port}"
        self.kills = 0

    def start_collector(self) -> None:
        self.collector = Running(self.folder / "collector.db", "--url", self.line.url)
        self.line.collector = self.collector.url

    def start_shuffler(self) -> None:
        words = ["shuffle", "serve", "--collector", self.line.url, "--port", str(self.port)]
        words += ["--store", str(self.folder / "shuffler.db")]
        self.shuffler = Command(words, self.folder / "shuffler.log")
        self.shuffler.next_record()

    def kill_shuffler(self) -> None:
        self.shuffler._process.kill()  # noqa: SLF001
        self.shuffler.stop()
        self.kills += 1
        self.start_shuffler()

    def kill_collector(self) -> None:
        self.collector.kill()
        self.kills += 1
        self.start_collector()


def _joined(collector: Running, name: str) -> Any:
    """Return what a fleet needs to know of a task, without the keys that open reports."""
    published = Published.parse(collector.read(f"/v1/tasks/{name}"))
    stream = stream_of(published.spec)
    layout = Layout(stream.payload, OVERHEAD)
    return SimpleNamespace(
        published=published, task_id=published.task_id, protocol=stream, layout=layout
    )


def _survives(folder: Path, kills: int) -> None:
    rng = random.Random(11)  # noqa: S311
    scene = Scene(folder, rng)
    try:
        _lived(folder, kills, rng, scene)
    finally:
        scene.shuffler.stop()
        scene.collector.kill()
        scene.line.shutdown()
        scene.line.server_close()


def _lived(folder: Path, kills: int, rng: random.Random, scene: Scene) -> None:
    sending, handing = 10 + 6 * kills, 20 + 4 * kills
    scene.start_collector()
    end = int(time.time()) + sending
    shuffle = {"url": scene.url, "epsilon": 2.0, "delta": 1e-6, "min_batch": LEAST}
    start = end - 2 * WEEK  # the first period is over, the second one goes on until `end`
    names, bodies = [], []
    for title, devices in (("many", DEVICES), ("too few", LEAST - 1)):
        task_file = TASK | {"shuffle": shuffle, "title": title}
        told = scene.collector.publish(task_file, start=start, grace=handing, public=True)
        names.append(told["task_id"])
        task = _joined(scene.collector, names[-1])
        fleet = Fleet(task, devices)
        fleet.messages([1] * devices)  # nobody takes the first period any more
        messages = fleet.messages([1] * devices)
        bodies += [(names[-1], batch(task, [message])) for message in messages]
    scene.start_shuffler()
    bodies = 2 * bodies
    rng.shuffle(bodies)
    http, waiting, turn = Http(timeout=10.0), list(bodies), 0
    while waiting:
        turn += 1
        if turn % max(1, len(bodies) // kills) == 0:
            scene.kill_shuffler()
        name, body = waiting.pop(rng.randrange(len(waiting)))
        try:
            assert not http.send(f"{scene.url}/v1/tasks/{name}/reports", body).refused
        except Unreachable:
            waiting.append((name, body))
    assert time.time() < end + handing, "the machine was too slow for this test"
    while time.time() < end + handing:
        time.sleep(0.2)
    # Now the bucket is mixed and handed on, while both are killed.
    while time.time() < end + 2 * handing - 15 and scene.kills < 2 * kills:
        scene.kill_collector()
        scene.kill_shuffler()
        time.sleep(rng.random())
    scene.line.lossy = False
    time.sleep(10)
    scene.shuffler.stop()
    scene.collector.stop()
    print(f"{scene.kills} kills")  # noqa: T201 -- it depends on the machine
    assert scene.kills >= kills
    _counted_once(folder, scene, names, end + 3.0 * handing)


def _counted_once(folder: Path, scene: Scene, names: list[str], later: float) -> None:
    many, few = map(bytes.fromhex, names)
    store = SQLiteStore(folder / "collector.db")
    # A copy that came through two starts of the collector counts until its period settles.
    late = Collector(store, scene.line.url, lambda: later)
    late.close_due()
    assert store.participation(many) == {2: DEVICES}
    assert not store.participation(few)
    assert late.running_task(names[0]).closed == 2
    store.close()
    holding = Holding(folder / "shuffler.db")
    counts = [holding.counts(each) for each in (many, few)]
    holding.close()
    assert counts == [
        {"acknowledged": DEVICES, "counted": DEVICES},
        {"acknowledged": LEAST - 1, "expired": LEAST - 1},
    ]
    assert {task_id for task_id, _ in scene.line.left} == {many}
    assert min(count for _, count in scene.line.left) >= LEAST


@pytest.mark.slow
def test_no_report_is_lost_or_counted_twice_however_often_both_are_killed(tmp_path: Path) -> None:
    kills = int(os.environ.get("SFUMATO_KILLS", "60"))
    tokens = TOKENS | {"SFUMATO_SHUFFLER_TOKEN": "a-shuffler-of-tests-only"}
    with mock.patch.dict(os.environ, tokens):
        _survives(tmp_path, kills)
