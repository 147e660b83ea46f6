"""What a task has lost is erased in many short transactions, and read by nobody meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pytest
from tests.store.sharing import SharedFile, Sharing
from tests.store.steps import Killed, after_each, killed_after
from tests.store.stores import TASK, Reports, count, filled, reports

from sfumato.core.tally import Place, Tally
from sfumato.errors import MismatchError
from sfumato.store import Epoch, LogRow, Release, Store, StoredTask
from sfumato.store.report_tables import ReportTables

BATCHES, SIZE = 6, 100
BESIDE = bytes(31) + b"\1"
pytestmark = pytest.mark.usefixtures("short_steps")


def _end(store: Store) -> None:
    assert store.end_task(TASK, 1)


def _archive(store: Store) -> None:
    store.archive_task(TASK)


def _delete(store: Store) -> None:
    store.delete_task(TASK)


WAYS = pytest.mark.parametrize("lose", [_end, _archive, _delete])


def _live(store: Store) -> list[Reports]:
    """Let a task and another one have a packed period, and one whose reports are not packed."""
    store.add_task(BESIDE, b"{}", {1: b"k" * 32}, public=False)
    sent = [reports(period, BATCHES * SIZE) for period in (1, 2)]
    for task_id in (TASK, BESIDE):
        for period, (ids, contents) in enumerate(sent, 1):
            for first in range(0, BATCHES * SIZE, SIZE):
                own = ids[16 * first : 16 * (first + SIZE)], contents[first : first + SIZE]
                store.commit([replace(filled(period, *own), task_id=task_id)])
        store.end_round(task_id, 1, 0)
        store.settle(task_id, 1, count)
        store.close_period(task_id, Release(1, 0, np.zeros(1), np.zeros(1)))
        store.pack(task_id, 1)
    return sent


@dataclass(frozen=True)
class _Seen:
    """All that can be seen of a task; by default nothing."""

    tasks: Sequence[StoredTask] = ()
    releases: Sequence[int] = ()
    tallies: Mapping[Place, Tally] = field(default_factory=dict)
    ids: Sequence[bytes] = (b"", b"")
    contents: Sequence[bytes] = (b"", b"")
    log: Sequence[LogRow] = ()
    counted: Sequence[bool] = (False,) * 50
    recounted: Mapping[Place, Tally] = field(default_factory=dict)
    uncounted: Mapping[int, int] = field(default_factory=dict)
    unpacked: Sequence[int] = ()

    @classmethod
    def of(cls, store: Store, task_id: bytes) -> _Seen:
        return cls(
            tasks=tuple(task for task in store.tasks() if task.task_id == task_id),
            releases=tuple(release.n for release in store.releases(task_id)),
            tallies=dict(store.tallies(task_id)),
            ids=tuple(b"".join(store.ids(task_id, period)) for period in (1, 2)),
            contents=tuple(b"".join(store.contents(task_id, period)) for period in (1, 2)),
            log=tuple(store.log(task_id)),
            counted=tuple(store.counted(task_id, 1, reports(1, 50)[0]).tolist()),
            recounted=dict(store.recount(task_id, count)),
            uncounted=store.uncounted(task_id),
            unpacked=tuple(store.unpacked(task_id)),
        )


@WAYS
def test_an_erasure_that_was_killed_after_any_step_is_gone_on_with(
    sharing: Sharing, lose: Callable[[Store], None]
) -> None:
    """The store is made anew for each step; nothing of another task is ever touched."""
    store, other = sharing.store, sharing.another()
    sent = _live(store)
    beside, before = _Seen.of(store, BESIDE), _Seen.of(store, TASK)
    lose(store)
    killed = 0
    for most in range(1, 200):  # the first that does not end goes on where the last was killed
        eraser = sharing.another()
        patch = after_each(eraser, partial(killed_after, most, []))
        try:
            assert eraser.erase_left(TASK)
        except Killed:
            killed += 1
            patch.undo()
            assert other.left() in ([TASK], [])
            assert _Seen.of(other, BESIDE) == beside
        else:
            break
    patch.undo()
    assert killed >= 2
    assert other.left() == []
    _is_what_stays(lose, before, _Seen.of(other, TASK))
    assert _Seen.of(other, BESIDE) == beside
    if isinstance(sharing, SharedFile):
        store.delete_task(BESIDE)
        store.erase_left(BESIDE)
        files = b"".join(path.read_bytes() for path in sharing.folder.glob("collector.db*"))
        lost = [ids for ids, _ in (sent[1:] if lose is _end else sent)]
        for ids in lost:
            assert not any(ids[i : i + 16] in files for i in range(0, len(ids), 16 * 7))


def _is_what_stays(lose: Callable[[Store], None], before: _Seen, after: _Seen) -> None:
    """Say that a task has what it should have, and nothing else."""
    if lose is _end:
        assert [task.last_period for task in after.tasks] == [1]
        first = {place: tally for place, tally in before.tallies.items() if place.period == 1}
        assert after == replace(
            before,
            tasks=after.tasks,
            tallies=first,
            ids=(b"", b""),
            contents=(before.contents[0], b""),
            recounted=first,
            uncounted={1: BATCHES * SIZE},
        )
    elif lose is _archive:
        assert [(task.archived, task.keys) for task in after.tasks] == [(True, {})]
        assert after == _Seen(after.tasks, before.releases, before.tallies)
    else:
        assert after == _Seen()


@WAYS
def test_others_write_between_the_steps_of_an_erasure(
    sharing: Sharing, lose: Callable[[Store], None]
) -> None:
    store, other = sharing.store, sharing.another()
    _live(store)
    lose(store)
    written: list[bool] = []
    late: list[bool] = []

    def write() -> None:
        id_ = bytes([len(written)]) * 16
        written.extend(other.commit([replace(filled(2, id_, b"\1"), task_id=BESIDE)]))
        late.extend(other.commit([filled(2, id_, b"\1")]))

    patch = after_each(store, write)
    assert store.erase_left(TASK)
    patch.undo()
    assert len(written) > BATCHES
    assert all(written)
    assert lose is _archive or not any(late)
    assert other.participation(BESIDE) == {1: BATCHES * SIZE, 2: BATCHES * SIZE + len(written)}


def test_an_erasure_leaves_the_rest_when_there_is_no_time(sharing: Sharing) -> None:
    store = sharing.store
    _live(store)
    store.delete_task(TASK)
    calls = 1
    while not store.erase_left(TASK, patience=-1.0):
        assert store.left() == [TASK]
        calls += 1
    assert calls > BATCHES
    assert store.left() == []
    assert store.erase_left(TASK, patience=-1.0)


@WAYS
def test_what_a_task_has_lost_is_seen_by_nobody_before_it_is_erased(
    sharing: Sharing, lose: Callable[[Store], None]
) -> None:
    store, other = sharing.store, sharing.another()
    _live(store)
    lose(store)
    seen = _Seen.of(other, TASK)
    if lose is _end:
        assert seen.uncounted == {1: BATCHES * SIZE}
        assert seen.recounted == seen.tallies
    assert (len(seen.tasks) == 0) == (lose is _delete)
    if lose is _delete:
        with pytest.raises(MismatchError, match="was deleted"):
            other.acknowledge(TASK, Epoch(1, 1, {}, {}))


def test_who_settles_and_packs_meanwhile_does_no_harm(sharing: Sharing) -> None:
    store, other = sharing.store, sharing.another()
    ids, contents = _live(store)[1]
    other.commit([filled(2, ids[:1600], contents[:100])])  # copies
    other.end_round(TASK, 2, 0)
    store.delete_task(TASK)

    def go_on() -> None:
        for each in (other, store):
            each.settle(TASK, 2, count)
            each.pack(TASK, 2)

    patch = _once_each(store, go_on)
    assert store.erase_left(TASK)
    patch.undo()
    go_on()
    assert store.left() == []
    assert not dict(other.tallies(TASK))


def _once_each(store: ReportTables, then: Callable[[], None]) -> pytest.MonkeyPatch:
    """Do something after each transaction, but nothing after those that it makes itself."""
    busy: list[bool] = []

    def only_once() -> None:
        if not busy:
            busy.append(True)
            then()
            busy.clear()

    return after_each(store, only_once)
