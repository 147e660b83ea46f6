"""Two devices exchange their sealed reports: nobody receives or stores anything else."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.fleets import Fleet
from tests.shuffler.mixers import HERE, Mixer

from sfumato.randomness import Keyed
from sfumato.service.collector import Collector
from sfumato.shuffler import mixing
from sfumato.shuffler.holding import Holding
from sfumato.shuffler.mixed_task import MixedTask
from sfumato.shuffler.mixing import Shuffler
from sfumato.store import SQLiteStore
from sfumato.wire.reports import Batch


@pytest.fixture
def mixer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mixer]:
    mixer = Mixer(tmp_path, monkeypatch)
    with mixer.world.client:
        yield mixer
    mixer.close()


def _rows(path: Path, *, numbered: bool = True) -> dict[str, list[Any]]:
    """Return all rows of all tables of a store, perhaps without the numbers drawn for some."""
    with closing(sqlite3.connect(path)) as store:
        names = store.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        tables = {name: store.execute(f"SELECT * FROM {name}").fetchall() for (name,) in names}  # noqa: S608
    if not numbered:
        tables["waiting"] = [row[1:] for row in tables["waiting"]]
    return tables


def _world(folder: Path, mixer: Mixer, bodies: list[bytes]) -> dict[str, Any]:
    """Return all that is received and stored if these reports come in this order."""
    folder.mkdir()
    copy = folder / "collector.db"
    with closing(sqlite3.connect(mixer.folder / "collector.db")) as source:
        source.execute("VACUUM INTO ?", (str(copy),))
    now, task_id = [mixer.world.now], mixer.running.task_id
    holding, store = Holding(folder / "shuffler.db"), SQLiteStore(copy)
    shuffler = Shuffler(
        holding, HERE, "http://testserver", lambda: now[0], Keyed(bytes(32), "mixing")
    )
    task = shuffler.learn(mixer.published)
    shuffler.hold([shuffler.read(task, body) for body in bodies])
    holding.close()
    seen: dict[str, Any] = {"waiting": _rows(folder / "shuffler.db", numbered=False)}
    holding = shuffler.holding = Holding(folder / "shuffler.db")
    now[0] = mixer.running.ends_at(1) + 5
    shuffler.mix_due()
    (batched,) = holding.batches()
    reports = np.frombuffer(batched.reports, dtype=task.layout.report_dtype)
    seen["received"] = Batch(task_id, batched.bucket.key_id, reports).encode()
    collector = Collector(store, "http://testserver", lambda: now[0])
    running = collector.running_task(mixer.running.name)
    receipt = collector.take(running, seen["received"], mixed=True)
    assert receipt.accepted == len(bodies)
    holding.handed_on(batched, Counter(counted=len(bodies)))
    holding.close()
    seen["left behind"] = _rows(folder / "shuffler.db")
    seen["stored"] = _rows(copy)
    now[0] = mixer.running.closes_at(1)
    collector.close_due()
    assert running.closed == 1
    store.close()
    seen["closed"] = _rows(copy)
    # When a period closes the collector draws an order of its own.
    size = mixer.running.layout.content_dtype.itemsize
    ((*marks, contents),) = seen["closed"].pop("log")
    parts = sorted(contents[at : at + size] for at in range(0, len(contents), size))
    seen["counted"] = marks, parts
    return seen


def test_who_sent_which_report_changes_nothing_that_is_received_or_stored(
    mixer: Mixer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two devices exchange their sealed reports; with the same coins everything is the same."""
    mixer.end_of(1)
    bodies = mixer.bodies(Fleet(mixer.running, 20))
    exchanged = list(bodies)
    exchanged[3], exchanged[11] = bodies[11], bodies[3]
    one = _world(tmp_path / "one", mixer, bodies)
    other = _world(tmp_path / "other", mixer, exchanged)
    for name, content in one.items():
        assert content == other[name], name
    assert sum(len(rows) for rows in one["stored"].values()) > 0
    # A shuffler that keeps the order is found out; of what it tells, the store keeps nothing.
    monkeypatch.setattr(Shuffler, "_mixed", lambda _, task, held: _as_they_came(task, held))
    monkeypatch.setattr(mixing, "_packed", lambda reports: (b"".join(reports), len(reports)))
    kept = _world(tmp_path / "kept", mixer, bodies)
    told = _world(tmp_path / "told", mixer, bodies[::-1])
    assert kept["received"] != told["received"]
    assert kept["stored"] == told["stored"]


def _as_they_came(task: MixedTask, held: bytes) -> list[tuple[int, bytes]]:
    return [(len(held) // task.report_bytes, held)]
