"""What every store does for engines: reports wait in the log, and epochs of them count once."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from tests.store.sharing import Sharing
from tests.store.stores import TASK, Reports, count, reports

from sfumato.core.tally import Place, Tally
from sfumato.errors import MismatchError
from sfumato.store import EngineProgress, Epoch, Filled, LogRow, Release, Store


def _kept(store: Store, period: int, reports: Reports) -> None:
    """Let a period wait in the log, with ids, as if an engine were to count it."""
    ids, contents = reports
    store.commit([Filled(TASK, 1, period, len(contents), ids, contents, {})])
    store.end_round(TASK, period, 0)
    store.settle(TASK, period, lambda *_: {})
    store.pack(TASK, period, with_ids=True)


def _counted(rows: list[LogRow]) -> Epoch:
    """Count rows whose contents come after their ids, but for contents of 7."""
    tallies: dict[Place, Tally] = {}
    refused: Counter[int] = Counter()
    for row in rows:
        contents = np.frombuffer(row.contents, np.uint8).reshape(row.n, 17)[:, 16]
        refused[row.period] += int((contents == 7).sum())
        for place, tally in count(row.period, contents[contents != 7].tobytes()).items():
            tallies[place] = tallies[place] + tally if place in tallies else tally
    return Epoch(rows[0].sequence, rows[-1].sequence, tallies, refused)


def test_reports_wait_in_the_log_with_their_ids_each_once(sharing: Sharing) -> None:
    store, other = sharing.store, sharing.another()
    ids, contents = reports(40, 500)
    other.commit([Filled(TASK, 1, 1, 100, ids[:1600], contents[:100], {})])
    _kept(store, 1, (ids, contents))
    rows = list(other.log(TASK))
    packed = np.concatenate([np.frombuffer(row.contents, "V17") for row in rows])
    sent = [ids[16 * i : 16 * i + 16] + contents[i : i + 1] for i in range(500)]
    assert Counter(packed.tolist()) == Counter(dict.fromkeys(sent, 1))
    assert packed.tolist() != sorted(packed.tolist())
    assert packed.tolist() != sent
    assert (store.packed(TASK), other.packed(TASK)) == (1, 1)
    assert store.participation(TASK) == {}
    assert other.uncounted(TASK) == {1: 500}
    assert not store.is_counted(TASK, 1)


def test_an_epoch_counts_once_however_often_it_comes(sharing: Sharing) -> None:
    store, engine = sharing.store, sharing.another()
    for period in (1, 2, 3):
        _kept(store, period, reports(50 + period, 300 * (period != 2)))
    rows = list(engine.log(TASK))
    first, second = _counted(rows[:1]), _counted(rows[1:])
    with pytest.raises(MismatchError, match=r"rows 2 to 2 .* begins with row 1 is expected"):
        engine.acknowledge(TASK, second)
    seen = store.versions()[TASK]
    assert engine.acknowledge(TASK, first)
    assert store.versions()[TASK] > seen
    assert [store.is_counted(TASK, period) for period in (1, 2, 3)] == [True, True, False]
    assert not engine.acknowledge(TASK, first)
    assert not store.acknowledge(TASK, first)
    with pytest.raises(MismatchError, match="rows 1 to 2"):  # it would count row 1 twice
        store.acknowledge(TASK, _counted(rows))
    assert store.acknowledge(TASK, second)
    assert not engine.acknowledge(TASK, second)
    whole = b"".join(reports(50 + period, 300)[1] for period in (1, 3))
    refused = whole.count(7)
    assert (
        store.progress(TASK) == engine.progress(TASK) == EngineProgress(2, 600 - refused, refused)
    )
    for period in (1, 3):
        contents = reports(50 + period, 300)[1].replace(b"\7", b"")
        assert dict(store.tallies(TASK, period)) == count(period, contents)
    assert [store.is_counted(TASK, period) for period in (1, 2, 3)] == [True] * 3


def test_an_epoch_that_does_not_account_for_its_rows_changes_nothing(sharing: Sharing) -> None:
    store = sharing.store
    for period in (1, 2):
        _kept(store, period, reports(60 + period, 100))
    whole = _counted(list(store.log(TASK)))
    place = Place(1, 1)
    fewer = Tally(whole.tallies[place].n - 1, whole.tallies[place].sums)
    moved = {Place(1, 3): whole.tallies[place], Place(1, 2): whole.tallies[Place(1, 2)]}
    for wrong in (
        Epoch(1, 2, {**whole.tallies, place: fewer}, whole.refused),
        Epoch(1, 2, moved, whole.refused),
        Epoch(1, 3, whole.tallies, whole.refused),
        Epoch(1, 0, {}, {}),
    ):
        with pytest.raises(MismatchError):
            store.acknowledge(TASK, wrong)
    assert store.progress(TASK) == EngineProgress()
    assert not store.tallies(TASK)
    assert store.acknowledge(TASK, whole)


def test_counted_reports_are_erased_and_their_numbers_do_not_come_again(sharing: Sharing) -> None:
    store = sharing.store
    for period in (1, 2):
        _kept(store, period, reports(70 + period, 50))
    store.acknowledge(TASK, _counted(list(store.log(TASK))[:1]))
    store.close_period(TASK, Release(1, 50, np.zeros(1), np.zeros(1)))
    store.erase_contents(TASK, 1)
    (row,) = store.log(TASK)
    assert (row.sequence, row.n, store.uncounted(TASK)) == (2, 50, {2: 50})
    assert [store.is_counted(TASK, period) for period in (1, 2)] == [True, False]
    assert store.acknowledge(TASK, _counted([row]))
    store.erase_contents(TASK, 2)
    _kept(store, 3, reports(73, 50))
    assert [row.sequence for row in store.log(TASK)] == [3]
    assert store.progress(TASK).sequence == 2
