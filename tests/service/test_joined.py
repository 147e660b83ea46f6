"""Uploads that pass the first door together get the receipts that each would get alone."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.fleets import LISTENING, Fleet

from sfumato.service import Collector, RunningTask
from sfumato.service.first_door import HOPELESS, Upload, screen
from sfumato.store import SQLiteStore
from sfumato.wire.reports import Batch
from sfumato.wire.sealing import seal

START = 1_000_000
WAYS = 6


class Twins:
    """The same tasks on two collectors with the same keys: one joins, the other does not."""

    def __init__(self, folder: Path) -> None:
        self.now = START + 31.0
        (folder / "a").mkdir()
        store = SQLiteStore(folder / "a" / "collector.db")
        first = Collector(store, "http://here", lambda: self.now)
        names = [
            first.publish(LISTENING, START, grace=100, sealed=sealed).task_id
            for sealed in (True, False)
        ]
        keys = first.running_tasks[names[0]]
        first.rotate(keys)
        first.rotate(keys)
        store.close()
        (folder / "b").mkdir()
        for name in (folder / "a").iterdir():
            (folder / "b" / name.name).write_bytes(name.read_bytes())
        self.stores = [SQLiteStore(folder / side / "collector.db") for side in "ab"]
        self.alone, self.joined = (
            Collector(store, "http://here", lambda: self.now) for store in self.stores
        )
        self.names = names

    def take_alone(self, mixture: list[tuple[int, bytes]]) -> list[dict[str, Any]]:
        return [
            self.alone.take(self.alone.running_tasks[self.names[task]], body).plain()
            for task, body in mixture
        ]

    def take_joined(self, mixture: list[tuple[int, bytes]]) -> list[dict[str, Any]]:
        uploads = [
            Upload.of(self.joined.running_tasks[self.names[task]], body) for task, body in mixture
        ]
        self.joined.settle(screen(uploads, self.now))
        return [upload.receipt.plain() for upload in uploads]


@pytest.fixture
def twins(tmp_path: Path) -> Twins:
    return Twins(tmp_path)


def _spoilt(body: bytes, size: int, keys: list[int], rng: np.random.Generator) -> bytes:
    """Return a batch with one thing that is wrong, or that is right after all."""
    wrong = bytearray(body)
    report = 44 + size * int(rng.integers(0, (len(body) - 44) // size))
    spoil: list[Callable[[], None]] = [
        lambda: None,
        lambda: struct.pack_into("<I", wrong, 36, int(rng.choice(keys))),  # the key
        lambda: struct.pack_into("<I", wrong, report + 16, int(rng.integers(0, 9))),  # a period
        lambda: wrong.__setitem__(4, wrong[4] ^ 1),  # the task
        lambda: wrong.__setitem__(len(wrong) - 1, wrong[-1] ^ 1),  # the last content
        lambda: wrong.__setitem__(report + 20, wrong[report + 20] ^ 1),  # a seal or version
        lambda: wrong.__setitem__(slice(44, 60), wrong[report : report + 16]),  # an id twice
    ]
    spoil[rng.integers(0, len(spoil))]()
    return bytes(wrong)


def _mixture(twins: Twins, seed: int, count: int = 40) -> list[tuple[int, bytes]]:
    """Return uploads of one or of many reports: old and new ones, good, bad and twice."""
    rng = np.random.default_rng(seed)
    made: list[tuple[int, bytes]] = []
    fleets: dict[tuple[int, int], list[bytes]] = {}
    for _ in range(count):
        if made and rng.random() < 0.2:
            made.append(made[rng.integers(0, len(made))])  # sent again
            continue
        task = int(rng.integers(0, 2))
        running = twins.alone.running_tasks[twins.names[task]]
        key_id = int(rng.choice(sorted(running.keys))) if task == 0 else 0
        bodies = fleets.setdefault((task, key_id), _bodies(running, key_id, rng))
        body = bodies[rng.integers(0, len(bodies))]
        keys = [0, 77, *running.keys]
        made.append((task, _spoilt(body, running.layout.report_dtype.itemsize, keys, rng)))
    sealed = next(bodies for (task, _), bodies in fleets.items() if task == 0)[0]
    for at, value in ((36, b"\x4d\0\0\0"), (4, bytes(4))):  # always an unknown key, another task
        made.insert(int(rng.integers(len(made))), (0, sealed[:at] + value + sealed[at + 4 :]))
    return made


def _body(running: RunningTask, messages: list[tuple[bytes, int, bytes]], key_id: int) -> bytes:
    """Return a batch of reports that are sealed to one of the task's keys, new or old."""
    if key_id:
        key = running.keys[key_id]
        public = key.private.public_key()
        messages = [
            (name, period, seal(content, public, key.context, name, period))
            for name, period, content in messages
        ]
    packed = b"".join(
        name + struct.pack("<I", period) + content for name, period, content in messages
    )
    reports = np.frombuffer(packed, dtype=running.layout.report_dtype)
    return Batch(running.task_id, key_id, reports).encode()


def _bodies(running: RunningTask, key_id: int, rng: np.random.Generator) -> list[bytes]:
    """Return batches of some devices over three periods, whole and report by report."""
    fleet = Fleet(running, 24)
    whole = [
        fleet.messages([running.labels[rng.integers(0, 3)] for _ in range(24)]) for _ in range(3)
    ]
    single = [_body(running, [message], key_id) for messages in whole for message in messages]
    return [_body(running, messages, key_id) for messages in whole if messages] * 3 + single * 2


@pytest.mark.parametrize("seed", range(WAYS))
def test_joined_uploads_get_the_receipts_they_would_get_alone(twins: Twins, seed: int) -> None:
    mixture = _mixture(twins, seed)
    alone, joined = twins.take_alone(mixture), twins.take_joined(mixture)
    assert joined == alone
    for name in twins.names:
        a, b = (each.running_tasks[name].participation() for each in (twins.alone, twins.joined))
        assert a == b
    outcomes = {refused["reason"] for receipt in alone for refused in receipt["refused"]}
    assert {"unknown_key", "wrong_task"} <= outcomes
    assert sum(receipt["accepted"] for receipt in alone) > 0
    assert sum(receipt["repeated"] for receipt in alone) > 0


def test_screening_in_parts_refuses_and_opens_the_same(twins: Twins) -> None:
    """However an upload is cut, a hopeless one is refused after the same number of seals."""
    running = twins.alone.running_tasks[twins.names[0]]
    size = running.layout.report_dtype.itemsize
    fleet = Fleet(running, 16 * HOPELESS)
    messages = [fleet.messages([running.labels[0]] * 16 * HOPELESS) for _ in range(3)][1]
    body = _body(running, messages, running.published.key_id)
    whole_size = (len(body) - 44) // size
    assert whole_size > HOPELESS + 10
    for bad in (HOPELESS - 1, HOPELESS):
        wrong = bytearray(body)
        for place in range(bad):
            wrong[44 + (place + 1) * size - 1] ^= 1
        outcomes = []
        for most in (None, 1, 7, HOPELESS, HOPELESS + 1):
            upload = Upload.of(running, bytes(wrong))
            while upload.rest:
                screen([upload], twins.now, most)
            outcomes.append((upload.tried, sorted(upload.receipt.refused)))
        assert all(outcome == outcomes[0] for outcome in outcomes)
        tried, refused = outcomes[0]
        assert tried == (whole_size if bad < HOPELESS else HOPELESS)
        assert len(refused) == (bad if bad < HOPELESS else whole_size)
