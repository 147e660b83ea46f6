"""The log of a store in PostgreSQL, for engines on other machines, which only read it.

A user that may read the tables ``log`` and ``progress`` and nothing else is enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType
from typing import Any, Final, Self

import psycopg

from sfumato.store.postgres import SETTINGS, translated
from sfumato.store.records import LogRow

__all__ = ["PostgresLog"]

_LAST: Final = """
    WITH newest AS (
        SELECT min(sequence) AS first FROM log WHERE task_id = %(task)s AND period =
            (SELECT period FROM log WHERE task_id = %(task)s ORDER BY sequence DESC LIMIT 1)
    )
    SELECT coalesce(max(sequence), 0) FROM log, newest WHERE task_id = %(task)s AND (
        sequence < first OR first = 1 OR EXISTS (
            SELECT 1 FROM log AS beside WHERE beside.task_id = %(task)s
            AND (beside.sequence = first - 1 OR (beside.sequence = first AND n = 0))
        )
    )
"""
"""The number of the last row that is there to be read.

The first row of a period comes last, and its others are not there before. So the rows of the newest
period are left out if the row before them is missing, unless the first one tells that rows before
it were erased.
"""


class PostgresLog:
    """A connection that reads the log of one task.

    Parameters
    ----------
    dsn
        The address of the database.
    task_id
        The id of the task.

    """

    def __init__(self, dsn: str, task_id: bytes) -> None:
        self._task_id = task_id
        with translated():
            self._connection: psycopg.Connection[Any] = psycopg.connect(
                dsn,
                autocommit=True,
                **SETTINGS,  # type: ignore[arg-type]
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._connection.close()

    def last(self) -> int:
        """Return the number of the last row; rows that appear later have larger numbers."""
        return self._number(_LAST)

    def acknowledged(self) -> int:
        """Return the number of the last row that an engine has acknowledged."""
        query = "SELECT coalesce(max(sequence), 0) FROM progress WHERE task_id = %(task)s"
        return self._number(query)

    def _number(self, query: str) -> int:
        values = {"task": self._task_id}
        with translated():
            row = self._connection.execute(query, values, binary=True).fetchone()
        return int(row[0]) if row else 0

    def rows(self, first: int, last: int) -> Iterator[LogRow]:
        """Yield the rows from one number to another that have not been erased, one at a time."""
        query = (
            "SELECT sequence, key_id, period, n, contents FROM log "
            "WHERE task_id = %s AND sequence = %s AND n > 0"
        )
        for number in range(first, last + 1):
            with translated():
                cursor = self._connection.execute(query, (self._task_id, number), binary=True)
                row = cursor.fetchone()
            if row is not None:
                yield LogRow(*row)
