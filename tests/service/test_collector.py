from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.fleets import LISTENING, Fleet, batch, report

from sfumato import catalog
from sfumato.errors import ReportError
from sfumato.pages.task_page import TaskPage
from sfumato.pages.wanted import Wanted
from sfumato.service import Collector, RunningTask, query_parameters
from sfumato.service.metrics import CollectorMetrics
from sfumato.service.task_subject import TaskSubject
from sfumato.store import SQLiteStore
from sfumato.wire.reports import Batch

START = 1_000_000


class Clock:
    now = float(START)

    def __call__(self) -> float:
        return self.now


class Setting:
    """A collector with a clock of its own that can be opened again."""

    def __init__(self, path: Path) -> None:
        self.path, self.clock = path, Clock()
        self.open()

    def open(self) -> None:
        self.store = SQLiteStore(self.path)
        self.collector = Collector(self.store, "http://here", self.clock)

    def reopen(self) -> None:
        self.store.close()
        self.open()

    def running(self, *, sealed: bool = True) -> RunningTask:
        return self.collector.publish(LISTENING, START, grace=5, sealed=sealed, public=True)

    def end_of(self, period: int) -> None:
        self.clock.now = START + 10.0 * period + 1


@pytest.fixture
def setting(tmp_path: Path) -> Iterator[Setting]:
    made = Setting(tmp_path / "collector.db")
    yield made
    made.store.close()


TASK_FIELDS: dict[str, Any] = {
    "title": "Wide",
    "epsilon": 2.0,
    "periods": 6,
    "period": "10 seconds",
    "changes": 3,
}
VALUES = ["home"] * 30 + ["work"] * 20 + ["road"] * 10


@pytest.mark.parametrize("sealed", [True, False])
def test_reports_count_once_and_tallies_equal_a_recount(setting: Setting, *, sealed: bool) -> None:
    running = setting.running(sealed=sealed)
    fleet = Fleet(running, len(VALUES))
    for period in (1, 2):
        setting.end_of(period)
        messages = fleet.messages(VALUES)
        body = batch(running, messages)
        receipt = setting.collector.take(running, body)
        assert (receipt.accepted, receipt.repeated, receipt.refused) == (len(messages), 0, [])
        again = setting.collector.take(running, body)
        assert (again.accepted, again.repeated, again.refused) == (0, len(messages), [])
        assert running.participation()[period] == len(messages) > 0
    assert dict(setting.store.recount(running.task_id, running.judge.count)) == dict(
        setting.store.tallies(running.task_id)
    )


def test_a_collector_that_was_opened_again_knows_what_it_has(setting: Setting) -> None:
    running = setting.running()
    fleet = Fleet(running, len(VALUES))
    setting.end_of(1)
    body = fleet.body(VALUES)
    accepted = setting.collector.take(running, body).accepted
    setting.reopen()
    again = setting.running()
    assert again is not running
    assert again.published == running.published
    # It has not loaded what it counted before, and finds the copies when the period closes.
    assert setting.collector.take(again, body).accepted == accepted
    setting.clock.now += again.grace
    ((_, release),) = setting.collector.close_due()
    assert release.n == accepted


def test_each_fault_is_refused_with_its_own_reason(setting: Setting) -> None:
    running = setting.running()
    setting.end_of(1)
    setting.clock.now += 20
    fleet = Fleet(running, len(VALUES))
    fleet.messages(VALUES)
    setting.collector.close_due()
    assert running.closed == 2
    fleet.messages(VALUES)
    good = fleet.messages(VALUES)
    name, period, content = good[0]
    span_of_nobody = content[:1] + b"\x99\x00" + content[3:]
    other = setting.collector.publish(LISTENING, START + 10, grace=5)
    assert other.layout == running.layout
    moved = report(running, b"m" * 16, period, content)
    packed = [
        report(running, name, period, content),
        report(running, b"a" * 16, 5, content),
        report(running, b"b" * 16, 2, content),
        report(running, b"c" * 16, 0, content),
        report(running, b"d" * 16, 7, content),
        report(running, b"e" * 16, period, b"\2" + content[1:]),
        report(running, b"f" * 16, period, span_of_nobody),
        report(other, b"g" * 16, period, content),
        b"h" * 16 + moved[16:],
        report(running, b"i" * 16, period, content[:5] + b"\xff" * (len(content) - 5)),
        report(running, name, period, content),
    ]
    reports = np.frombuffer(b"".join(packed), dtype=running.layout.report_dtype)
    body = Batch(running.task_id, running.published.key_id, reports).encode()
    receipt = setting.collector.take(running, body)
    assert (receipt.accepted, receipt.repeated) == (1, 1)
    assert dict(receipt.refused) == {
        1: "future",
        2: "stale",
        3: "invalid",
        4: "invalid",
        5: "malformed",
        6: "invalid",
        7: "unopened",
        8: "unopened",
        9: "invalid",
    }
    whole = Batch(running.task_id, 1, reports[:2])
    assert dict(setting.collector.take(other, whole.encode()).refused) == dict.fromkeys(
        (0, 1), "wrong_task"
    )
    unknown = Batch(running.task_id, 9, reports[:1])
    assert setting.collector.take(running, unknown.encode()).refused == [(0, "unknown_key")]


def test_padding_must_be_zero(setting: Setting) -> None:
    # Differences of 12 items take 3 bytes, and snapshots 2.
    values = {"kind": "category", "items": 12}
    wide = catalog.task(TASK_FIELDS | {"values": values, "mix": {"snapshot": 0.5, "1": 0.5}})
    running = setting.collector.publish(wide, START, sealed=False)
    setting.end_of(1)
    held = list(range(12)) * 5
    messages = Fleet(running, 60).messages(held)
    padded = [message for message in messages if message[2][1:3] == b"\0\0"]
    assert 0 < len(padded) < 60
    assert all(content.endswith(b"\0") for _, _, content in padded)
    changed = [(name, period, content[:-1] + b"\1") for name, period, content in padded]
    refused = setting.collector.take(running, batch(running, changed)).refused
    assert refused == [(place, "invalid") for place in range(len(padded))]
    assert setting.collector.take(running, batch(running, padded)).accepted == len(padded)


def test_bytes_that_are_no_batch_are_refused_as_a_whole(setting: Setting) -> None:
    running = setting.running()
    setting.end_of(1)
    body = Fleet(running, len(VALUES)).body(VALUES)
    for wrong in (b"", b"SFR1", body[:-1], body + b"\0", b"XXXX" + body[4:]):
        with pytest.raises(ReportError):
            setting.collector.take(running, wrong)


def test_a_bucket_that_closes_while_a_batch_waits_refuses_it(setting: Setting) -> None:
    running = setting.running()
    setting.end_of(1)
    entry = setting.collector.receive(running, Fleet(running, len(VALUES)).body(VALUES))
    setting.clock.now += 10
    setting.collector.close_due()
    setting.collector.settle([entry])
    assert entry.receipt.accepted == 0
    assert {reason for _, reason in entry.receipt.refused} == {"stale"}


def test_batches_of_one_group_that_hold_the_same_report_count_it_once(setting: Setting) -> None:
    running = setting.running()
    setting.end_of(1)
    body = Fleet(running, len(VALUES)).body(VALUES)
    entries = [setting.collector.receive(running, body) for _ in range(3)]
    setting.collector.settle(entries)
    counts = [(e.receipt.accepted, e.receipt.repeated) for e in entries]
    n = counts[0][0]
    assert counts == [(n, 0), (0, n), (0, n)]
    assert running.participation() == {1: n}


def test_a_commit_that_fails_counts_nothing_and_can_be_tried_again(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = setting.running()
    setting.end_of(1)
    body = Fleet(running, len(VALUES)).body(VALUES)
    with monkeypatch.context() as broken:
        broken.setattr(setting.store, "commit", lambda _: (_ for _ in ()).throw(OSError("disk")))
        with pytest.raises(OSError, match="disk"):
            setting.collector.take(running, body)
    assert setting.collector.take(running, body).accepted > 0


def test_periods_close_in_order_and_releases_survive(setting: Setting) -> None:
    running = setting.running(sealed=False)
    fleet = Fleet(running, 2000)
    values = (VALUES * 34)[:2000]
    for period in range(1, 7):
        setting.end_of(period)
        setting.collector.take(running, fleet.body(values))
        if period == 4:
            setting.reopen()  # the curator is restored by its tallies
            running = setting.running(sealed=False)
            fleet.running = running
        setting.clock.now += 4.5
        ((_, release),) = setting.collector.close_due()
        assert release.period == period
    assert running.is_over
    online = running.history().curve("home").values
    np.testing.assert_allclose([r.values[0] for r in running.releases], online)
    truth = np.array([values.count(item) / 2000 for item in running.labels])
    last = running.releases[-1]
    # Six standard errors: a false alarm is rarer than one in ten million.
    assert (np.abs(last.values - truth) < 6 * np.sqrt(last.variances)).all()
    assert (np.abs(last.values - truth[::-1]) > 6 * np.sqrt(last.variances)).any()
    before = [r.values.tolist() for r in running.releases]
    setting.reopen()
    assert [r.values.tolist() for r in setting.running(sealed=False).releases] == before


def test_moves_are_collected_and_released_as_well(setting: Setting) -> None:
    values = {"kind": "moves", "items": ["up", "down"]}
    running = setting.collector.publish(
        catalog.task(TASK_FIELDS | {"values": values}), START, grace=5
    )
    fleet = Fleet(running, 200)
    setting.end_of(1)
    receipt = setting.collector.take(running, fleet.body([[1, -1]] * 200))
    assert (receipt.accepted, receipt.refused) == (200, [])
    setting.clock.now += 5
    ((_, release),) = setting.collector.close_due()
    assert (np.abs(release.values - [1, -1]) < 6 * np.sqrt(release.variances)).all()
    assert (np.abs(release.values - [-1, 1]) > 6 * np.sqrt(release.variances)).any()
    asked = query_parameters.answer(running, {"query": "mean", "period": "1", "item": "up"})
    ((one,),) = (asked["answers"],)
    assert asked["question"] == "Mean move in period 1"
    assert one["low"] < 1 < one["high"]
    assert len(query_parameters.answer(running, {"query": "curve", "item": "down"})["answers"]) == 1
    subject = TaskSubject(running, CollectorMetrics(setting.collector))
    text = TaskPage(subject, Wanted(), setting.clock.now).html()
    assert "how much each item moves" in text


def test_a_copy_is_not_acknowledged_if_what_came_beside_it_was_too_late(setting: Setting) -> None:
    running = setting.running(sealed=False)
    setting.end_of(1)
    first, *_ = Fleet(running, 30).messages(["home"] * 30)
    uploads = [setting.collector.admit(running, batch(running, [first])) for _ in range(2)]
    twice = setting.collector.admit(running, batch(running, [first, first]))
    screened = setting.collector.screen([*uploads, twice])
    setting.store.end_round(running.task_id, 1, 0)  # as another process does
    setting.collector.settle(screened)
    told = [(each.receipt.accepted, each.receipt.repeated) for each in (*uploads, twice)]
    assert told == [(0, 0)] * 3
    assert [why for _, why in twice.receipt.refused] == ["stale"] * 2
    assert not sum(running.participation().values())
