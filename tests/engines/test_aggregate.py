"""An engine counts what the collector has settled, for any order and repetition of reports."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.cli.running import answer
from tests.service.fleets import batch
from tests.vectors import stores
from tests.vectors.keeping import database
from tests.vectors.machines import Asking, key_of

from sfumato import catalog, engines
from sfumato.engines import Row
from sfumato.engines.rows import Seen
from sfumato.errors import InputError, MismatchError, ReportError
from sfumato.randomness import seeded
from sfumato.service import Collector, RunningTask
from sfumato.store import SQLiteStore
from sfumato.wire.reports import report_id

OTHERS = {
    "topl": """
stream = "topl"
title = "amounts"
epsilon = 2
periods = 6
period = "10 seconds"
values = {kind = "number", low = 0, high = 100}
keep = "for ever"
""",
    "tiers": """
stream = "tiers"
title = "two promises"
epsilon = 4
window = 2
devices = 10
tiers = [{window = 3, epsilon = 2, devices = 10}]
method = "lpu"
periods = 6
period = "10 seconds"
values = {kind = "number", low = 0, high = 100}
keep = "for ever"
""",
}


def rows_of(store: SQLiteStore, running: RunningTask) -> list[Row]:
    """Return everything that a store has of a task, numbered as it was written."""
    parts = [
        (period, contents)
        for period in range(1, running.periods + 1)
        for contents in store.contents(running.task_id, period)
    ]
    return [Row(number, running.task_id, *part) for number, part in enumerate(parts)]


def _order(count: int) -> list[int]:
    """Return so many numbers in an order that tells nothing."""
    order: list[int] = np.argsort(seeded(1).words(count)).tolist()
    return order


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[stores.Scene]:
    path = database(tmp_path / "collector.db", stores.kept_store())
    opened = stores.Scene(path, stores.AS_OF)
    yield opened
    opened.close()


@pytest.mark.parametrize("name", list(stores.TEXTS))
def test_rows_in_any_order_and_again_add_up_to_what_was_settled(
    scene: stores.Scene, name: str
) -> None:
    running = scene.running_tasks[name]
    rows, settled = (
        rows_of(scene.store, running),
        dict(scene.store.tallies(running.task_id)),
    )
    assert len(rows) > 1
    mixed = ([*rows, *rows][place] for place in _order(2 * len(rows)))
    counted = engines.aggregate(running.published, mixed, running.driver.asked)
    assert dict(counted) == settled
    less = engines.aggregate(running.published, rows[1:], running.driver.asked)
    assert dict(less) != settled


def _answered(running: RunningTask, asking: Asking) -> bytes | None:
    """Return what devices answer to the question that is open; None if nobody does."""
    asked = running.driver.question
    assert asked is not None
    ask = running.driver.asked[running.driver._step.place]  # type: ignore[union-attr]  # noqa: SLF001
    reports = [
        (
            report_id(key_of("others", number), running.task_id, asked.period, asked.round),
            asked.period,
            running.layout.content(0, asked.round, payload),
        )
        for number, payload in enumerate(asking.answers(asked, ask))
        if payload is not None
    ]
    return batch(running, reports) if reports else None


@pytest.mark.parametrize("name", list(OTHERS))
def test_streams_that_a_kept_store_does_not_have_add_up_too(tmp_path: Path, name: str) -> None:
    now = [0.0]
    store = SQLiteStore(tmp_path / "collector.db")
    collector = Collector(store, "http://here", lambda: now[0])
    running = collector.publish(catalog.parse(OTHERS[name]), 0, grace=6, sealed=False)
    asking = Asking("others", running.protocol, 20)
    for period in (1, 2, 3):
        asking.see([float(7 * number % 90 + period) for number in range(20)])
        while running.driver.period == period:
            now[0] = running.next_at - 0.5
            if (body := _answered(running, asking)) is not None:
                assert not collector.take(running, body).refused
            now[0] = running.next_at
            collector.close_due()
        asking.step()
    rows, settled = rows_of(store, running), dict(store.tallies(running.task_id))
    assert sum(tally.n for tally in settled.values()) > 20
    counted = engines.aggregate(running.published, [*rows[::-1], *rows], running.driver.asked)
    assert dict(counted) == settled
    store.close()


@pytest.mark.parametrize("name", ["listening", "places"])
def test_an_exported_file_adds_up_to_its_closed_periods(
    scene: stores.Scene, tmp_path: Path, name: str
) -> None:
    running = scene.running_tasks[name]
    settled = {
        place: tally
        for place, tally in scene.store.tallies(running.task_id).items()
        if place.period <= running.closed
    }
    scene.close()
    target = tmp_path / "reports.parquet"
    answer("export", target, "--store", tmp_path / "collector.db", "--task", running.name)
    lake = engines.Lake.open(target)
    assert lake.counter.task_id == running.task_id
    assert dict(engines.aggregate(lake.counter, lake)) == settled
    (tmp_path / "other.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"other.parquet cannot be read: "):
        engines.Lake.open(tmp_path / "other.parquet")
    table = pq.read_table(target)
    for questions, says in ((b"7", "are 7; a list is"), (b"[" * 10_000, "32 deep in one another")):
        asking = table.schema.metadata | {b"sfumato.questions": questions}
        pq.write_table(table.replace_schema_metadata(asking), tmp_path / "other.parquet")
        with pytest.raises(InputError, match=says):
            engines.Lake.open(tmp_path / "other.parquet")


def test_what_is_not_the_tasks_is_refused_in_one_sentence(scene: stores.Scene) -> None:
    running, other = scene.running_tasks["listening"], scene.running_tasks["moves"]
    rows, foreign = rows_of(scene.store, running), rows_of(scene.store, other)
    with pytest.raises(MismatchError, match=f"row 0 is of task {other.name[:12]}; rows of task"):
        engines.aggregate(running.published, [*rows, foreign[0]])
    with pytest.raises(ReportError, match=r"row 1 has \d+ bytes; contents of \d+ bytes each"):
        engines.aggregate(running.published, [Row(1, running.task_id, 1, rows[0].contents[:-1])])
    spoilt = b"\x01\x4d" + rows[0].contents[2:]
    with pytest.raises(ReportError, match=r"contents\[0\] of period 1 is nothing that a device"):
        engines.aggregate(running.published, [Row(1, running.task_id, 1, spoilt)])
    with pytest.raises(MismatchError, match="its questions are expected"):
        engines.aggregate(scene.running_tasks["places"].published, [])


def test_memory_does_not_grow_with_the_number_of_rows(scene: stores.Scene) -> None:
    running = scene.running_tasks["listening"]
    first = rows_of(scene.store, running)[0]

    def most_memory(count: int) -> int:
        rows = (Row(i, first.task_id, first.period, first.contents) for i in range(count))
        tracemalloc.start()
        try:
            engines.aggregate(running.published, rows)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    most_memory(2)
    assert most_memory(600) < 1.1 * most_memory(10) + 20_000


def test_numbers_that_have_come_are_known_whatever_their_order() -> None:
    numbers, seen = _order(300), Seen()
    assert all(seen.add(number) for number in numbers)
    assert not any(seen.add(number) for number in reversed(numbers))
    assert seen.runs == [[0, 300]]


def test_a_report_is_judged_once_on_its_way(
    scene: stores.Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = scene.running_tasks["sealed"]
    form = running.judge._form(next(iter(scene.store.tallies(running.task_id))))  # noqa: SLF001
    assert form is not None
    mechanism = form.valid.__self__  # type: ignore[attr-defined]
    judged: list[int] = []
    usual = type(mechanism).valid

    def valid(self: Any, reports: Any) -> Any:
        judged.append(len(reports))
        return usual(self, reports)

    monkeypatch.setattr(type(mechanism), "valid", valid)
    rows = rows_of(scene.store, running)
    running.judge._forms.clear()  # noqa: SLF001
    n = sum(len(row.contents) for row in rows) // running.layout.content_dtype.itemsize
    engines.aggregate(running.published, rows)
    assert sum(judged) == n
    bad = form.read(running.layout.contents(rows[0].contents)["payload"]).copy()
    bad.view("u1")[:] = 255
    with pytest.raises(ReportError):
        mechanism.tally(bad)
