"""What SQL stores have in common about reports: commits, settling, packing and the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from sfumato.arrays import Bools
from sfumato.core.tally import ENROLMENT, Place, Tallies, Tally
from sfumato.errors import MismatchError
from sfumato.randomness import Source, secure
from sfumato.store.id_set import ID_BYTES
from sfumato.store.interface import Count
from sfumato.store.merging import copies
from sfumato.store.packing import in_steps
from sfumato.store.records import Filled, LogRow
from sfumato.store.signs_of_life import SignsOfLife
from sfumato.store.task_tables import Database, TaskTables
from sfumato.wire.sqlite_tables import Damaged

__all__ = [
    "HAS_BATCHES",
    "IN_LOG",
    "IN_TASK",
    "OF_A_PERIOD",
    "PACKED",
    "PLACE",
    "Cell",
    "ReportTables",
]

TOGETHER: Final = 64
"""The number of rows that are read at once."""

OF_A_PERIOD: Final = "WHERE task_id = ? AND period = ?"
IN_LOG: Final = (
    "EXISTS (SELECT 1 FROM periods WHERE periods.task_id = log.task_id "
    "AND periods.period = log.period AND packed = 1)"
)
"""Holds for rows of the log whose period is packed; nobody reads the others."""
PACKED: Final = IN_LOG.replace("log.", "batches.")
"""Holds for rows of `batches` whose period is packed; nobody reads them."""
IN_TASK: Final = (
    "EXISTS (SELECT 1 FROM tasks WHERE tasks.task_id = batches.task_id AND archived = 0 "
    "AND (last_period IS NULL OR batches.period <= last_period))"
)
"""Holds for rows of `batches` whose task has their period; nobody reads the others."""
HAS_BATCHES: Final = (
    "EXISTS (SELECT 1 FROM batches WHERE batches.task_id = periods.task_id "
    "AND batches.period = periods.period)"
)
"""Holds for periods of which rows are left in `batches`."""
ERASED: Final = "WHERE task_id = ? AND n = 0"
"""Holds for rows of the log that are left of erased ones, so that their numbers stay."""
PLACE: Final = "task_id, key_id, period, writer, span, block"

Cell = tuple[bytes, int, int, int, int, int]
"""Where a tally is kept: its task, key, period, writer, span and part."""


class ReportTables(TaskTables):
    """A store in SQL: its reports and their tallies."""

    file: Path | None = None
    """The file that has everything; None if it is a database elsewhere."""

    def __init__(self, rng: Source | None = None) -> None:
        self.signs = SignsOfLife()
        self._rng = secure() if rng is None else rng
        self._writer = 0
        self._own: dict[Cell, Tally] = {}
        """The tallies of this writer, as they are on disk."""

    def _piped(self) -> AbstractContextManager[None]:
        """Return a context in which the statements of a commit need not wait for each other."""
        return nullcontext()

    # ---- counting ----------------------------------------------------------------------------

    def commit(self, filled: Sequence[Filled]) -> list[bool]:
        """Append reports and add up their tallies; return which buckets were still open."""
        fresh: dict[Cell, Tally] = {}
        writer = self._writer
        try:
            with self._writing() as db:
                for task_id, period in sorted({(each.task_id, each.period) for each in filled}):
                    self._share(db, task_id, period)
                open_ = [self._is_open(db, each) for each in filled]
                if any(open_) and not writer:
                    writer = self._next_writer(db)
                with self._piped():
                    for each, counts in zip(filled, open_, strict=True):
                        if counts:
                            self._append(db, each, writer, fresh)
        except BaseException:
            # It may be on disk all the same: another writer must not go on with these tallies.
            self._writer, self._own = 0, {}
            raise
        self._writer = writer
        self._own.update(fresh)
        return open_

    def _is_open(self, db: Database, each: Filled) -> bool:
        if not self._is_there(db, each.task_id, each.period):
            return False
        rows = self._read("periods", "sealed", OF_A_PERIOD, each.task_id, each.period, db=db)
        return not rows or each.round >= rows[0][0]

    def _is_there(self, db: Database, task_id: bytes, period: int) -> bool:
        """Return whether a task has a period: it was neither deleted nor ended before."""
        tasks = self._read("tasks", "last_period", "WHERE task_id = ?", task_id, db=db)
        return bool(tasks) and (tasks[0][0] is None or period <= tasks[0][0])

    def _next_writer(self, db: Database) -> int:
        db.run("UPDATE writers SET last = last + 1")
        ((number,),) = self._read("writers", "last", db=db)
        return int(number)

    def _append(self, db: Database, each: Filled, writer: int, fresh: dict[Cell, Tally]) -> None:
        bucket = (each.task_id, each.key_id, each.period, writer)
        db.run(
            "INSERT INTO batches (task_id, key_id, period, writer, n, ids, contents) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*bucket, each.n, each.ids, each.contents),
        )
        for place, tally in each.tallies.items():
            cell = (*bucket, place.span, place.part)
            before = fresh.get(cell) or self._own.get(cell)
            fresh[cell] = tally if before is None else before + tally
            self._put(db, cell, fresh[cell])

    @staticmethod
    def _put(db: Database, cell: Cell, tally: Tally) -> None:
        """Write a tally in place of the one that is there, if any."""
        shape = ",".join(map(str, tally.sums.shape))
        db.run(
            f"INSERT INTO tallies ({PLACE}, n, shape, sums) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "  # noqa: S608
            "ON CONFLICT (task_id, period, key_id, writer, span, block) DO UPDATE "
            "SET n = excluded.n, shape = excluded.shape, sums = excluded.sums",
            (*cell, tally.n, shape, tally.sums.astype("<i8").tobytes()),
        )

    def forget(self, task_id: bytes, period: int | None = None) -> None:
        """Drop from memory what belongs to the periods up to one that has closed, or to all."""
        for cell in [cell for cell in list(self._own) if cell[0] == task_id]:
            if period is None or cell[2] <= period:
                self._own.pop(cell, None)

    # ---- reading -----------------------------------------------------------------------------

    def _is_packed(self, task_id: bytes, period: int) -> bool:
        """Return whether the reports of a period are in the log, and not in `batches`."""
        return self._read("periods", "packed", OF_A_PERIOD, task_id, period) == [(1,)]

    def _rows_of(self, task_id: bytes, period: int, column: str) -> Iterator[tuple[int, bytes]]:
        """Yield the number of each row of a period, and what it has in one column; until packed."""
        if self._is_packed(task_id, period):
            return
        last, rest = 0, f"{OF_A_PERIOD} AND batch > ? ORDER BY batch LIMIT {TOGETHER}"
        while rows := self._read("batches", f"batch, {column}", rest, task_id, period, last):
            yield from rows
            last = rows[-1][0]

    def ids(self, task_id: bytes, period: int) -> Iterator[bytes]:
        """Yield the ids of a period's reports, many at a time; none once it was packed."""
        for _, ids in self._rows_of(task_id, period, "ids"):
            yield ids

    def contents(self, task_id: bytes, period: int) -> Iterator[bytes]:
        """Yield the opened contents of a period's reports, many at a time."""
        if not self._is_packed(task_id, period):
            for _, contents in self._rows_of(task_id, period, "contents"):
                yield contents
            return
        if self._read("log", "period", f"{OF_A_PERIOD} AND n = 0", task_id, period):
            return  # its contents are being erased, or are
        rest = f"{OF_A_PERIOD} AND n > 0 ORDER BY sequence"
        for (sequence,) in self._read("log", "sequence", rest, task_id, period):
            ((contents,),) = self._read(
                "log", "contents", "WHERE task_id = ? AND sequence = ?", task_id, sequence
            )
            yield contents

    def log(self, task_id: bytes, after: int = 0) -> Iterator[LogRow]:
        """Yield the rows of a task's log after a number, in order."""
        rest = (
            f"WHERE task_id = ? AND sequence > ? AND n > 0 AND {IN_LOG} "
            f"ORDER BY sequence LIMIT {TOGETHER}"
        )
        whole = "WHERE task_id = ? AND sequence = ? AND n > 0"
        # Of these periods only some contents may be left, as others are erased.
        erased = {period for (period,) in self._read("log", "period", ERASED, task_id)}
        while rows := self._read("log", "sequence, key_id, period, n", rest, task_id, after):
            for sequence, key_id, period, n in rows:
                if period in erased:
                    continue
                # One at a time, as a row can be large; it may have been erased meanwhile.
                for (contents,) in self._read("log", "contents", whole, task_id, sequence):
                    yield LogRow(sequence, key_id, period, n, contents)
            after = rows[-1][0]

    def tallies(self, task_id: bytes, period: int | None = None) -> Tallies[Place]:
        """Return the tallies of a task, or of one of its periods."""
        columns = "period, span, block, n, shape, sums"
        if period is None:
            rows = self._read("tallies", columns, "WHERE task_id = ?", task_id)
        else:
            rows = self._read("tallies", columns, OF_A_PERIOD, task_id, period)
        return _added((Place(span, p, part), self._tally(*kept)) for p, span, part, *kept in rows)

    def _tally(self, n: int, shape: str, sums: bytes) -> Tally:
        try:
            sides = [int(side) for side in shape.split(",")]
            return Tally(n, np.frombuffer(sums, "<i8").reshape(sides))
        except (ValueError, OverflowError):
            raise Damaged(self.name, "a tally is not whole") from None

    def recount(self, task_id: bytes, count: Count) -> Tallies[Place]:
        """Return the tallies of a task, counted anew from its reports."""
        counted: Tallies[Place] = Tallies()
        periods = self._counts(
            f"SELECT DISTINCT period, 0 FROM batches WHERE task_id = ? AND {IN_TASK} "  # noqa: S608
            "UNION SELECT DISTINCT period, 0 FROM log WHERE task_id = ?",
            task_id,
            task_id,
        )
        for period, _ in periods:
            for contents in self.contents(task_id, period):
                counted += Tallies(count(period, contents))
        return counted

    def participation(self, task_id: bytes) -> dict[int, int]:
        """Return the number of reports of each period, copies included until it settles."""
        query = (
            "SELECT period, CAST(sum(n) AS BIGINT) FROM tallies "
            "WHERE task_id = ? AND span <> ? GROUP BY period"
        )
        return dict(self._counts(query, task_id, ENROLMENT))

    def enrolled(self, task_id: bytes) -> dict[int, int]:
        """Return how many devices have said that they take part from each period on."""
        query = (
            "SELECT period, CAST(sum(n) AS BIGINT) FROM tallies "
            "WHERE task_id = ? AND span = ? GROUP BY period"
        )
        return dict(self._counts(query, task_id, ENROLMENT))

    # ---- closing -----------------------------------------------------------------------------

    def end_round(self, task_id: bytes, period: int, number: int) -> None:
        """Seal a round: from now on no further report of it counts."""
        with self._writing() as db:
            self._exclude(db, task_id, period)
            if not self._is_there(db, task_id, period):
                raise MismatchError(f"the task was deleted, or ended before period {period}.")
            db.run(
                "INSERT INTO periods VALUES (?, ?, ?, 0) ON CONFLICT (task_id, period) DO UPDATE "
                "SET sealed = CASE WHEN periods.sealed < excluded.sealed "
                "THEN excluded.sealed ELSE periods.sealed END",
                (task_id, period, number + 1),
            )

    def settle(self, task_id: bytes, period: int, count: Count) -> int:
        """Keep the first copy of each report of a period; return how many copies were dropped."""
        total = self._n_of(task_id, period)
        marked = copies(partial(self._rows_of, task_id, period, "ids"), total)
        if not marked:
            return 0
        dropped = 0
        sizes = dict(self._sizes(task_id, period))
        for step in in_steps(marked.items(), lambda row: sizes.get(row[0], 0)):
            with self._wiping() as db:
                self._exclude(db, task_id, period)
                # A row that has become smaller since has lost its copies: others settle as well.
                dropped += sum(self._drop(db, *row, count) for row in step)
        self._wiped()
        return dropped

    def _sizes(self, task_id: bytes, period: int) -> list[tuple[int, int]]:
        """Return the number of each row that `batches` has of a period, and its bytes."""
        query = "SELECT batch, length(ids) + length(contents) FROM batches"
        rows = self._counts(f"{query} {OF_A_PERIOD} ORDER BY batch", task_id, period)
        return [(batch, size) for batch, size in rows]

    def _n_of(self, task_id: bytes, period: int) -> int:
        if self._is_packed(task_id, period):
            return 0
        return sum(n for (n,) in self._read("batches", "n", OF_A_PERIOD, task_id, period))

    def _drop(self, db: Database, batch: int, again: Bools, count: Count) -> int:
        """Take copies out of a row, and out of the tallies of its writer; return how many."""
        columns = "task_id, key_id, period, writer, n, ids, contents"
        rest = "WHERE batch = ? AND n = ?"
        kept = self._read("batches", columns, rest, batch, len(again), db=db)
        if not kept:
            return 0
        ((task_id, key_id, period, writer, n, ids, contents),) = kept
        names = np.frombuffer(ids, f"V{ID_BYTES}")
        rows = np.frombuffer(contents, f"V{len(contents) // n}")
        for place, tally in count(period, rows[again].tobytes()).items():
            cell = (task_id, key_id, period, writer, place.span, place.part)
            whole = self._tally_at(db, cell)
            if whole is None:
                raise Damaged(self.name, "a tally is missing")
            self._put(db, cell, Tally(whole.n - tally.n, whole.sums - tally.sums))
        left = ~again
        db.run(
            "UPDATE batches SET n = ?, ids = ?, contents = ? WHERE batch = ?",
            (int(left.sum()), names[left].tobytes(), rows[left].tobytes(), batch),
        )
        return int(again.sum())

    def _tally_at(self, db: Database, cell: Cell) -> Tally | None:
        """Return the tally that is kept in one place; None if there is none."""
        where = " AND ".join(f"{name} = ?" for name in PLACE.split(", "))
        kept = self._read("tallies", "n, shape, sums", f"WHERE {where}", *cell, db=db)
        return self._tally(*kept[0]) if kept else None


def _added(pairs: Iterable[tuple[Place, Tally]]) -> Tallies[Place]:
    total: dict[Place, Tally] = {}
    for key, tally in pairs:
        total[key] = total[key] + tally if key in total else tally
    return Tallies(total)
