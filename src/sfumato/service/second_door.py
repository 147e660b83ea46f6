"""The second door: one thread counts what has passed the first, in one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from sfumato.arrays import Bools, Ints
from sfumato.service.caps import Caps, Reservation, Room
from sfumato.service.client_counts import Period
from sfumato.service.first_door import ScreenedBatch
from sfumato.service.running_task import RunningTask
from sfumato.store import Filled, SeenIds, Store
from sfumato.store.id_set import ID_BYTES, IdSet
from sfumato.store.merging import leading
from sfumato.store.word_table import Words

__all__ = ["SecondDoor"]

ROUND_BITS: Final = 16
"""The number of bits of a round on the wire."""

Bucket = tuple[bytes, int, int, int]
"""The task id, key id, period and round of reports that are committed together."""

Share = tuple[ScreenedBatch, Ints, Words]
"""Uploads that came together, the indices of some of their reports, and a word for each id."""

Counts = list[tuple[ScreenedBatch, Ints, Ints]]
"""Uploads that came together, and the indices of their new and of their repeated reports."""


Part = tuple[ScreenedBatch, int, int, Ints]
"""Uploads that came together, a period and a round, and the indices of the reports of these."""


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Reports of which only so many count as have room, since their task has a cap.

    Parameters
    ----------
    words
        A word for each id.
    known
        A mask of those that were counted before this commit.
    senders
        A number for the client of each.

    """

    words: Words
    known: Bools
    senders: Words


class SecondDoor:
    """The counting of reports that have passed the first door.

    Parameters
    ----------
    store
        The store that keeps reports and tallies.
    most_ids
        The largest number of ids of one task in memory.
    caps
        How many reports of each client count.

    """

    def __init__(self, store: Store, most_ids: int, caps: Caps) -> None:
        self._store = store
        self._seen = SeenIds(most_ids)
        self._caps = caps

    @property
    def ids_in_memory(self) -> int:
        """The number of ids of open periods in memory."""
        return len(self._seen)

    def refuse_full(self, running: RunningTask, n: int = 1) -> None:
        """Raise Full if there is no room for more reports of a task; any thread may ask."""
        self._seen.refuse_full(running.task_id, n)

    def forget(self, task_id: bytes) -> None:
        """Forget all of a task that was deleted."""
        self._seen.forget(task_id)
        self._caps.forget(task_id)
        self._store.forget(task_id)

    def forget_closed(self, running: RunningTask) -> None:
        """Forget the ids and the clients of the periods of a task that take no more reports."""
        period = None if running.is_over else running.sealed
        self._seen.forget(running.task_id, period)
        if self._caps.of(running) is not None:
            self._caps.forget(running.task_id, period)
        self._store.forget(running.task_id, period)

    def settle(self, entries: Sequence[ScreenedBatch]) -> None:
        """Count the new reports of some batches and fill in their receipts, in one transaction.

        Only one thread may call this at a time. If it raises, no receipt counts anything.
        """
        for entry in entries:
            self.refuse_full(entry.running, len(entry.ids))
        parts = [(entry, *part) for entry in entries for part in _by_round(entry)]
        candidates = {
            place: self._candidates(entry, period, rows)
            for place, (entry, period, _, rows) in enumerate(parts)
            if self._caps.of(entry.running) is not None
        }
        with self._reserved(parts, candidates) as reservation:
            self._settle(parts, candidates, reservation)

    def _candidates(self, entry: ScreenedBatch, period: int, rows: Ints) -> _Candidates:
        """Return reports of a task with a cap, with what decides whether they count."""
        words = self._seen.words(entry.ids[rows].tobytes())
        known = self._seen.has(entry.running.task_id, period, words)
        return _Candidates(words, known, self._caps.senders(entry, rows))

    def _reserved(
        self, parts: Sequence[Part], candidates: Mapping[int, _Candidates]
    ) -> Reservation:
        """Return room for those that were not counted before."""
        wanted: dict[Period, tuple[int, list[Words]]] = {}
        for place, those in candidates.items():
            entry, period, _, _ = parts[place]
            cap = self._caps.of(entry.running) or 0
            of = (entry.running.task_id, period)
            wanted.setdefault(of, (cap, []))[1].append(those.senders[~those.known])
        return self._caps.reserve(wanted)

    def _settle(
        self,
        parts: Sequence[Part],
        candidates: Mapping[int, _Candidates],
        reservation: Reservation,
    ) -> None:
        """Count what is new and has room."""
        rooms = reservation.rooms()
        shares: dict[Bucket, list[Share]] = {}
        pending: dict[Period, IdSet] = {}
        counts: Counts = []
        again: list[tuple[ScreenedBatch, int, Ints]] = []
        for place, (entry, period, number, rows) in enumerate(parts):
            of = (entry.running.task_id, period)
            others = pending.setdefault(of, IdSet())
            if place in candidates:
                room = rooms.get(of, {})
                new, words, repeated = self._capped(entry, rows, candidates[place], room, others)
            else:
                new, words, repeated = self._told_apart(entry, period, rows, others)
            known = self._known(entry, period, repeated)
            counts.append((entry, new[:0], repeated[known]))
            again.append((entry, period, repeated[~known]))
            if len(new):
                shares.setdefault((of[0], entry.key_id, period, number), []).append(
                    (entry, new, words)
                )
        closed: set[Period] = set()
        if shares:
            counted, closed = self._committed(shares, reservation)
            counts += counted
        for entry, period, rows in again:
            # A copy of what came beside it counts if that does.
            if (entry.running.task_id, period) in closed:
                _refuse_late(entry, rows, period)
            else:
                counts.append((entry, rows[:0], rows))
        for entry, new, repeated in counts:
            _acknowledge(entry, new, repeated)

    def _known(self, entry: ScreenedBatch, period: int, rows: Ints) -> Bools:
        """Return a mask of the reports that were counted before this commit."""
        words = self._seen.words(entry.ids[rows].tobytes())
        return self._seen.has(entry.running.task_id, period, words)

    def _told_apart(
        self, entry: ScreenedBatch, period: int, rows: Ints, others: IdSet
    ) -> tuple[Ints, Words, Ints]:
        """Return the indices and words of the new reports of a period, and those of the repeated.

        ``others`` has what is new in this commit already, and gets what is new here.
        """
        fewest = entry.running.fewest_counted
        owners = entry.owners[rows]
        groups = [rows[owners == each] for each in np.unique(owners)] if fewest > 1 else [rows]
        new, repeated, news = [rows[:0]], [rows[:0]], [np.zeros(0, dtype=np.uint64)]
        for own in groups:
            words = self._seen.words(entry.ids[own].tobytes())
            fresh = self._seen.fresh(entry.running.task_id, period, words)
            if len(others):
                fresh &= others.fresh(words)
            if 0 < np.count_nonzero(fresh) < fewest:
                # The rest of the upload did not count, so that these would stand out.
                refused = fresh | np.isin(words, words[fresh])  # and their copies beside them
                entry.refuse(own[refused], "too_few")
                repeated.append(own[~refused])
                continue
            repeated.append(own[~fresh])
            others.add(words[fresh])
            new.append(own[fresh])
            news.append(words[fresh])
        return np.concatenate(new), np.concatenate(news), np.concatenate(repeated)

    def _capped(
        self, entry: ScreenedBatch, rows: Ints, those: _Candidates, room: Room, others: IdSet
    ) -> tuple[Ints, Words, Ints]:
        """Return the same where few reports of one client count; refuse the others."""
        known = those.known | others.has(those.words)
        new, many = self._caps.told_apart(those.words, known, those.senders, room)
        entry.refuse(rows[many], "too_many")
        others.add(those.words[new])
        return rows[new], those.words[new], rows[~new & ~many]

    def _committed(
        self, shares: Mapping[Bucket, list[Share]], reservation: Reservation
    ) -> tuple[Counts, set[Period]]:
        """Commit what is new, and refuse what came too late; return what counts, and what closed.

        That is the tasks and periods that another process has closed meanwhile.
        """
        counts: Counts = []
        closed: set[Period] = set()
        filled = [_filled(bucket, parts) for bucket, parts in shares.items()]
        open_ = self._store.commit(filled)
        for each, parts, counted in zip(filled, shares.values(), open_, strict=True):
            for entry, rows, words in parts:
                if counted:
                    self._seen.add(each.task_id, each.period, words)
                    reservation.count((each.task_id, each.period), self._caps.senders(entry, rows))
                    counts.append((entry, rows, rows[:0]))
                else:  # another process has closed it
                    closed.add((each.task_id, each.period))
                    _refuse_late(entry, rows, each.period)
        return counts, closed


def _by_round(entry: ScreenedBatch) -> Iterator[tuple[int, int, Ints]]:
    """Yield the reports of each period and round; refuse those that are too late."""
    # A period may have closed while the uploads were waiting.
    late = entry.running.is_late(entry.periods, entry.contents)
    _refuse_late(entry, np.flatnonzero(late), entry.running.sealed)
    rounds = entry.running.rounds_of(entry.contents)
    codes = (entry.periods.astype(np.int64) << ROUND_BITS) + rounds  # sorted faster than pairs
    for code in np.unique(codes[~late]).tolist():
        rows = np.flatnonzero((codes == code) & ~late)
        yield code >> ROUND_BITS, code % (1 << ROUND_BITS), rows


def _refuse_late(entry: ScreenedBatch, rows: Ints, period: int) -> None:
    """Refuse late reports; those of the last period that were counted in time are repeated."""
    known = np.zeros(len(rows), dtype=bool)
    last = entry.periods[rows] == period
    known[last] = entry.running.counted(period, entry.ids[rows[last]].tobytes())
    _acknowledge(entry, rows[:0], rows[known])
    entry.refuse(rows[~known], "stale")


def _filled(bucket: Bucket, shares: Sequence[Share]) -> Filled:
    """Return the new reports of a bucket as they are stored, with their tallies."""
    task_id, key_id, period, number = bucket
    ids = b"".join(entry.ids[rows].tobytes() for entry, rows, _ in shares)
    contents = np.concatenate([entry.contents[rows] for entry, rows, _ in shares])
    # In the order of ids, a row does not show which reports came together.
    order = np.argsort(leading(ids), kind="stable")
    contents, ids = contents[order], np.frombuffer(ids, f"V{ID_BYTES}")[order].tobytes()
    tallies = shares[0][0].running.judge.count(period, contents)
    n = len(contents)
    return Filled(task_id, key_id, period, n, ids, contents.tobytes(), tallies, number)


def _acknowledge(entry: ScreenedBatch, new: Ints, repeated: Ints) -> None:
    """Add the counted and the repeated reports to the receipts of their uploads."""
    for owner, n in zip(*np.unique(entry.owners[new], return_counts=True), strict=True):
        entry.receipts[owner].accepted += int(n)
    for owner, n in zip(*np.unique(entry.owners[repeated], return_counts=True), strict=True):
        entry.receipts[owner].repeated += int(n)
