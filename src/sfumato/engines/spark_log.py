"""The log of a collector in PostgreSQL as a source of Spark's streams, without a jar.

Its offset is the number of a row. Rows are numbered when a period is packed, in the order in which
they become visible, so that nothing appears behind an offset that was read. A batch has all rows up
to its offset that nobody has acknowledged yet; if it is run again, those that are still to count.
An offset also counts batches, so that there is another one whenever rows wait, even if a store that
was restored from a backup has the same rows again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from sfumato.store.postgres_log import PostgresLog

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType

__all__ = ["COLUMNS", "log_source"]

COLUMNS: Final = "sequence long, key_id long, period long, n long, contents binary"
"""The columns of a row."""
TOGETHER: Final = 4
"""The number of rows that one task of Spark counts."""


class RowRange(InputPartition):
    """The rows from one number to another."""

    def __init__(self, first: int, last: int) -> None:
        super().__init__((first, last))
        self.first, self.last = first, last


class LogStream(DataSourceStreamReader):
    """Reads the rows of a task's log as they appear.

    Parameters
    ----------
    address
        The address of the database.
    task_id
        The id of the task.

    """

    def __init__(self, address: str, task_id: bytes) -> None:
        self._address = address
        self._task_id = task_id

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 -- Spark calls it so
        """Return where a new stream begins: after what was acknowledged."""
        with PostgresLog(self._address, self._task_id) as log:
            return {"sequence": log.acknowledged(), "batch": 0}

    def latestOffset(  # noqa: N802 -- Spark calls it so
        self, start: dict[str, int] | None = None, *_: Any
    ) -> dict[str, int]:
        """Return the number of the last row if rows wait, and else where the last batch ended."""
        with PostgresLog(self._address, self._task_id) as log:
            last = log.last()
            if start is None:  # before PySpark 4.2
                return {"sequence": last, "batch": 0}
            if last <= log.acknowledged():
                return start
        return {"sequence": last, "batch": start.get("batch", 0) + 1}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[RowRange]:
        """Return the rows up to an offset that are not acknowledged, a few to a task.

        Where a batch begins is said by the collector and not by a checkpoint, which may be older
        or newer than a store that was restored.
        """
        del start
        with PostgresLog(self._address, self._task_id) as log:
            first, last = log.acknowledged() + 1, end["sequence"]
        return [
            RowRange(number, min(number + TOGETHER - 1, last))
            for number in range(first, last + 1, TOGETHER)
        ]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        """Yield rows, one at a time; an executor calls it."""
        import pyarrow as pa  # noqa: PLC0415 -- it takes its time

        assert isinstance(partition, RowRange)  # noqa: S101 -- they come from above
        kinds: dict[str, Any] = dict.fromkeys(("sequence", "key_id", "period", "n"), pa.int64())
        schema = pa.schema(kinds | {"contents": pa.binary()})
        with PostgresLog(self._address, self._task_id) as log:
            for row in log.rows(partition.first, partition.last):
                yield pa.RecordBatch.from_pylist([vars(row)], schema)


def log_source(address: str, task_id: bytes) -> type[DataSource]:
    """Return the source of a task's log, to be registered with a session under its name.

    The address is in the source and not among its options, so that neither a plan nor an event
    says which user and password it has.
    """

    class CollectorLog(DataSource):
        """A task's log."""

        @classmethod
        def name(cls) -> str:
            """Return what readers call it."""
            return f"sfumato_log_{task_id.hex()[:16]}"

        def schema(self) -> str:
            """Return its columns."""
            return COLUMNS

        def streamReader(self, schema: StructType) -> LogStream:  # noqa: ARG002, N802
            """Return what reads it as a stream."""
            return LogStream(address, task_id)

    return CollectorLog
