"""A task's key is renewed: nothing that was sealed before is lost, and the old key goes away."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.service.fleets import Fleet, batch, report
from tests.service.test_collector import START, TASK_FIELDS, VALUES, Setting

from sfumato import catalog
from sfumato.device import Delivery, Device, Limits
from sfumato.errors import ConfigurationError
from sfumato.service import RunningTask
from sfumato.store import SQLiteStore
from sfumato.store.schema import APPLICATION, STEPS
from sfumato.wire.published import Published
from sfumato.wire.reports import Batch


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    made = Setting(tmp_path / "collector.db")
    yield made
    made.store.close()


def _packed(running: RunningTask, key_id: int, parts: list[bytes]) -> bytes:
    reports = np.frombuffer(b"".join(parts), dtype=running.layout.report_dtype)
    return Batch(running.task_id, key_id, reports).encode()


def test_reports_sealed_before_still_open_and_count_once_under_either_key(setting: Setting) -> None:
    running = setting.running()
    fleet = Fleet(running, len(VALUES))
    setting.end_of(1)
    messages = fleet.messages(VALUES)
    old = [report(running, *message) for message in messages]
    before = running.published.key_id
    after = setting.collector.rotate(running)
    assert before < running.published.key_id == after
    setting.reopen()
    running = setting.running()
    assert (running.published.key_id, set(running.keys)) == (after, {before, after})
    new = [report(running, *message) for message in messages]
    half = len(messages) // 2
    first = setting.collector.take(running, _packed(running, before, old[:half]))
    assert (first.accepted, first.refused, first.key_id) == (half, [], after)
    rest = setting.collector.take(running, _packed(running, after, new))
    assert (rest.accepted, rest.repeated, rest.refused) == (len(messages) - half, half, [])
    wrong = setting.collector.take(running, _packed(running, after, old))
    assert {why for _, why in wrong.refused} == {"unopened"}
    buckets = setting.store._tables.connection.execute("SELECT DISTINCT key_id FROM tallies")  # noqa: SLF001
    assert sorted(buckets) == [(before,), (after,)]
    counted = setting.store.recount(running.task_id, running.judge.count)
    assert dict(counted) == dict(setting.store.tallies(running.task_id))


def test_an_old_key_is_refused_later_and_erased_from_the_file(setting: Setting) -> None:
    running = setting.running()
    ((number, private),) = setting.store.tasks()[0].keys.items()
    setting.end_of(1)
    old = running.published
    after = setting.collector.rotate(running)  # in period 2: reports of 1, 2 and 3 still open
    fleet = Fleet(running, len(VALUES))
    for period in range(1, 5):
        setting.end_of(period)
        messages = fleet.messages(VALUES)
        stale_view = Published(old.spec, old.keys, old.endpoint)
        before, running.published = running.published, stale_view
        body = batch(running, messages, key_id=number)
        running.published = before
        receipt = setting.collector.take(running, body)
        if period <= 3:
            assert receipt.accepted == len(messages)
        else:
            assert {why for _, why in receipt.refused} == {"unknown_key"}
        setting.clock.now += 5
        setting.collector.close_due()
    assert set(running.keys) == {after}
    setting.store.close()
    files = list(setting.path.parent.glob("collector.db*"))
    assert all(private not in path.read_bytes() for path in files)
    setting.open()
    assert set(setting.store.tasks()[0].keys) == {after}


def test_a_task_without_seals_has_no_key_to_renew(setting: Setting) -> None:
    with pytest.raises(ConfigurationError, match="not sealed"):
        setting.collector.rotate(setting.running(sealed=False))


class Line:
    """Between one device and a collector of the same process."""

    def __init__(self, setting: Setting, running: RunningTask) -> None:
        self.setting, self.running = setting, running
        self.keys: list[int] = []
        self.fetched = 0

    def fetch(self, url: str) -> bytes:
        assert url == f"http://here/v1/tasks/{self.running.name}"
        self.fetched += 1
        return self.running.published.encode()

    def send(self, url: str, body: bytes) -> Delivery:
        assert url == self.running.published.endpoint
        self.keys.append(Batch.head(body)[1])
        receipt = self.setting.collector.take(self.running, body)
        return Delivery(dict(receipt.refused), receipt.key_id)


def test_a_device_picks_the_new_key_up_and_says_nothing_twice(setting: Setting) -> None:
    values = {"kind": "category", "items": ["home", "work"]}
    every = catalog.task(TASK_FIELDS | {"values": values, "mix": {"1": 1.0}})
    running = setting.collector.publish(every, START, grace=5)
    line = Line(setting, running)
    device = Device.open(":memory:", Limits(2.0), line, setting.clock)
    device.join(f"http://here/v1/tasks/{running.name}")
    line.fetched, before = 0, running.published.key_id
    for period in range(1, 5):
        setting.clock.now = START + (period - 1) * 10.0 + 2
        device.observe("home")
        setting.clock.now = START + period * 10.0 + 1
        if period == 2:
            setting.collector.rotate(running)
        assert device.flush(force=True).refused == 0
        setting.clock.now += 4.5
        setting.collector.close_due()
    # The report of period 2 was sealed before the device could know.
    after = running.published.key_id
    assert line.keys == [before, before, after, after]
    assert line.fetched == 1
    assert running.participation() == {1: 1, 2: 1, 3: 1, 4: 1}
    assert device.left == 0.0


def test_a_store_from_before_keys_could_be_renewed_still_opens(tmp_path: Path) -> None:
    setting = Setting(tmp_path / "collector.db")
    running = setting.running()
    (task,) = setting.store.tasks()
    setting.store.close()
    db = sqlite3.connect(tmp_path / "before.db", isolation_level=None)
    for step in STEPS[:2]:
        db.executescript(step)
    db.execute("INSERT INTO tasks VALUES (?, ?, 1)", (task.task_id, task.published))
    db.execute("INSERT INTO keys VALUES (?, ?, ?)", (task.task_id, *next(iter(task.keys.items()))))
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute("PRAGMA user_version = 2")
    db.close()
    store = SQLiteStore(tmp_path / "before.db")
    assert set(store.tasks()[0].keys) == set(running.keys)
    assert store.tasks()[0].until == {}
    assert store.tasks()[0].task_id == running.task_id
    store.close()
