"""No report is lost or counted twice, however often the collector is killed."""

from __future__ import annotations

import http.client
import time
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from tests.service.fleets import batch
from tests.service.running import Running
from tests.small_tasks import listening

from sfumato.randomness import seeded
from sfumato.service import RunningTask
from sfumato.store import SQLiteStore
from sfumato.wire.reports import report_id

TASK = listening(2, "1 week", "abc", changes=2)
BATCH = 40
Bodies = list[tuple[list[bytes], bytes]]


def _bodies(running_task: RunningTask, batches: int) -> Bodies:
    """Return ids and bytes of many small batches of snapshots of the first period."""
    look = running_task.protocol.snapshots[0]  # type: ignore[attr-defined]
    rng = seeded(5)
    made = []
    for place in range(batches):
        payloads = look.mechanism.randomize(np.arange(BATCH) % 3, rng)
        names = [report_id(b"%d %d" % (place, i), running_task.task_id, 1) for i in range(BATCH)]
        contents = [running_task.layout.content(0, 0, one.tobytes()) for one in payloads]
        triples = [(name, 1, content) for name, content in zip(names, contents, strict=True)]
        made.append((names, batch(running_task, triples)))
    return made


class _Sender(Thread):
    """Sends batches in turn until there is no answer; keeps what was acknowledged."""

    def __init__(
        self, running: Running, running_task: RunningTask, bodies: list[tuple[list[bytes], bytes]]
    ) -> None:
        super().__init__()
        self.running, self.running_task, self.bodies = running, running_task, bodies
        self.acknowledged: set[bytes] = set()
        self.accepted = 0
        self.done = 0

    def run(self) -> None:
        for names, body in self.bodies:
            try:
                said = self.running.upload(self.running_task.name, body)
            except (OSError, http.client.HTTPException):
                return
            assert said["refused"] == []
            self.acknowledged |= set(names)
            self.accepted += said["accepted"]
            self.done += 1


def _until_acknowledged(senders: list[_Sender]) -> None:
    patience = time.monotonic() + 60
    while sum(len(sender.acknowledged) for sender in senders) <= 2 * BATCH:
        assert time.monotonic() < patience
        time.sleep(0.01)


def _survives(tmp_path: Path, kills: int) -> None:
    store_path = tmp_path / "collector.db"
    rng = np.random.default_rng(1)
    acknowledged: set[bytes] = set()
    with Running(store_path) as first:
        start = int(time.time()) - 3600
        made = first.publish(TASK, start=start, sealed=False, public=True)
    store = SQLiteStore(store_path)
    running_task = RunningTask(store.tasks()[0], store)
    store.close()
    assert running_task.name == made["task_id"]
    bodies = _bodies(running_task, 60)
    for life in range(kills):
        running = Running(store_path)
        # All again in a new order: most are repeats of a life before.
        order = [bodies[i] for i in rng.permutation(len(bodies))]
        senders = [_Sender(running, running_task, order[half::2]) for half in range(2)]
        for sender in senders:
            sender.start()
        time.sleep(float(rng.uniform(0.0, 0.25)))
        if life == kills - 1:  # however slow the machine is, in the end something is acknowledged
            _until_acknowledged(senders)
        running.kill()
        for sender in senders:
            sender.join()
            acknowledged |= sender.acknowledged
    store = SQLiteStore(store_path)
    store.end_round(running_task.task_id, 1, 0)
    store.settle(running_task.task_id, 1, running_task.judge.count)
    blobs = b"".join(store.ids(running_task.task_id, 1))
    kept = [blobs[i : i + 16] for i in range(0, len(blobs), 16)]
    assert acknowledged <= set(kept)
    assert len(set(kept)) == len(kept)
    tallies = dict(store.tallies(running_task.task_id))
    assert dict(store.recount(running_task.task_id, running_task.judge.count)) == tallies
    assert sum(tally.n for tally in tallies.values()) == len(kept)
    assert len(acknowledged) > BATCH
    store.close()


def test_every_acknowledged_report_counts_exactly_once_through_kills(tmp_path: Path) -> None:
    _survives(tmp_path, kills=3)


@pytest.mark.slow
def test_the_same_through_a_hundred_kills(tmp_path: Path) -> None:
    _survives(tmp_path, kills=100)


def test_a_graceful_end_writes_what_it_has_taken_in(tmp_path: Path) -> None:
    running = Running(tmp_path / "collector.db")
    assert running.read("/readyz") == b'{"status":"ready"}'
    assert running.stop() == 0
