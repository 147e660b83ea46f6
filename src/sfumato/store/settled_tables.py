"""What SQL stores have in common about settled periods: what stays, and what is erased."""

from __future__ import annotations

from typing import Final

import numpy as np

from sfumato.arrays import Bools
from sfumato.store.interface import MOST_LATE
from sfumato.store.merging import leading
from sfumato.store.packing import in_steps
from sfumato.store.packing_tables import ONCE, PackingTables
from sfumato.store.report_tables import HAS_BATCHES, IN_LOG, OF_A_PERIOD

__all__ = ["SettledTables"]

MOST_SEARCHED: Final = 1 << 22
"""The largest number of ids among which late reports are looked up while their period settles."""


class SettledTables(PackingTables):
    """A store in SQL: what is kept of periods that have settled."""

    def unpacked(self, task_id: bytes) -> list[int]:
        """Return the closed periods that are not packed yet, or not to the end."""
        last = "(SELECT coalesce(max(period), 0) FROM releases WHERE task_id = ?)"
        left = f"(packed <> 1 OR {HAS_BATCHES}) AND period <= {last} ORDER BY period"
        rest = f"WHERE task_id = ? AND {left}"
        return [period for (period,) in self._read("periods", "period", rest, task_id, task_id)]

    def erase_contents(self, task_id: bytes, until: int) -> None:
        """Erase the contents of the packed periods up to one, also from the files.

        A row without reports stays behind each step. Nobody reads others of its period any more.
        """
        query = "SELECT sequence, length(contents) FROM log WHERE task_id = ? AND period <= ?"
        there = f"AND n > 0 AND {IN_LOG} ORDER BY sequence"
        sizes = self._counts(f"{query} {there}", task_id, until)
        for step in in_steps(sizes, lambda row: int(row[1])):
            with self._wiping() as db:
                # The last row stays, without contents, so that its number does not come again.
                number = step[-1][0]
                db.run(
                    "DELETE FROM log WHERE task_id = ? AND period <= ? AND sequence < ?",
                    (task_id, until, number),
                )
                db.run(
                    "UPDATE log SET n = 0, contents = ? WHERE task_id = ? AND sequence = ?",
                    (b"", task_id, number),
                )
        if sizes:
            self._wiped()

    def counted(self, task_id: bytes, period: int, ids: bytes) -> Bools:
        """Return a mask of the ids that are known to have been counted in a period of a task."""
        words = leading(ids)
        known = np.zeros(len(words), dtype=bool)
        if len(words) > MOST_LATE:
            return known
        rest = f"{OF_A_PERIOD} AND first <= ? ORDER BY first DESC LIMIT 1"
        for row, word in enumerate(words):
            first = int(word).to_bytes(8, "big")
            for name in (period, period + ONCE):
                for (chunk,) in self._read("counted", "ids", rest, task_id, name, first):
                    known[row] |= bool((np.frombuffer(chunk, ">u8") == word).any())
        if not known.all() and self._n_of(task_id, period) <= MOST_SEARCHED:
            for _, counted in self._rows_of(task_id, period, "ids"):  # it is not packed yet
                known |= np.isin(words, leading(counted))
        return known
