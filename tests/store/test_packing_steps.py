"""A large period is packed in many short transactions, and each of its reports is there once.

Between any two of them others write, a packer may be killed, and readers look at the log.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from tests.store.sharing import SharedDatabase, SharedFile, Sharing
from tests.store.steps import Killed, after_each, killed_after
from tests.store.stores import TASK, Reports, count, filled, reports

from sfumato.errors import MismatchError
from sfumato.store import LogRow, Release, Store
from sfumato.store.postgres_log import PostgresLog
from sfumato.store.report_tables import ReportTables

BATCHES, SIZE = 6, 100
pytestmark = pytest.mark.usefixtures("short_steps")


def _close(store: Store, period: int) -> Reports:
    """Seal, settle and release a period with some batches; return its reports."""
    ids, contents = reports(period, BATCHES * SIZE)
    for first in range(0, BATCHES * SIZE, SIZE):
        part = slice(16 * first, 16 * (first + SIZE)), slice(first, first + SIZE)
        key_id = 1 + first // SIZE % 2
        store.commit([filled(period, ids[part[0]], contents[part[1]], key_id=key_id)])
    store.end_round(TASK, period, 0)
    assert store.settle(TASK, period, count) == 0
    store.close_period(TASK, Release(period, 0, np.zeros(1), np.zeros(1)))
    return ids, contents


def _outside(sharing: Sharing, store: ReportTables, after: int = 0) -> list[LogRow]:
    """Return the rows of the log as engines read them, which do so in two ways."""
    rows = list(store.log(TASK, after))
    if isinstance(sharing, SharedDatabase):
        with PostgresLog(sharing.server.dsn, TASK) as log:
            assert log.last() == max([after, *[row.sequence for row in rows]])
            assert list(log.rows(after + 1, log.last())) == rows
    return rows


def test_others_write_between_the_steps_of_a_packing(sharing: Sharing) -> None:
    store, other = sharing.store, sharing.another()
    _close(store, 1)
    rng = np.random.default_rng(1)
    written: list[bool] = []
    patch = after_each(
        store, lambda: written.extend(other.commit([filled(2, rng.bytes(16), b"\1")]))
    )
    store.pack(TASK, 1)
    patch.undo()
    assert len(written) >= BATCHES + 5
    assert all(written)
    assert store.participation(TASK) == {1: BATCHES * SIZE, 2: len(written)}
    assert dict(store.recount(TASK, count)) == dict(store.tallies(TASK))


def test_a_packing_that_waskilled_after_any_step_is_gone_on_with(sharing: Sharing) -> None:
    other = sharing.another()
    sent: dict[int, Reports] = {}
    for period in range(1, 40):
        packer = sharing.another()
        before = list(other.log(TASK))
        sent[period] = _close(packer, period)
        patch = after_each(packer, partial(killed_after, period, []))
        try:
            packer.pack(TASK, period)
        except Killed:
            patch.undo()
        else:
            break
        _is_whole(other, sent)
        assert list(other.log(TASK))[: len(before)] == before
        other.pack(TASK, period)
        _is_whole(other, sent)
        assert other.unpacked(TASK) == []
        assert not list(other.ids(TASK, period))
        assert _outside(sharing, other)[: len(before)] == before
    patch.undo()
    assert period > BATCHES + 9
    rows = list(other.log(TASK))
    assert [row.sequence for row in rows] == list(range(1, len(rows) + 1))
    if isinstance(sharing, SharedFile):
        left = b"".join(path.read_bytes() for path in sharing.folder.glob("collector.db*"))
        for ids, _ in sent.values():
            assert not any(ids[i : i + 16] in left for i in range(0, len(ids), 16 * 7))


def _is_whole(store: Store, sent: dict[int, Reports]) -> None:
    """Say that a store has each report once, wherever it is."""
    n = BATCHES * SIZE
    assert store.participation(TASK) == dict.fromkeys(sent, n)
    assert dict(store.recount(TASK, count)) == dict(store.tallies(TASK))
    last = max(sent)
    ids, contents = sent[last]
    assert Counter(b"".join(store.contents(TASK, last))) == Counter(contents)
    assert store.uncounted(TASK) == dict.fromkeys(sent, n)
    assert store.settle(TASK, last, count) == 0
    late = [ids[:160], bytes(range(160))]
    assert [store.counted(TASK, last, each).all() for each in late] == [True, False]
    logged = Counter(b"".join(row.contents for row in store.log(TASK) if row.period == last))
    assert logged in (Counter(), Counter(contents))


@pytest.mark.parametrize("erased", [False, True])
def test_readers_see_all_of_a_period_in_the_log_or_nothing(
    sharing: Sharing, *, erased: bool
) -> None:
    store, other = sharing.store, sharing.another()
    before = 0
    if erased:
        _close(store, 1)
        store.pack(TASK, 1)
        before = max(row.sequence for row in store.log(TASK))
        store.erase_contents(TASK, 1)
    _, contents = _close(store, 2)
    seen: list[int] = []

    def look() -> None:
        rows = _outside(sharing, other, before)
        seen.append(sum(row.n for row in rows))
        assert Counter(b"".join(row.contents for row in rows)) in (Counter(), Counter(contents))
        assert not rows or not list(other.ids(TASK, 2))
        assert (other.packed(TASK) == 2) == (not other.unpacked(TASK))

    patch = after_each(store, look)
    store.pack(TASK, 2)
    patch.undo()
    n = BATCHES * SIZE
    assert seen == sorted(seen)
    assert (seen.count(0) >= 5, seen.count(n) >= BATCHES, set(seen)) == (True, True, {0, n})
    assert other.packed(TASK) == 2


def test_a_packer_that_another_one_has_overtaken_stops(sharing: Sharing) -> None:
    store, other = sharing.store, sharing.another()
    sent = {period: _close(store, period) for period in (1, 2)}

    def overtake(period: int, steps: list[int]) -> None:
        steps.append(1)
        if len(steps) == 4:
            patch = after_each(other, partial(killed_after, 3, []))
            with pytest.raises(Killed):
                other.pack(TASK, period)
            patch.undo()

    for period in (1, 2):  # of the same period, and of another one
        patch = after_each(store, partial(overtake, period, []))
        with pytest.raises(MismatchError, match="another process packs period 1"):
            store.pack(TASK, 1)
        patch.undo()
        assert not list(other.log(TASK))
    for period in (1, 2):
        other.pack(TASK, period)
    _is_whole(store, sent)
    assert sum(row.n for row in _outside(sharing, store)) == 2 * BATCHES * SIZE


def test_a_small_period_is_packed_in_one_step_unless_a_packer_was_killed(sharing: Sharing) -> None:
    store, other = sharing.store, sharing.another()
    _close(store, 1)
    patch = after_each(store, partial(killed_after, 4, []))
    with pytest.raises(Killed):
        store.pack(TASK, 1)
    patch.undo()
    for period in (2, 3):
        store.commit([filled(period, *reports(period, 1))])
        store.end_round(TASK, period, 0)
        steps: list[int] = []
        patch = after_each(other, partial(steps.append, 1))
        other.pack(TASK, period)
        patch.undo()
        assert (len(steps) == 2) == (period == 3)  # and the files' log is emptied
    store.pack(TASK, 1)
    assert [row.period for row in _outside(sharing, other)] == [2, 3, 1, 1, 1, 1, 1, 1]
    assert [row.sequence for row in _outside(sharing, other)] == list(range(1, 9))


def test_copies_are_dropped_step_by_step_and_by_whoever_goes_on(sharing: Sharing) -> None:
    store, other = sharing.store, sharing.another()
    ids, contents = reports(1, BATCHES * SIZE)
    for writer in (store, other):
        for first in range(0, BATCHES * SIZE, SIZE):
            own = filled(
                *(1, ids[16 * first : 16 * (first + SIZE)], contents[first : first + SIZE])
            )
            writer.commit([own])
    store.end_round(TASK, 1, 0)
    patch = after_each(store, partial(killed_after, 2, []))
    with pytest.raises(Killed):
        store.settle(TASK, 1, count)
    patch.undo()
    left = store.participation(TASK)[1] - BATCHES * SIZE
    assert 0 < left < BATCHES * SIZE
    assert dict(store.recount(TASK, count)) == dict(store.tallies(TASK))
    between: list[int] = []
    patch = after_each(other, lambda: between.append(store.settle(TASK, 1, count)))
    assert other.settle(TASK, 1, count) + sum(between) == left
    patch.undo()
    assert between[0]  # another process has done the rest meanwhile
    assert dict(store.tallies(TASK)) == dict(count(1, contents))
    assert b"".join(sorted(other.ids(TASK, 1))) == b"".join(sorted(store.ids(TASK, 1)))
    assert Counter(b"".join(other.contents(TASK, 1))) == Counter(contents)


def test_contents_are_erased_step_by_step_and_numbers_do_not_come_again(sharing: Sharing) -> None:
    store, other = sharing.store, sharing.another()
    for period in (1, 2):
        _close(store, period)
        store.pack(TASK, period)
    last = max(row.sequence for row in _outside(sharing, other))
    lasts: list[int] = []
    seen: list[tuple[int, int]] = []

    def look() -> None:
        rest = "WHERE task_id = ? AND n > 0 ORDER BY sequence LIMIT 1"
        rows = other._read("log", "sequence", rest, TASK)  # noqa: SLF001
        lasts.append(rows[0][0] if rows else last + 1)
        logged = Counter(row.period for row in other.log(TASK) for _ in range(row.n))
        assert set(logged.values()) <= {BATCHES * SIZE}  # all of a period or nothing
        assert {len(b"".join(other.contents(TASK, 1))), logged[1]} in ({0}, {BATCHES * SIZE})
        seen.append((logged[1], logged[2]))
        if len(lasts) == 3:
            raise Killed

    patch = after_each(store, look)
    with pytest.raises(Killed):
        store.erase_contents(TASK, 2)
    patch.undo()
    assert lasts == sorted(set(lasts))
    assert 1 < lasts[0] < last
    assert seen[0] == (0, BATCHES * SIZE)
    other.erase_contents(TASK, 2)
    assert not list(store.log(TASK))
    _close(store, 3)
    other.pack(TASK, 3)
    assert next(store.log(TASK)).sequence == last + 1


@pytest.mark.parametrize("life", ["delete", "archive"])
def test_nothing_is_left_of_a_task_that_goes_while_it_is_packed(
    sharing: Sharing, life: str
) -> None:
    packer, other = sharing.store, sharing.another()
    for after in range(1, 40):
        task_id = after.to_bytes(32, "big")
        packer.add_task(task_id, b"{}", {}, public=False)
        ids, contents = reports(after, BATCHES * SIZE)
        for first in range(0, BATCHES * SIZE, SIZE):
            part = filled(1, ids[16 * first : 16 * (first + SIZE)], contents[first : first + SIZE])
            packer.commit([replace(part, task_id=task_id)] * 2)
        packer.end_round(task_id, 1, 0)
        steps: list[int] = []
        patch = after_each(packer, partial(_gone_after, after, steps, other, task_id, life))
        with suppress(MismatchError):
            packer.settle(task_id, 1, count)
            packer.pack(task_id, 1)
        patch.undo()
        if len(steps) < after:
            break
        for table in ("batches", "log", "counted", *(["tallies", "periods"] * (life == "delete"))):
            assert not other._read(table, "period", "WHERE task_id = ?", task_id), table  # noqa: SLF001
    assert after > BATCHES + 9


def _gone_after(most: int, steps: list[int], other: Store, task_id: bytes, life: str) -> None:
    steps.append(1)
    if len(steps) == most:
        (other.delete_task if life == "delete" else other.archive_task)(task_id)
        other.erase_left(task_id)
