"""Periods close when they may, one task does not stop another, and collectors share a store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.service.asking import asking
from tests.service.fleets import LISTENING, Fleet

from sfumato.service import Collector, RunningTask
from sfumato.store import SQLiteStore, Store
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
