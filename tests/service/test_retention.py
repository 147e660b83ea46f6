"""What is kept of reports, and for how long; what is erased is gone from the files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.service.fleets import LISTENING, Fleet
from tests.service.test_collector import START, VALUES, Setting

from sfumato.core.tally import Place, Tally
from sfumato.service import RunningTask
from sfumato.service.exporting import exported
from sfumato.store import Filled, Release, SQLiteStore
from sfumato.wire.published import Published


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    opened = Setting(tmp_path / "collector.db")
    yield opened
    opened.store.close()


def _live(setting: Setting, running: RunningTask, fleet: Fleet, period: int) -> list[bytes]:
    """Let a period pass; return the ids of its reports."""
    setting.end_of(period)
    receipt = setting.collector.take(running, fleet.body(VALUES))
    assert receipt.accepted
    ids = b"".join(setting.store.ids(running.task_id, period))
    setting.clock.now += 5
    setting.collector.close_due()
    return [ids[at : at + 16] for at in range(0, len(ids), 16)]


def _bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("collector.db*"))


def test_ids_are_gone_from_the_files_when_a_period_has_settled(
    setting: Setting, tmp_path: Path
) -> None:
    running = setting.running()
    fleet = Fleet(running, len(VALUES))
    for period in (1, 2, 3):
        ids = _live(setting, running, fleet, period)
        assert len(ids) > 4
        left = _bytes_of(tmp_path)
        assert not any(name in left for name in ids)


def test_contents_are_erased_after_what_a_task_keeps(setting: Setting, tmp_path: Path) -> None:
    task = replace(LISTENING, keep=15)
    running = setting.collector.publish(task, START, grace=5, sealed=False)
    fleet, size = Fleet(running, len(VALUES)), running.layout.content_dtype.itemsize
    rows: dict[int, bytes] = {}
    for period in (1, 2, 3, 4):
        _live(setting, running, fleet, period)
        rows[period] = b"".join(setting.store.contents(running.task_id, period))
        assert len(rows[period]) > 4 * size
    left = _bytes_of(tmp_path)
    kept = [period for period in rows if rows[period] in left]
    assert kept == [3, 4]  # period 2 closed 20 seconds ago, period 3 ten
    assert [row.period for row in exported(setting.store, running)] == [3, 4]
    assert set(running.participation()) == {1, 2, 3, 4}
    assert running.history().mean(1).n
    before = [row.sequence for row in setting.store.log(running.task_id)]
    setting.clock.now = START + 1000.0
    setting.collector.close_due()
    assert list(setting.store.log(running.task_id)) == []
    assert not any(contents in _bytes_of(tmp_path) for contents in rows.values())
    assert before


def test_numbers_of_erased_rows_do_not_come_again(setting: Setting) -> None:
    task = replace(LISTENING, keep=3)
    running = setting.collector.publish(task, START, grace=5, sealed=False)
    fleet = Fleet(running, len(VALUES))
    numbers: list[int] = []
    for period in (1, 2, 3, 4):
        _live(setting, running, fleet, period)
        numbers += [row.sequence for row in setting.store.log(running.task_id)]
        setting.clock.now += 3
        setting.collector.close_due()
        assert list(setting.store.log(running.task_id)) == []
        setting.reopen()
        (running,) = setting.collector.running_tasks.values()
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 4


def test_a_task_that_keeps_for_ever_erases_nothing(setting: Setting) -> None:
    running = setting.running(sealed=False)
    _live(setting, running, Fleet(running, len(VALUES)), 1)
    setting.clock.now = START + 100_000.0
    setting.collector.close_due()
    assert b"".join(setting.store.contents(running.task_id, 1))


def test_a_task_that_says_nothing_keeps_nothing_of_closed_periods(
    setting: Setting, tmp_path: Path
) -> None:
    task = replace(LISTENING, keep=None)
    running = setting.collector.publish(task, START, grace=5, sealed=False)
    assert running.published.spec["keep"] == 0
    fleet = Fleet(running, len(VALUES))
    setting.end_of(1)
    assert setting.collector.take(running, fleet.body(VALUES)).accepted
    contents = b"".join(setting.store.contents(running.task_id, 1))
    assert contents in _bytes_of(tmp_path)
    setting.clock.now += 5
    setting.collector.close_due()
    assert contents not in _bytes_of(tmp_path)
    assert list(setting.store.log(running.task_id)) == []
    assert running.history().mean(1, decoder="smoothed").n == running.participation()[1]


def test_a_task_of_before_keeps_what_it_promised(setting: Setting) -> None:
    running = setting.running()
    spec = {name: each for name, each in running.published.spec.items() if name != "keep"}
    before = Published.of(spec | {"title": "before", "sealed": False}, {})
    setting.store.add_task(before.task_id, before.encode(), {}, public=True)
    setting.reopen()
    running = setting.collector.running_task(before.task_id.hex())
    _live(setting, running, Fleet(running, len(VALUES)), 1)
    setting.clock.now = START + 100_000.0
    setting.collector.close_due()
    assert b"".join(setting.store.contents(running.task_id, 1))


def test_nothing_is_kept_of_a_period_that_was_closed_before_a_kill(setting: Setting) -> None:
    task = replace(LISTENING, keep=None)
    running = setting.collector.publish(task, START, grace=5, sealed=False)
    setting.end_of(1)
    assert setting.collector.take(running, Fleet(running, len(VALUES)).body(VALUES)).accepted
    setting.store.end_round(running.task_id, 1, 0)
    nothing = np.zeros(3)
    setting.store.close_period(running.task_id, Release(1, 4, nothing, nothing))
    setting.reopen()
    setting.collector.close_due()
    assert setting.store.unpacked(running.task_id) == []
    assert not b"".join(setting.store.contents(running.task_id, 1))


def _lived_long(folder: Path, *, keeps: bool) -> list[int]:
    """Return the size of a store after each of 40 periods with 5,000 reports."""
    store, sizes, task_id, n = SQLiteStore(folder / "long.db"), [], bytes(32), 5_000
    rng = np.random.default_rng(7)
    store.add_task(task_id, b"{}", {}, public=True)
    tally = Tally(n, np.array([n, 0]))
    for period in range(1, 41):
        ids, contents = rng.bytes(16 * n), rng.bytes(8 * n)
        counts = {Place(1, period, 0): tally}
        store.commit([Filled(task_id, 0, period, n, ids, contents, counts)])
        store.end_round(task_id, period, 0)
        store.settle(task_id, period, lambda *_: {})
        nothing = np.zeros(2)
        store.close_period(task_id, Release(period, n * period, nothing, nothing))
        store.pack(task_id, period, keeps=keeps)
        sizes.append(sum(path.stat().st_size for path in folder.glob("long.db*")))
    store.close()
    return sizes


def test_the_store_of_a_long_task_stays_as_small_as_it_is(tmp_path: Path) -> None:
    sizes = _lived_long(tmp_path, keeps=False)
    assert sizes[-1] < 1.05 * sizes[3]


def test_a_store_that_keeps_contents_grows(tmp_path: Path) -> None:
    sizes = _lived_long(tmp_path, keeps=True)
    assert sizes[-1] > 1.5 * sizes[3]
