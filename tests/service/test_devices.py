"""Real devices and a real collector, together."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from tests.service.running import Running
from tests.small_tasks import listening

from sfumato import catalog
from sfumato.device import Delivery, Device, Limits
from sfumato.device.transport import Unreachable
from sfumato.service import Collector
from sfumato.store import SQLiteStore

START = 1_000_000
FIELDS = listening(5, "10 seconds")


class World:
    """A collector in this process that devices reach by its methods, and a clock for all."""

    def __init__(self, path: Path) -> None:
        self.path, self.now, self.lost = path, float(START), 0
        self.open()

    def open(self) -> None:
        self.store = SQLiteStore(self.path)
        self.collector = Collector(self.store, "http://here", lambda: self.now)

    def fetch(self, url: str) -> bytes:
        return self.collector.running_task(url.rsplit("/", 1)[1]).published.encode()

    def send(self, url: str, batch: bytes) -> Delivery:
        running_task = self.collector.running_task(url.split("/")[-2])
        receipt = self.collector.take(running_task, batch)
        if self.lost:  # the answer, after everything was written
            self.lost -= 1
            raise Unreachable("no answer")
        return Delivery(dict(receipt.refused))


def test_what_devices_have_sent_is_what_was_counted(tmp_path: Path) -> None:
    world = World(tmp_path / "collector.db")
    mixed = catalog.task(FIELDS | {"mix": {"snapshot": 0.5, "1": 0.5}})
    running_task = world.collector.publish(mixed, START, grace=5)
    url = f"http://here/v1/tasks/{running_task.name}"
    devices = [Device.open(":memory:", Limits(2.0), world, lambda: world.now) for _ in range(150)]
    for device in devices:
        device.join(url)
    held = ["home"] * 90 + ["work"] * 45 + ["road"] * 15
    sent = 0
    for period in range(1, 6):
        world.now = START + 10.0 * period - 5
        for device, value in zip(devices, held, strict=True):
            device.observe(value)
        world.now = START + 10.0 * period + 1
        world.lost = 20  # these devices will send once more
        for device in devices:
            sent += device.flush().sent
        if period == 3:  # the collector starts anew in between
            world.store.close()
            world.open()
        world.lost = 0
        sent += sum(device.flush(force=True).sent for device in devices)
        world.now += 5
        world.collector.close_due()
    running_task = world.collector.running_task(running_task.name)
    assert sum(running_task.participation().values()) == sent > 150
    assert dict(world.store.recount(running_task.task_id, running_task.judge.count)) == dict(
        world.store.tallies(running_task.task_id)
    )
    truth = np.array([held.count(item) / 150 for item in running_task.labels])
    last = running_task.releases[-1]
    assert last.period == 5
    # Six standard errors of the noise, and of who happens to be asked.
    assert (np.abs(last.values - truth) < 6 * np.sqrt(last.variances)).all()
    world.store.close()


@pytest.mark.parametrize("sealed", [True, False])
def test_a_device_joins_observes_and_sends_over_http(tmp_path: Path, *, sealed: bool) -> None:
    with Running(tmp_path / "collector.db") as running:
        short = FIELDS | {"period": "1 second", "periods": 3, "mix": {"1": 1.0}}
        made = running.publish(short, start=int(time.time()) + 1, grace=30, sealed=sealed)
        limits = Limits(2.0, unsealed=not sealed)
        device = Device.open(tmp_path / "device.db", limits)
        device.join(f"{running.url}/v1/tasks/{made['task_id']}")
        device.observe("work")
        time.sleep(max(0.0, made["start"] + 3.1 - time.time()))
        flushed = device.flush()
        assert (flushed.sent, flushed.refused, flushed.waiting) == (3, 0, 0)
        device.close()
    store = SQLiteStore(tmp_path / "collector.db")
    assert store.participation(bytes.fromhex(made["task_id"])) == {1: 1, 2: 1, 3: 1}
    store.close()
