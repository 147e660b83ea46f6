"""Collector and devices are killed at random; no report is lost, counted twice or changed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from tests.ports import own_port
from tests.service.running import Running
from tests.small_tasks import lights
from tests.system import living

from sfumato.device import Device, Limits
from sfumato.service import RunningTask
from sfumato.store import SQLiteStore
from sfumato.wire.published import Published
from sfumato.wire.reports import Batch, report_id

DEVICES = 4
TASK = lights(2000, "1 second", epsilon=1.0)


class World:
    """A collector with a store and devices with journals, all of which can be killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "collector.db"
        self.port = str(own_port())
        self.collector = self.serve()
        # All periods have begun and none closes, so that devices can live as fast as they can.
        start = int(time.time()) - 3000
        made = self.collector.publish(TASK, start=start, grace=1 << 30, sealed=False, public=True)
        self.task = Published.parse(self.collector.read(f"/v1/tasks/{made['task_id']}"))
        (folder / "task.json").write_bytes(self.task.encode())
        for name in range(DEVICES):
            (folder / f"{name}.journal").touch(0o600)
        self.devices = self.live()
        self.until_they_speak()

    def serve(self) -> Running:
        return Running(self.store, "--port", self.port)

    def live(self, how: str = "live") -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, living.__file__, str(self.folder), how])  # noqa: S603

    def until_they_speak(self) -> None:
        """Wait until some report is about to leave."""
        before, patience = self.overheard_bytes(), time.monotonic() + 60
        while self.overheard_bytes() == before:
            assert self.devices.poll() is None
            assert time.monotonic() < patience
            time.sleep(0.02)

    def overheard_bytes(self) -> int:
        return sum(path.stat().st_size for path in self.folder.glob("*.sent"))

    def kill_devices(self) -> None:
        assert self.devices.poll() is None
        self.devices.kill()
        self.devices.wait()

    def clone(self, name: str, place: str) -> None:
        """Restore a backup of a device, as it is now, beside it; nobody has it open."""
        for path in self.folder.glob(f"{name}.journal*"):
            shutil.copy(path, self.folder / path.name.replace(name, place, 1))

    def end(self) -> None:
        """Let the devices send what waits, and stop everything gracefully."""
        assert self.live("rest").wait(120) == 0
        assert self.collector.stop() == 0

    # ---- what is left ------------------------------------------------------------------------

    def counted(self) -> Counter[bytes]:
        """Return how often the collector has counted each report, after a recount."""
        store = SQLiteStore(self.store)
        running = RunningTask(store.tasks()[0], store)
        for period in store.participation(running.task_id):
            store.end_round(running.task_id, period, 0)
            store.settle(running.task_id, period, running.judge.count)
        tallies = dict(store.tallies(running.task_id))
        assert dict(store.recount(running.task_id, running.judge.count)) == tallies
        found: Counter[bytes] = Counter()
        for period in range(1, TASK["periods"] + 1):
            for blob in store.ids(running.task_id, period):
                found.update(blob[i : i + 16] for i in range(0, len(blob), 16))
        store.close()
        assert sum(tally.n for tally in tallies.values()) == found.total()
        return found

    def told(self) -> tuple[set[bytes], dict[bytes, set[bytes]], dict[bytes, set[str]]]:
        """Return what the journals call sent, all that ever left, and who it left."""
        sent: set[bytes] = set()
        left: dict[bytes, set[bytes]] = {}
        by: dict[bytes, set[str]] = {}
        for path in sorted(self.folder.glob("*.journal")):
            device = Device.open(path, Limits(1.0, unsealed=True), clock=lambda: 0.0)
            assert device.left == 0.0
            (joined,) = device.journal.tasks()
            for period, outcome, _ in device.journal.outcomes(joined.task_id):
                assert outcome == "sent"
                sent.add(report_id(joined.ids, joined.task_id, period))
            device.close()
            for name, content in _overheard(path.with_suffix(".sent")):
                left.setdefault(name, set()).add(content)
                by.setdefault(name, set()).add(path.stem)
        return sent, left, by


def _overheard(path: Path) -> list[tuple[bytes, bytes]]:
    data, at, found = path.read_bytes(), 0, []
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "little")
        body = data[at + 4 : at + 4 + size]
        at += 4 + size
        if len(body) < size:
            break  # killed while it wrote, so it never left
        _, _, count = Batch.head(body)
        each = (len(body) - 44) // count
        reports = [body[44 + i * each : 44 + (i + 1) * each] for i in range(count)]
        found += [(report[:16], report[16:]) for report in reports]
    return found


def _survives(folder: Path, kills: int) -> None:
    rng = np.random.default_rng(1)
    world = World(folder)
    clones = 0
    for kill in range(kills):
        time.sleep(float(rng.uniform(0.0, 0.5)))
        if kill % 2:
            world.collector.kill()
            world.collector = world.serve()
        else:
            world.kill_devices()
            if kill % 4 == 0 and clones < 3:
                world.clone(str(clones), f"{clones} again")
                clones += 1
            world.devices = world.live()
            world.until_they_speak()
    world.kill_devices()
    world.end()
    counted = world.counted()
    sent, left, by = world.told()
    assert set(counted.values()) == {1}
    assert sent == set(counted)  # nothing lost, nothing that no device has sent
    assert sent == set(left)
    assert all(len(answers) == 1 for answers in left.values())  # also what a clone has said
    assert len(counted) > 10 * kills
    assert any(len(names) == 2 for names in by.values())  # a clone did speak


def test_nothing_is_lost_or_told_twice_through_kills(tmp_path: Path) -> None:
    _survives(tmp_path, kills=6)


@pytest.mark.slow
def test_the_same_through_a_hundred_and_twenty_kills(tmp_path: Path) -> None:
    _survives(tmp_path, kills=120)
