"""Rounds of questions survive `kill -9`: the same questions, each answer counted once."""

from __future__ import annotations

import os
import random
import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

import numpy as np
import pytest
from tests.ports import own_port
from tests.service.running import Running

from sfumato.core.stream import replay
from sfumato.device import Delivery, Device, Http, Limits
from sfumato.service import RunningTask
from sfumato.store import SQLiteStore
from sfumato.wire.published import Published
from sfumato.wire.questions import Question

DEVICES = 6
TASK: dict[str, Any] = {
    "kind": "window",
    "title": "Killed",
    "epsilon": 6.0,
    "window": 3,
    "devices": DEVICES,
    "periods": 5000,
    "period": "1 second",
    "values": {"kind": "category", "items": ["home", "work", "road"]},
    "method": "lba",
    "keep": "for ever",
}


@dataclass
class Heard:
    """By HTTP, with a record of every question."""

    asked: dict[tuple[int, int], set[bytes]] = field(default_factory=lambda: defaultdict(set))
    inner: Http = field(default_factory=lambda: Http(3.0))

    def fetch(self, url: str) -> bytes:
        said = self.inner.fetch(url)
        if url.endswith("/question") and (question := Question.parse(said)) is not None:
            self.asked[(question.period, question.round)].add(said)
        return said

    def send(self, url: str, batch: bytes) -> Delivery:
        return self.inner.send(url, batch)


class Crowd(Thread):
    """Devices that live until they are told to rest, and then send what waits."""

    def __init__(self, folder: Path, task: Published) -> None:
        super().__init__()
        self.folder, self.task = folder, task
        self.heard = Heard()
        self.tired, self.failed = Event(), ""
        self.sent: Counter[int] = Counter()
        """The number of reports of each period that were acknowledged."""
        self.made: Counter[int] = Counter()
        """The number of reports of each period that were ever made."""

    def run(self) -> None:
        limits = Limits(6.0, windows=True, unsealed=True)
        devices = [
            Device.open(self.folder / f"{name}.journal", limits, self.heard)
            for name in range(DEVICES)
        ]
        for device in devices:
            device.join(self.task)
        rng = random.Random(1)  # noqa: S311
        while not self.tired.is_set():
            for device in devices:
                device.observe(rng.choice(["home", "work", "road"]))
                device.flush(force=True)
        patience = time.monotonic() + 60
        while any(device.flush(force=True).waiting for device in devices):
            if time.monotonic() > patience:
                self.failed = "something still waits"
                break
        for device in devices:
            self._remember(device)
            device.close()

    def _remember(self, device: Device) -> None:
        rows = device.journal._base.run("SELECT period, outcome FROM reports")  # noqa: SLF001
        for period, outcome in rows:
            self.made[period] += 1
            self.sent[period] += outcome == "sent"


@pytest.mark.parametrize(
    "kills", [6, pytest.param(60, marks=pytest.mark.slow)], ids=["a few", "many"]
)
def test_every_answer_counts_once_and_every_round_is_asked_alike(
    tmp_path: Path, kills: int
) -> None:
    rng = random.Random(int(os.environ.get("SFUMATO_SEED", "1")))  # noqa: S311
    port = str(own_port())
    store = tmp_path / "collector.db"
    collector = Running(store, "--port", port)
    start = int(time.time())
    made = collector.publish(TASK, start=start, grace=1, sealed=False, public=True)
    task = Published.parse(collector.read(f"/v1/tasks/{made['task_id']}"))
    crowd = Crowd(tmp_path, task)
    crowd.start()
    try:
        for _ in range(kills):
            time.sleep(rng.uniform(0.3, 2.5))
            collector.kill()
            collector = Running(store, "--port", port)
        time.sleep(3)
    finally:
        crowd.tired.set()
        crowd.join(90)
    assert not crowd.failed
    assert collector.stop() == 0
    _compare(store, crowd)


def _compare(store: Path, crowd: Crowd) -> None:
    opened = SQLiteStore(store)
    running = RunningTask(opened.tasks()[0], opened)
    assert running.closed >= 3
    assert all(len(said) == 1 for said in crowd.heard.asked.values())
    for period in opened.participation(running.task_id):
        opened.settle(running.task_id, period, running.judge.count)  # the open one has copies
    counted = opened.participation(running.task_id)
    assert sum(counted.values()) > 0
    for period in crowd.made.keys() | counted.keys():
        # Acknowledged means counted, and nothing counts twice; a receipt may have been lost.
        assert crowd.sent[period] <= counted.get(period, 0) <= crowd.made[period]
    tallies = opened.tallies(running.task_id)
    assert dict(opened.recount(running.task_id, running.judge.count)) == dict(tallies)
    curator = running.protocol.curator()
    again = replay(curator, [tallies] * len(running.releases))
    for release, estimate in zip(running.releases, again, strict=True):
        known = np.isfinite(estimate.covariance.variances())
        np.testing.assert_array_equal(np.where(known, estimate.values, np.nan), release.values)
    opened.close()
