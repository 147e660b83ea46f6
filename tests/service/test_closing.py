"""Periods close when they may, one task does not stop another, and collectors share a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.service.asking import asking
from tests.service.fleets import LISTENING, Fleet

from sfumato.errors import InputError
from sfumato.service import Collector, RunningTask, closing
from sfumato.store import SQLiteStore, Store
from sfumato.store.key_wrapping import KeyWrapping
from sfumato.store.store_addresses import DatabaseAway
from sfumato.wire.task import Task

START, GRACE = 1_000_000, 5
VALUES = ["home"] * 30 + ["work"] * 20 + ["road"] * 10


class Pair:
    """Two collectors with one store and one clock."""

    def __init__(self, folder: Path, text: Task = LISTENING) -> None:
        self.now = START + 0.5
        self.stores = [SQLiteStore(folder / "collector.db", claimed=True) for _ in range(2)]
        self.one, self.other = (
            Collector(store, "http://here", lambda: self.now) for store in self.stores
        )
        self.running = self.one.publish(text, START, grace=GRACE)

    @property
    def same(self) -> RunningTask:
        """The task as the other collector has it."""
        return self.other.running_task(self.running.name)

    def end_of(self, period: int, more: float = 1.0) -> None:
        self.now = START + 10.0 * period + more


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    made = Pair(tmp_path)
    yield made
    for store in made.stores:
        store.close()


def test_a_task_is_known_to_others_at_once(pair: Pair) -> None:
    assert pair.same.published == pair.running.published


def test_copies_through_two_collectors_count_once(pair: Pair) -> None:
    same, fleet = pair.same, Fleet(pair.running, len(VALUES))
    pair.end_of(1)
    body = fleet.body(VALUES)
    n = pair.one.take(pair.running, body).accepted
    assert pair.other.take(same, body).accepted == n  # neither knows what the other has counted
    assert pair.one.take(pair.running, body).repeated == n
    pair.end_of(1, GRACE)
    ((closed, release),) = pair.other.close_due()
    assert (closed, release.period, release.n) == (same, 1, n)
    late = pair.one.take(pair.running, body)  # which does not know yet that it is late
    assert (late.accepted, late.repeated, late.refused) == (0, n, [])
    ((closed, followed),) = pair.one.close_due()
    assert (closed, followed.n) == (pair.running, n)
    assert (followed.values == release.values).all()
    assert pair.running.driver.ends[0][0].tolist() == same.driver.ends[0][0].tolist()
    assert pair.one.ids_in_memory == pair.other.ids_in_memory == 0
    again = pair.other.take(same, body)
    assert (again.accepted, again.repeated) == (0, n)


def test_new_reports_of_a_period_that_another_has_closed_are_stale(pair: Pair) -> None:
    same, fleet = pair.same, Fleet(pair.running, len(VALUES))
    pair.end_of(1, GRACE)
    pair.other.close_due()
    receipt = pair.one.take(pair.running, fleet.body(VALUES))
    assert {why for _, why in receipt.refused} == {"stale"}
    assert receipt.accepted == receipt.repeated == 0
    assert same.participation() == {}


def test_a_key_that_another_has_renewed_is_known(pair: Pair) -> None:
    same, fleet = pair.same, Fleet(pair.running, len(VALUES))
    pair.end_of(1)
    pair.one.rotate(pair.running)
    receipt = pair.other.take(same, fleet.body(VALUES))  # sealed to the new key
    assert receipt.refused == []
    assert receipt.accepted > 0


def test_only_one_closes_at_a_time(pair: Pair) -> None:
    pair.end_of(1, GRACE)
    with pair.stores[0].closing() as ours:
        assert ours
        assert pair.other.close_due() == []
    assert len(pair.other.close_due()) == 1


def test_nothing_closes_before_uploads_have_been_possible_for_a_grace(pair: Pair) -> None:
    pair.end_of(3, GRACE)
    assert pair.one.close_due(open_for=GRACE - 0.1) == []
    assert len(pair.one.close_due(open_for=GRACE)) == 3


def test_a_task_that_cannot_close_stops_no_other(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    second = pair.one.publish(LISTENING, START, grace=GRACE + 1)
    pair.end_of(1, GRACE + 1)

    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("a task with a fault")

    with monkeypatch.context() as patch:
        patch.setattr(pair.running.driver, "close_round", broken)
        assert [running for running, _ in pair.one.close_due()] == [second]
        written = capsys.readouterr().out
        assert "period does not close" in written
        assert pair.running.name in written
        assert "a task with a fault" in written
    assert [running for running, _ in pair.one.close_due()] == [pair.running]


class Broken:
    """A store that fails from one of its calls on, until it has failed some times."""

    def __init__(self, store: Store, after: int, times: int) -> None:
        self._store, self._left, self._times = store, after, times

    @property
    def has_failed(self) -> bool:
        return self._times == 0

    def __getattr__(self, name: str) -> Any:
        there = getattr(self._store, name)
        if not callable(there) or self.has_failed:
            return there

        def called(*given: Any, **named: Any) -> Any:
            if self._left:
                self._left -= 1
                return there(*given, **named)
            self._times -= 1
            raise DatabaseAway("the database has broken off.")

        return called


@pytest.mark.parametrize("times", [1, 2, 3])
@pytest.mark.parametrize("text", [LISTENING, asking()], ids=["listening", "asking"])
def test_a_store_that_is_away_at_any_moment_of_a_close_loses_no_period(
    tmp_path: Path, text: Task, times: int
) -> None:
    after = 0
    while True:
        (tmp_path / str(after)).mkdir()
        pair = Pair(tmp_path / str(after), text)
        for period in (1, 2):
            pair.end_of(period, GRACE)
            pair.one.close_due()
        driver = pair.running.driver
        broken: Any = Broken(pair.stores[0], after, times)
        driver._store = broken  # noqa: SLF001
        pair.end_of(3, GRACE)
        for _ in range(40):
            pair.one._closer._failures.clear()  # noqa: SLF001 -- it is tried again at once
            with suppress(DatabaseAway):
                pair.one.close_due()
            assert driver.period >= 3, "devices would be asked about periods that have closed"
        kept = pair.stores[1].releases(pair.running.task_id)
        assert [release.period for release in kept] == [1, 2, 3]
        assert [release.period for release in pair.running.releases] == [1, 2, 3]
        assert (driver.period, len(driver.ends)) == (4, 3)
        pair.other.close_due()
        assert pair.same.closed == 3
        for store in pair.stores:
            store.close()
        if not broken.has_failed:  # all calls of a close have failed once
            break
        after += 1
    assert after > 5


# ---- one task and the others ---------------------------------------------------------------------


def test_a_task_that_is_far_behind_lets_the_others_have_their_turn(pair: Pair) -> None:
    second = pair.one.publish(LISTENING, START, grace=GRACE + 1)
    pair.end_of(3, GRACE + 1)
    closed = [running for _ in range(6) for running, _ in pair.one.close_due(patience=0)]
    assert closed == [pair.running, second] * 3


def test_what_makes_no_sense_of_one_task_stops_no_other(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = pair.one.publish(LISTENING, START, grace=GRACE + 1)
    strange = pair.one.publish(LISTENING, START, grace=GRACE + 2)
    take_over = pair.other.desk.take_over

    def taken_over(stored: Any) -> RunningTask:
        if stored.task_id == strange.task_id:
            raise InputError("another secret has wrapped its key.")
        return take_over(stored)

    monkeypatch.setattr(pair.other.desk, "take_over", taken_over)
    pair.end_of(1, GRACE + 2)
    closed = {running.name for running, _ in pair.other.close_due()}
    assert closed == {pair.running.name, second.name}
    monkeypatch.undo()
    pair.other._closer._failures.clear()  # noqa: SLF001 -- it is tried again at once
    assert [running.name for running, _ in pair.other.close_due()] == [strange.name]


def test_a_task_that_is_published_while_others_are_looked_at_stays(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    versions = pair.stores[0].versions
    published: list[RunningTask] = []

    def read() -> dict[bytes, int]:
        before = versions()
        published.append(pair.one.publish(LISTENING, START, grace=GRACE + 7))
        return before

    monkeypatch.setattr(pair.stores[0], "versions", read)
    pair.one._closer.follow()  # noqa: SLF001
    monkeypatch.undo()
    assert published[0].task_id in pair.one.running_tasks
    pair.end_of(1)
    fleet = Fleet(published[0], len(VALUES))
    n = pair.one.take(published[0], fleet.body(VALUES)).accepted
    assert sum(published[0].participation().values()) == n > 0


def test_a_task_has_its_keys_at_every_moment_of_a_renewal(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [dict(pair.running.keys)]
    unwrap = KeyWrapping.unwrap

    def unwrapped(*given: Any) -> bytes:
        known.append(dict(pair.running.keys))
        return unwrap(*given)

    monkeypatch.setattr(KeyWrapping, "unwrap", unwrapped)
    pair.one.desk.look_again(pair.running.task_id)
    assert len(known) > 1
    assert all(keys.keys() == known[0].keys() for keys in known)


def test_a_deletion_whose_end_was_not_heard_of_leaves_nothing_in_memory(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.end_of(1)
    fleet = Fleet(pair.running, len(VALUES))
    assert pair.one.take(pair.running, fleet.body(VALUES)).accepted
    delete = pair.stores[0].delete_task

    def deleted(task_id: bytes) -> None:
        delete(task_id)
        raise DatabaseAway("the database has broken off.")

    monkeypatch.setattr(pair.stores[0], "delete_task", deleted)
    with pytest.raises(DatabaseAway):
        pair.one.delete(pair.running)
    assert pair.one.ids_in_memory == 0
    assert not pair.stores[0]._own  # noqa: SLF001
    assert not pair.one.running_tasks


# ---- what tasks have lost ------------------------------------------------------------------------


def _lost(pair: Pair) -> bytes:
    """Delete a task with reports, without erasing them; return the task's id."""
    pair.end_of(1)
    fleet = Fleet(pair.running, len(VALUES))
    assert pair.one.take(pair.running, fleet.body(VALUES)).accepted
    pair.one.close_due()
    pair.one.delete(pair.running)
    assert pair.stores[1].left() == [pair.running.task_id]
    return pair.running.task_id


def test_a_collector_that_starts_erases_what_a_killed_one_has_left(pair: Pair) -> None:
    task_id = _lost(pair)
    pair.one.close_due()  # it may still be at it, elsewhere
    assert pair.stores[1].left() == [task_id]
    started = Collector(pair.stores[1], "http://here", lambda: pair.now)
    started.close_due()
    assert pair.stores[0].left() == []
    assert not dict(pair.stores[0].tallies(task_id))


def test_a_collector_that_runs_erases_it_after_a_while(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.other.close_due()
    monkeypatch.setattr(closing, "OTHERS", 0.0)
    _lost(pair)
    pair.other.close_due()  # it learns of the deletion, and nobody erases
    assert pair.stores[0].left() == []


def test_a_store_that_cannot_erase_now_is_asked_again(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    task_id = _lost(pair)
    started = Collector(pair.stores[1], "http://here", lambda: pair.now)
    erase, calls = pair.stores[1].erase_left, list[float]()

    def erased(of: bytes, patience: float) -> bool:
        calls.append(patience)
        if len(calls) == 1:
            raise OSError("disk")
        return len(calls) > 2 and erase(of, patience)

    monkeypatch.setattr(pair.stores[1], "erase_left", erased)
    monkeypatch.setattr(closing, "OTHERS", 0.0)
    for count in (1, 2, 3):
        assert pair.stores[0].left() == [task_id]
        started.close_due(patience=0.25)
        assert len(calls) == count
    assert max(calls) <= 0.25
    assert pair.stores[0].left() == []
    started.close_due()
    assert len(calls) == 3


def test_what_was_gathered_of_odd_reports_does_not_change_while_it_is_read(pair: Pair) -> None:
    odd: Any = ("more than honest devices send",)
    gathered = []
    for period in (1, 2):
        pair.end_of(period, GRACE)
        pair.one.close_due()
        pair.running.driver.suspicions[period - 1] = odd
        gathered.append(pair.running.suspicions())
    assert gathered == [{1: odd}, {1: odd, 2: odd}]
    assert pair.running.suspicions() is not gathered[0]


def test_who_asks_for_a_task_while_it_is_deleted_does_not_bring_it_back(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = pair.stores[0].delete_task

    def deleted(task_id: bytes) -> None:
        assert (
            pair.one.running_task(task_id.hex()).task_id == task_id
        )  # as for a request of that moment
        delete(task_id)

    monkeypatch.setattr(pair.stores[0], "delete_task", deleted)
    pair.one.delete(pair.running)
    with pytest.raises(InputError):
        pair.one.known_task(pair.running.name)
