"""What SQL stores have in common about packing: how a closed period moves into the log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final

import numpy as np

from sfumato.core.tally import Tally
from sfumato.errors import MismatchError
from sfumato.store.interface import Once
from sfumato.store.merging import distinct, leading, sorted_words
from sfumato.store.packing import CHUNK, chunks_of_words, fits_a_step, in_steps, permuted
from sfumato.store.report_tables import IN_LOG, OF_A_PERIOD, PLACE, Cell, ReportTables
from sfumato.store.task_tables import LOG, Database
from sfumato.store.word_table import Words

__all__ = ["ONCE", "PackingTables"]

ONCE: Final = 1 << 31
"""What is added to a period where the ids of what devices send once in a task are kept."""

_NOT_IN_LOG: Final = "period IN (SELECT period FROM periods WHERE task_id = ? AND packed <> 1)"

_BEGUN: Final = "WHERE task_id = ? AND packed > 1"
_OVER: Final[tuple[list[tuple[int]], ...]] = ([], [(1,)])
"""What `periods` says of a period that is not to be packed: it is not there, or is packed."""

_Entry = tuple[int, tuple[int, int, bytes]]
"""The place of a row among those of its period, and its key, number of reports and contents."""
_Known = tuple[int, bytes, bytes]
"""A row of ids that stay known: its period, its first word, and all of its words."""


class PackingTables(ReportTables):
    """A store in SQL: how the contents of a closed period move into the log."""

    def pack(
        self,
        task_id: bytes,
        period: int,
        *,
        with_ids: bool = False,
        keeps: bool = True,
        once: Once | None = None,
    ) -> None:
        """Move the contents of a closed period into the log, in random order and without ids.

        It takes many short transactions; ``periods.packed`` says where the reports are meanwhile.

        1. While it is not 1, they are in `batches`, and rows that the log has of the period are
           read by nobody. A packer writes a number of its own there, which stops all others.
        2. It erases what others have left in the log, and adds all rows but the first few.
        3. It adds these few and writes 1, at once: from now on the reports are in the log, and rows
           that `batches` still has of the period are read by nobody.
        4. It erases those. As long as some are there, `unpacked` says so, and anybody goes on.

        What fits into one transaction is packed in one, without a number.
        """
        if not self._is_packed(task_id, period):
            rest = f"{OF_A_PERIOD} AND n > 0 ORDER BY batch"
            rows = self._read("batches", "batch, key_id, n", rest, task_id, period)
            entries = enumerate(self._permuted(rows if keeps else [], with_ids=with_ids), 1)
            known = self._known(task_id, period, rows, once)
            if fits_a_step(self._sizes(task_id, period)) and not self._packers(task_id):
                self._publish(task_id, period, list(entries), list(known), whole=True)
                return
            self._pack_in_steps(task_id, period, entries, known)
        self._erase_batches(task_id, period)

    # ---- who packs ---------------------------------------------------------------------------

    def _packers(self, task_id: bytes, db: Database | None = None) -> set[int]:
        """Return the numbers of the packers that have begun and not ended; there is one at most."""
        return {n for (n,) in self._read("periods", "packed", _BEGUN, task_id, db=db)}

    def _begun(self, task_id: bytes, period: int) -> int:
        """Return a new number for who packs a period, which stops all others; 0 if it is packed."""
        with self._writing() as db:
            self._exclude(db, task_id, LOG)
            if self._read("periods", "packed", OF_A_PERIOD, task_id, period, db=db) in _OVER:
                return 0
            number = 1 + self._next_writer(db)
            db.run(f"UPDATE periods SET packed = 0 {_BEGUN}", (task_id,))  # noqa: S608
            db.run(
                f"UPDATE periods SET packed = ? {OF_A_PERIOD}",  # noqa: S608
                (number, task_id, period),
            )
        return number

    def _goes_on(self, db: Database, task_id: bytes, period: int, number: int) -> bool:
        """Exclude other packers from a task; return False if the period is packed or was deleted.

        MismatchError is raised if another packer has begun since.
        """
        self._exclude(db, task_id, LOG)
        packed = self._read("periods", "packed", OF_A_PERIOD, task_id, period, db=db)
        if packed in _OVER:
            return False
        if packed != [(number,)] or self._packers(task_id, db) - {number}:
            raise MismatchError(f"another process packs period {period} of the task.")
        return True

    # ---- steps -------------------------------------------------------------------------------

    def _pack_in_steps(
        self, task_id: bytes, period: int, entries: Iterable[_Entry], known: Iterable[_Known]
    ) -> None:
        number = self._begun(task_id, period)
        if not number:
            return
        self._erase_remnants(task_id)
        for part in in_steps(known, lambda row: len(row[2])):
            with self._writing() as db:
                if not self._goes_on(db, task_id, period, number):
                    return
                self._remember(db, task_id, part)
        steps = in_steps(entries, lambda entry: len(entry[1][2]))
        first = next(steps, [])
        for step in steps:
            with self._writing() as db:
                if not self._goes_on(db, task_id, period, number):
                    return
                self._add_to_log(db, task_id, period, step)
        self._publish(task_id, period, first, [], number)

    def _erase_remnants(self, task_id: bytes) -> None:
        """Erase what packers that were stopped have left in the log."""
        query = f"SELECT sequence, length(contents) FROM log WHERE task_id = ? AND {_NOT_IN_LOG}"  # noqa: S608
        sizes = self._counts(f"{query} ORDER BY sequence", task_id, task_id)
        for step in in_steps(sizes, lambda row: int(row[1])):
            with self._wiping() as db:
                self._exclude(db, task_id, LOG)
                db.run(
                    f"DELETE FROM log WHERE task_id = ? AND {_NOT_IN_LOG} AND sequence <= ?",  # noqa: S608
                    (task_id, task_id, step[-1][0]),
                )

    def _publish(
        self,
        task_id: bytes,
        period: int,
        first: Sequence[_Entry],
        known: Sequence[_Known],
        number: int = 0,
        *,
        whole: bool = False,
    ) -> None:
        """Add the first rows to the log: from now on the period is there; maybe erase batches."""
        self._forget_earlier(task_id, period)
        with self._erasing() if whole else self._wiping() as db:
            if not self._goes_on(db, task_id, period, number):
                return
            self._add_to_log(db, task_id, period, first)
            db.run("DELETE FROM counted WHERE task_id = ? AND period < ?", (task_id, period))
            self._remember(db, task_id, known)
            self._join_writers(db, task_id, period)
            db.run(f"UPDATE periods SET packed = 1 {OF_A_PERIOD}", (task_id, period))  # noqa: S608
            if whole:
                db.run(f"DELETE FROM batches {OF_A_PERIOD}", (task_id, period))  # noqa: S608
            self._changed(db, task_id)

    def _erase_batches(self, task_id: bytes, period: int) -> None:
        """Erase what `batches` still has of a packed period: ids, and the order of arrival."""
        if not self._is_packed(task_id, period):
            return  # the task was deleted
        for step in in_steps(self._sizes(task_id, period), lambda row: row[1]):
            with self._wiping() as db:
                db.run(
                    f"DELETE FROM batches {OF_A_PERIOD} AND batch <= ?",  # noqa: S608
                    (task_id, period, step[-1][0]),
                )
                self._changed(db, task_id)
        self._wiped()

    def _add_to_log(
        self, db: Database, task_id: bytes, period: int, entries: Iterable[_Entry]
    ) -> None:
        """Add some rows of a period to the log, after those that are read."""
        rest = f"WHERE task_id = ? AND {IN_LOG} ORDER BY sequence DESC LIMIT 1"
        rows = self._read("log", "sequence", rest, task_id, db=db)
        last = rows[0][0] if rows else 0
        for place, (key_id, n, contents) in entries:
            row = (task_id, last + place, key_id, period, n, contents)
            db.run("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)", row)

    def _join_writers(self, db: Database, task_id: bytes, period: int) -> None:
        """Add the tallies of all writers of a closed period up."""
        columns = f"{PLACE}, n, shape, sums"
        total: dict[Cell, Tally] = {}
        for row in self._read("tallies", columns, OF_A_PERIOD, task_id, period, db=db):
            cell, tally = (*row[:3], 0, *row[4:6]), self._tally(*row[6:])
            total[cell] = total[cell] + tally if cell in total else tally
        db.run(f"DELETE FROM tallies {OF_A_PERIOD}", (task_id, period))  # noqa: S608
        for cell, tally in total.items():
            self._put(db, cell, tally)

    # ---- contents in random order ------------------------------------------------------------

    def _permuted(
        self, rows: Sequence[tuple[int, int, int]], *, with_ids: bool
    ) -> Iterator[tuple[int, int, bytes]]:
        """Yield the key, the number and the contents of each row that the log will have."""
        sized = self._named if with_ids else self._sized
        for key_id in sorted({key_id for _, key_id, _ in rows}):
            sizes = [(batch, n) for batch, key, n in rows if key == key_id]
            read = partial(sized, sizes)
            size = len(next(iter(read()))[1]) // sizes[0][1]
            for part in permuted(read, sum(n for _, n in sizes), size, self._rng):
                yield key_id, len(part), part.tobytes()

    def _sized(self, sizes: Iterable[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
        """Yield the number and the contents of the reports of some rows."""
        for batch, n in sizes:
            (contents,) = self._whole("contents", batch)
            yield n, contents

    def _named(self, sizes: Iterable[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
        """Yield the same with its id before each content."""
        for batch, n in sizes:
            ids, contents = self._whole("ids, contents", batch)
            halves = (np.frombuffer(side, np.uint8).reshape(n, -1) for side in (ids, contents))
            yield n, np.concatenate(list(halves), axis=1).tobytes()

    def _whole(self, columns: str, batch: int) -> tuple[bytes, ...]:
        """Return some columns of a row; MismatchError if it is not there any more."""
        for row in self._read("batches", columns, "WHERE batch = ?", batch):
            return row
        raise MismatchError("another process has packed the period, or deleted its task.")

    # ---- ids that stay known -----------------------------------------------------------------

    def _known(
        self, task_id: bytes, period: int, rows: Sequence[tuple[int, int, int]], once: Once | None
    ) -> Iterator[_Known]:
        """Yield the ids of a period that stay known, some thousands at a time."""
        ids = partial(self._rows_of, task_id, period, "ids")
        of_all = sorted_words(ids, sum(n for _, _, n in rows))
        of_some = [] if once is None else [self._said_once([batch for batch, _, _ in rows], once)]
        named = chain(((period, words) for words in of_all), ((period + ONCE, w) for w in of_some))
        for name, words in named:
            for first, chunk in chunks_of_words(distinct(words)):
                yield name, first, chunk

    def _said_once(self, batches: Sequence[int], once: Once) -> Words:
        """Return the words of ids of what devices send once."""
        words = [leading(b"")]
        for batch in batches:
            ids, contents = self._whole("ids, contents", batch)
            words.append(leading(ids)[once(contents)])
        return np.concatenate(words)

    @staticmethod
    def _remember(db: Database, task_id: bytes, known: Iterable[_Known]) -> None:
        """Keep words of ids that were counted; what an earlier packer has kept is the same."""
        for row in known:
            db.run(
                "INSERT INTO counted VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING", (task_id, *row)
            )

    def _forget_earlier(self, task_id: bytes, period: int) -> None:
        """Erase ids of earlier periods that stayed known, if they are too many for one step."""
        rest = "WHERE task_id = ? AND period < ? ORDER BY period, first"
        rows = self._read("counted", "period, first", rest, task_id, period)
        if fits_a_step((row, 8 * CHUNK) for row in rows):
            return
        for step in in_steps(rows, lambda _: 8 * CHUNK):
            with self._wiping() as db:
                for name, first in step:
                    db.run(
                        "DELETE FROM counted WHERE task_id = ? AND period = ? AND first = ?",
                        (task_id, name, first),
                    )
