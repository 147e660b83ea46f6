"""What SQL stores have in common about settled periods: packing, the log, and what stays known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final

import numpy as np

from sfumato.arrays import Bools
from sfumato.core.tally import Tally
from sfumato.store.id_set import Words
from sfumato.store.interface import MOST_LATE, Once
from sfumato.store.merging import distinct, leading, sorted_words
from sfumato.store.packing import MOST_BYTES, chunks_of_words, permuted
from sfumato.store.report_tables import PLACE, Cell, ReportTables
from sfumato.store.task_tables import Database
from sfumato.wire.sqlite_tables import COUNT

__all__ = ["SettledTables"]

MOST_SEARCHED: Final = 1 << 22
"""The largest number of ids among which late reports are looked up while their period settles."""
ONCE: Final = 1 << 31
"""What is added to a period where the ids of what devices send once in a task are kept."""

_OF_A_PERIOD: Final = "WHERE task_id = ? AND period = ?"


class SettledTables(ReportTables):
    """A store in SQL: what is kept of periods that have settled."""

    def unpacked(self, task_id: bytes) -> list[int]:
        """Return the closed periods whose contents are not in the log yet."""
        rest = (
            "WHERE task_id = ? AND packed = 0 AND period <= "
            "(SELECT coalesce(max(period), 0) FROM releases WHERE task_id = ?) ORDER BY period"
        )
        return [period for (period,) in self._read("periods", "period", rest, task_id, task_id)]

    def pack(
        self,
        task_id: bytes,
        period: int,
        *,
        with_ids: bool = False,
        keeps: bool = True,
        once: Once | None = None,
    ) -> None:
        """Move the contents of a closed period into the log, in random order and without ids."""
        rest = f"{_OF_A_PERIOD} AND n > 0"
        rows = self._read("batches", "batch, key_id, n", rest, task_id, period)
        ids = partial(self._rows_of, task_id, period, "ids")
        words = sorted_words(ids, sum(n for _, _, n in rows))
        once_ids = None if once is None else self._said_once([batch for batch, _, _ in rows], once)
        kept = rows if keeps else []
        prepared: Iterable[tuple[int, int, bytes]] = self._permuted(kept, with_ids=with_ids)
        query = "SELECT CAST(coalesce(sum(length(contents)), 0) AS BIGINT), 0 FROM batches"
        ((size, _),) = self._counts(f"{query} {_OF_A_PERIOD}", task_id, period)
        if size <= MOST_BYTES:
            prepared = list(prepared)  # so that others need not wait for it
        with self._erasing() as db:  # ids and the order of arrival are gone from the files
            self._exclude(db, task_id, period)
            if self._read("periods", "packed", _OF_A_PERIOD, task_id, period, db=db) != [(0,)]:
                return
            ((last, _),) = db.rows(
                "SELECT coalesce(max(sequence), 0), 0 FROM log WHERE task_id = ?",
                (task_id,),
                cells=(COUNT, COUNT),
            )
            for sequence, (key_id, n, contents) in enumerate(prepared, last + 1):
                entry = (task_id, sequence, key_id, period, n, contents)
                db.run("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)", entry)
            db.run("DELETE FROM counted WHERE task_id = ? AND period < ?", (task_id, period))
            for part in words:
                self._remember(db, task_id, period, part)
            if once_ids is not None:
                self._remember(db, task_id, period + ONCE, once_ids)
            db.run(f"DELETE FROM batches {_OF_A_PERIOD}", (task_id, period))  # noqa: S608
            self._join_writers(db, task_id, period)
            db.run(f"UPDATE periods SET packed = 1 {_OF_A_PERIOD}", (task_id, period))  # noqa: S608
            self._changed(db, task_id)

    @staticmethod
    def _remember(db: Database, task_id: bytes, name: int, words: Words) -> None:
        """Keep the words of ids that were counted, under a number that stands for their period."""
        for first, chunk in chunks_of_words(distinct(words)):
            db.run("INSERT INTO counted VALUES (?, ?, ?, ?)", (task_id, name, first, chunk))

    def _said_once(self, batches: Sequence[int], once: Once) -> Words:
        """Return the words of ids of what devices send once."""
        words = [leading(b"")]
        for batch in batches:
            ((ids, contents),) = self._read("batches", "ids, contents", "WHERE batch = ?", batch)
            words.append(leading(ids)[once(contents)])
        return np.concatenate(words)

    def erase_contents(self, task_id: bytes, until: int) -> None:
        """Erase the contents of the packed periods up to one, also from the files."""
        old = "WHERE task_id = ? AND period <= ?"
        rest = f"{old} ORDER BY sequence DESC LIMIT 1"
        with self._erasing() as db:
            last = self._read("log", "sequence, n", rest, task_id, until, db=db)
            if not last or not last[0][1]:
                return
            # The last row stays, without contents, so that its number does not come again.
            ((number, _),) = last
            db.run(f"DELETE FROM log {old} AND sequence < ?", (task_id, until, number))  # noqa: S608
            db.run(
                "UPDATE log SET n = 0, contents = ? WHERE task_id = ? AND sequence = ?",
                (b"", task_id, number),
            )

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
            ((contents,),) = self._read("batches", "contents", "WHERE batch = ?", batch)
            yield n, contents

    def _named(self, sizes: Iterable[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
        """Yield the same with its id before each content."""
        for batch, n in sizes:
            ((ids, contents),) = self._read("batches", "ids, contents", "WHERE batch = ?", batch)
            halves = (np.frombuffer(side, np.uint8).reshape(n, -1) for side in (ids, contents))
            yield n, np.concatenate(list(halves), axis=1).tobytes()

    def _join_writers(self, db: Database, task_id: bytes, period: int) -> None:
        """Add the tallies of all writers of a closed period up."""
        columns = f"{PLACE}, n, shape, sums"
        total: dict[Cell, Tally] = {}
        for row in self._read("tallies", columns, _OF_A_PERIOD, task_id, period, db=db):
            cell, tally = (*row[:3], 0, *row[4:6]), self._tally(*row[6:])
            total[cell] = total[cell] + tally if cell in total else tally
        db.run(f"DELETE FROM tallies {_OF_A_PERIOD}", (task_id, period))  # noqa: S608
        for cell, tally in total.items():
            self._put(db, cell, tally)

    def counted(self, task_id: bytes, period: int, ids: bytes) -> Bools:
        """Return a mask of the ids that are known to have been counted in a period of a task."""
        words = leading(ids)
        known = np.zeros(len(words), dtype=bool)
        if len(words) > MOST_LATE:
            return known
        rest = f"{_OF_A_PERIOD} AND first <= ? ORDER BY first DESC LIMIT 1"
        for row, word in enumerate(words):
            first = int(word).to_bytes(8, "big")
            for name in (period, period + ONCE):
                for (chunk,) in self._read("counted", "ids", rest, task_id, name, first):
                    known[row] |= bool((np.frombuffer(chunk, ">u8") == word).any())
        if not known.all() and self._n_of(task_id, period) <= MOST_SEARCHED:
            for _, counted in self._rows_of(task_id, period, "ids"):  # it is not packed yet
                known |= np.isin(words, leading(counted))
        return known
