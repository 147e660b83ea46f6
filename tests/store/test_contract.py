"""What every store does for collectors that share it; one body of tests for all stores."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest
from tests.store.sharing import SharedFile, Sharing
from tests.store.stores import TASK, count, filled, reports

from sfumato.errors import ConfigurationError, MismatchError
from sfumato.store import Filled, LogRow, Release, Store


def _same(store: Store) -> bool:
    return dict(store.recount(TASK, count)) == dict(store.tallies(TASK))


def _closed(store: Store, period: int) -> int:
    """Close a period; return the number of copies that were dropped."""
    store.end_round(TASK, period, 0)
    dropped = store.settle(TASK, period, count)
    store.pack(TASK, period)
    store.close_period(TASK, Release(period, 0, np.zeros(1), np.zeros(1)))
    return dropped


def test_what_two_writers_counted_counts_once_when_it_settles(sharing: Sharing) -> None:
    first, second = sharing.store, sharing.another()
    ids, contents = reports(1, 300)
    assert first.commit([filled(1, ids, contents)]) == [True]
    assert second.commit([filled(1, ids[:1600], contents[:100])]) == [True]
    assert second.commit([filled(1, *reports(2, 50), key_id=2)]) == [True]
    assert first.commit([filled(1, ids[1600:2400], contents[100:150], key_id=2)]) == [True]
    assert first.participation(TASK) == second.participation(TASK) == {1: 500}
    assert _same(first)
    first.end_round(TASK, 1, 0)
    assert second.settle(TASK, 1, count) == 150
    assert first.settle(TASK, 1, count) == 0
    assert first.participation(TASK) == {1: 350}
    kept = [i for blob in first.ids(TASK, 1) for i in _split(blob)]
    assert Counter(kept) == Counter(dict.fromkeys(_split(ids) + _split(reports(2, 50)[0]), 1))
    assert _same(first)


def _split(ids: bytes) -> list[bytes]:
    return [ids[i : i + 16] for i in range(0, len(ids), 16)]


def test_the_first_copy_is_the_one_that_stays(sharing: Sharing) -> None:
    one, other = sharing.store, sharing.another()
    ids, _ = reports(3, 4)
    one.commit([filled(1, ids, b"\0\0\0\0")])
    other.commit([filled(1, ids, b"\1\1\1\1")])
    assert _closed(other, 1) == 4
    assert b"".join(one.contents(TASK, 1)) == b"\0\0\0\0"


def test_copies_that_were_dropped_are_gone_from_the_file(tmp_path: Path) -> None:
    sharing = SharedFile(tmp_path)
    store, other = sharing.store, sharing.another()
    store.add_task(TASK, b"{}", {}, public=False)
    store.end_task(TASK, 5)  # it erases, and what follows must erase as well
    ids, contents = reports(9, 5000)
    store.commit([filled(1, ids, contents)])
    other.commit([filled(1, ids, contents)])
    assert _closed(store, 1) == 5000
    sharing.close()
    left = (tmp_path / "collector.db").read_bytes()
    assert not any(each in left for each in _split(ids)[::50])


def test_nothing_counts_after_a_round_was_sealed_by_anybody(sharing: Sharing) -> None:
    first, second = sharing.store, sharing.another()
    ids, contents = reports(4, 10)
    late = Filled(TASK, 1, 2, 10, ids, contents, count(2, contents), round=0)
    next_round = Filled(TASK, 1, 2, 10, ids, contents, count(2, contents), round=1)
    first.end_round(TASK, 2, 0)
    first.end_round(TASK, 2, 0)
    assert second.commit([late, filled(1, ids, contents)]) == [False, True]
    assert second.commit([next_round]) == [True]
    assert second.participation(TASK) == {1: 10, 2: 10}
    first.end_round(TASK, 2, 1)
    assert second.commit([next_round]) == [False]
    assert first.settle(TASK, 2, count) == 0
    assert _same(first)


def test_closing_twice_changes_nothing(sharing: Sharing) -> None:
    first, second = sharing.store, sharing.another()
    first.commit([filled(1, *reports(5, 200))])
    first.end_round(TASK, 1, 0)
    for store in (first, second):
        assert store.settle(TASK, 1, count) == 0
        store.pack(TASK, 1)
    rows = list(first.log(TASK))
    assert [row.n for row in rows] == [200]
    assert second.close_period(TASK, Release(1, 200, np.ones(2), np.ones(2)))
    assert not first.close_period(TASK, Release(1, 199, np.zeros(2), np.zeros(2)))
    assert [release.n for release in first.releases(TASK)] == [200]
    assert first.releases(TASK, after=1) == []
    assert first.unpacked(TASK) == second.unpacked(TASK) == []
    assert list(second.log(TASK)) == rows


def test_what_is_sent_once_stays_known_and_nothing_else(sharing: Sharing) -> None:
    store, other = sharing.store, sharing.another()
    ids: list[bytes] = []
    for period in (1, 2, 3):
        for seed in (1, 2):
            ids += [reports(10 * period + seed, 6)[0]]
            store.commit([filled(period, ids[-1], b"ababbb")])
        store.end_round(TASK, period, 0)
        store.settle(TASK, period, count)
        store.pack(TASK, period, once=lambda contents: np.frombuffer(contents, "u1") == ord("a"))
        store.close_period(TASK, Release(period, 0, np.zeros(1), np.zeros(1)))
    for here in (store, other):
        known = [
            here.counted(TASK, 1 + place // 2, each).tolist() for place, each in enumerate(ids)
        ]
        assert known == [[True, False, True, False, False, False]] * 4 + [[True] * 6] * 2
        assert not here.counted(TASK, 2, ids[0]).any()
    sharing.store.archive_task(TASK)
    sharing.store.erase_left(TASK)
    assert not other.counted(TASK, 1, ids[0]).any()


def test_a_closed_period_that_was_not_packed_says_so(sharing: Sharing) -> None:
    store = sharing.store
    store.commit([filled(1, *reports(6, 20))])
    store.end_round(TASK, 1, 0)
    store.close_period(TASK, Release(1, 20, np.zeros(1), np.zeros(1)))
    assert store.unpacked(TASK) == [1]
    store.pack(TASK, 1)
    assert store.unpacked(TASK) == []


def test_the_log_only_grows_and_holds_each_report_once(sharing: Sharing) -> None:
    store, other = sharing.store, sharing.another()
    sent: dict[int, bytes] = {}
    seen: list[LogRow] = []
    for period in range(1, 5):
        ids, contents = reports(10 + period, 100 * period)
        store.commit([filled(period, ids, contents)])
        other.commit([filled(period, ids[:160], contents[:10], key_id=2)])
        sent[period] = contents
        assert _closed(other, period) == 10
        seen += list(store.log(TASK, after=seen[-1].sequence if seen else 0))
    assert seen == list(store.log(TASK))
    assert [row.sequence for row in seen] == list(range(1, len(seen) + 1))
    for period, contents in sent.items():
        kept = b"".join(row.contents for row in seen if row.period == period)
        assert Counter(kept) == Counter(contents)
    assert _same(store)
    assert store.participation(TASK) == {1: 100, 2: 200, 3: 300, 4: 400}


def test_the_log_does_not_tell_in_which_order_reports_came(sharing: Sharing) -> None:
    store = sharing.store
    n = 256
    for number in range(n):  # the content says when it came
        store.commit([filled(1, *(reports(100 + number, 1)[0], bytes([number])))])
    _closed(store, 1)
    (row,) = store.log(TASK)
    order = np.frombuffer(row.contents, np.uint8).astype(float)
    correlation = np.corrcoef(order, np.arange(n))[0, 1]
    assert abs(correlation) < 5.2 / np.sqrt(n)  # two-sided: below 1e-6 for a random order
    assert not list(store.ids(TASK, 1))


def test_late_reports_of_the_last_period_are_known(sharing: Sharing) -> None:
    store = sharing.store
    ids, contents = reports(7, 9000)
    strangers = reports(8, 500)[0]
    store.commit([filled(1, ids, contents)])
    store.end_round(TASK, 1, 0)
    for packed in (False, True):
        if packed:
            _closed(store, 1)
        assert store.counted(TASK, 1, ids[: 16 * 1000]).all()
        assert store.counted(TASK, 1, ids[-16 * 1000 :]).all()
        assert not store.counted(TASK, 1, strangers).any()
        assert not store.counted(TASK, 1, ids).any()  # too many at once
    assert not store.counted(TASK, 2, ids[:160]).any()
    store.commit([filled(2, strangers, b"\1" * 500)])
    _closed(store, 2)
    assert not store.counted(TASK, 1, ids[:160]).any()
    assert store.counted(TASK, 2, strangers).all()


def test_nothing_is_written_of_a_task_that_was_deleted(sharing: Sharing) -> None:
    store, other = sharing.store, sharing.another()
    store.commit([filled(1, *reports(30, 10))])
    store.end_round(TASK, 1, 0)
    other.delete_task(TASK)
    other.erase_left(TASK)
    late: list[Callable[[], object]] = [
        lambda: store.close_round(TASK, 1, 0),
        lambda: store.close_period(TASK, Release(1, 10, np.zeros(1), np.zeros(1))),
        lambda: store.replace_key(TASK, 7, bytes(32), b"{}", 1),
        lambda: store.note_gap(TASK, 1, 2),
        lambda: store.end_round(TASK, 2, 0),
    ]
    for write in late:
        with pytest.raises(MismatchError, match="was deleted"):
            write()
    assert store.settle(TASK, 1, count) == 0
    store.pack(TASK, 1)
    assert store.commit([filled(2, *reports(31, 10))]) == [False]
    for each in (store, other):  # who knows of it, and who does not
        with pytest.raises(ConfigurationError, match="was deleted here, and its devices would not"):
            each.add_task(TASK, b"{}", {}, public=True)
    assert not [*store.tasks(), *store.releases(TASK), *store.log(TASK), *store.unpacked(TASK)]
    assert not store.participation(TASK)
    assert not store.rounds(TASK)


def test_a_task_that_was_never_there_can_be_added_after_it_was_deleted(sharing: Sharing) -> None:
    sharing.store.delete_task(bytes(32))
    assert sharing.another().add_task(bytes(32), b"{}", {}, public=True)


def test_what_is_being_counted_when_a_task_is_deleted_is_deleted_as_well(
    sharing: Sharing, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, other = sharing.store, sharing.another()
    deleting = Thread(target=other.delete_task, args=(TASK,))
    append = store._append  # noqa: SLF001

    def slowly(*given: Any) -> None:
        append(*given)
        deleting.start()
        time.sleep(0.3)

    monkeypatch.setattr(store, "_append", slowly)
    assert store.commit([filled(1, *reports(32, 10))]) == [True]
    deleting.join()
    assert store.erase_left(TASK)
    assert not [*store.ids(TASK, 1), *store.tallies(TASK), *store.tasks()]


def test_a_writer_whose_commit_failed_is_followed_by_a_new_one(
    sharing: Sharing, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = sharing.store
    store.commit([filled(1, *reports(20, 10))])
    with monkeypatch.context() as broken:

        def fail(*_: object) -> None:
            raise OSError("disk")

        broken.setattr(store, "_append", fail)
        with pytest.raises(OSError, match="disk"):
            store.commit([filled(1, *reports(21, 10))])
    store.commit([filled(1, *reports(22, 10))])
    assert store.participation(TASK) == {1: 20}
    assert _same(store)
    assert _closed(store, 1) == 0
    assert _same(store)


def test_changes_of_a_task_are_seen_by_others(sharing: Sharing) -> None:
    first, second = sharing.store, sharing.another()
    seen = [second.versions()[TASK]]
    for change in (
        lambda: first.replace_key(TASK, 2, b"l" * 32, b"{2}", until=3),
        lambda: first.close_round(TASK, 1, 0),
        lambda: _closed(first, 1),
        lambda: first.erase_keys(TASK),
    ):
        change()
        seen.append(second.versions()[TASK])
    assert all(before < after for before, after in pairwise(seen))
    first.commit([filled(2, *reports(9, 5))])
    assert second.versions()[TASK] == seen[-1]
    assert not first.replace_key(TASK, 2, b"m" * 32, b"{3}", until=3)
    assert second.tasks()[0].published == b"{2}"
    assert second.rounds(TASK) == {1: 1}


def test_one_process_closes_at_a_time(sharing: Sharing) -> None:
    first, second = sharing.another(), sharing.another()
    with first.closing() as ours, second.closing() as theirs:
        assert (ours, theirs) == (True, False)
    with second.closing() as ours:
        assert ours
