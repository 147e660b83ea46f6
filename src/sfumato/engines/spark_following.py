"""Following the log of a collector with Spark: a stream per task, whose sink is the collector.

Executors open the seals. They get private keys with a broadcast of each batch, which Spark encrypts
where it touches a disk and which is dropped after the batch; neither a plan nor a checkpoint nor
an event has them. A batch becomes an epoch, which the collector counts once, so that it does not
matter at which moment a driver is killed, or whether its checkpoint is lost.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from sfumato.engines.log_counting import CountedRows, LogCounter
from sfumato.engines.log_following import PAUSE, AcknowledgedEpoch, followed
from sfumato.engines.spark_log import log_source
from sfumato.engines.spark_session import explained, secret_broadcast
from sfumato.errors import MismatchError, SfumatoError
from sfumato.store import Epoch, LogRow, Store, StoredTask
from sfumato.store.key_wrapping import KeyWrapping
from sfumato.store.store_addresses import DatabaseAway
from sfumato.wire.published import Published

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark import Broadcast
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["SparkFollower"]

COUNTED: Final = "last long, counted binary, refused string"
"""The columns of what a task of Spark has counted: sums, or why there are none."""


@dataclass(frozen=True)
class SparkFollower:
    """Counts what waits in the logs of a store with Spark.

    Parameters
    ----------
    session
        The session of Spark, with the settings :data:`~sfumato.engines.spark_session.SECRETIVE`
        and, on a cluster, a network that is encrypted.
    store
        The store of a collector, in PostgreSQL.
    address
        The address of its database, by which executors reach it.
    checkpoint
        The folder of this machine in which Spark keeps how far it is, one for each store.
    wrapping
        The way in which the store keeps private keys.

    """

    session: SparkSession
    store: Store
    address: str
    checkpoint: Path
    wrapping: KeyWrapping
    _epochs: SimpleQueue[AcknowledgedEpoch] = field(
        default_factory=SimpleQueue, init=False, repr=False
    )
    _failures: list[SfumatoError] = field(default_factory=list, init=False, repr=False)

    def catch_up(self, task_id: bytes | None = None) -> Iterator[AcknowledgedEpoch]:
        """Count and acknowledge what waits now, and yield each epoch that was acknowledged."""
        queries: list[StreamingQuery] = []
        failed: Exception | None = None
        try:
            with explained(self._master):
                queries += [self.start(task.task_id) for task in followed(self.store, task_id)]
                for query in queries:
                    try:
                        query.processAllAvailable()
                    except Exception as error:  # noqa: BLE001 -- the other tasks have their turn
                        failed = failed or self._reason(error)
                if failed is not None:
                    raise failed
        finally:
            _stop(queries)
            yield from self._acknowledged()

    def follow(
        self, task_id: bytes | None = None, pause: float = PAUSE
    ) -> Iterator[AcknowledgedEpoch | DatabaseAway | MismatchError]:
        """Count what waits and what comes, for ever, also of tasks that are published later."""
        queries: dict[bytes, StreamingQuery] = {}
        try:
            while True:
                try:
                    with explained(self._master):
                        yield from self._kept_going(queries, task_id)
                except DatabaseAway as error:
                    yield error
                except SfumatoError:
                    yield from self._acknowledged()
                    raise
                yield from self._acknowledged()
                time.sleep(pause)
        finally:
            _stop(queries.values())

    @property
    def _master(self) -> str:
        return str(self.session.sparkContext.master)

    def _acknowledged(self) -> Iterator[AcknowledgedEpoch]:
        """Yield what was acknowledged since the last time."""
        while not self._epochs.empty():
            yield self._epochs.get()

    def _kept_going(
        self, queries: dict[bytes, StreamingQuery], task_id: bytes | None
    ) -> Iterator[DatabaseAway | MismatchError]:
        """Start the streams of new tasks, and those that have ended; yield why they have."""
        known = {task.task_id for task in followed(self.store, task_id)}
        for each in queries.keys() - known:
            queries.pop(each).stop()
        for each in known:
            query = queries.get(each)
            if query is not None and query.isActive:
                continue
            queries[each] = self.start(each)
            ended = None if query is None else query.exception()
            if ended is None:
                continue
            reason = self._reason(ended)
            if not isinstance(reason, (DatabaseAway, MismatchError)):
                raise reason
            yield reason

    def _reason(self, ended: Exception) -> Exception:
        """Return why a stream has ended: what this process has met, or a process of Spark."""
        return self._failures.pop() if self._failures else _away(ended)

    def start(self, task_id: bytes) -> StreamingQuery:
        """Start the stream of a task; it goes on until it is stopped."""
        source = log_source(self.address, task_id)
        self.session.dataSource.register(source)
        stream = self.session.readStream.format(source.name()).load()
        query = (
            stream.writeStream.queryName(f"sfumato {task_id.hex()[:16]}")
            .option("checkpointLocation", f"file://{self.checkpoint.absolute() / task_id.hex()}")
            .trigger(processingTime=f"{PAUSE} seconds")
            .foreachBatch(partial(self._acknowledge, task_id))
        )
        return query.start()

    def _acknowledge(self, task_id: bytes, batch: DataFrame, number: int) -> None:
        """Count what is new of a batch, and acknowledge it; a batch may come again."""
        del number  # an epoch is known by its rows, whatever a checkpoint calls it
        try:
            self._count_once(task_id, batch)
        except SfumatoError as error:
            self._failures.append(error)
            raise

    def _count_once(self, task_id: bytes, batch: DataFrame) -> None:
        while True:
            (stored,) = followed(self.store, task_id)
            after = self.store.progress(task_id).sequence
            last, counted = self._counted(stored, batch.filter(batch["sequence"] > after))
            if last <= after:
                return
            epoch = Epoch(after + 1, last, counted.tallies, counted.refused)
            try:
                is_new = self.store.acknowledge(task_id, epoch)
            except MismatchError:
                if self.store.progress(task_id).sequence == after:
                    raise
                continue  # another engine was faster
            if is_new:
                self._epochs.put(AcknowledgedEpoch.of(Published.parse(stored.published), epoch))
            return

    def _counted(self, stored: StoredTask, batch: DataFrame) -> tuple[int, CountedRows]:
        """Return the number of the last row of a batch, and what its rows add up to."""
        secret = stored.published, self.wrapping.unwrapped(stored.task_id, stored.keys)
        with secret_broadcast(self.session, secret) as shared:
            rows = batch.mapInArrow(partial(count_log_rows, shared), COUNTED).collect()
        total, last = CountedRows(), 0
        for row in rows:
            if row["refused"] is not None:
                raise MismatchError(row["refused"])
            last = max(last, row["last"])
            total += CountedRows.decode(bytes(row["counted"]))
        return last, total


def _stop(queries: Iterable[StreamingQuery]) -> None:
    """Stop streams; those of a Java machine that has ended are over."""
    for query in queries:
        with suppress(Exception):
            query.stop()


def _away(error: Exception) -> Exception:
    """Return an error of a stream, as DatabaseAway if that is what a process of Spark has met."""
    words = str(error)
    if DatabaseAway.__name__ not in words:
        return error
    sentence = words.partition(f"{DatabaseAway.__name__}: ")[2].partition("\n")[0]
    return DatabaseAway(sentence or "the database cannot be read.")


def count_log_rows(shared: Broadcast[Any], batches: Iterable[RecordBatch]) -> Iterator[RecordBatch]:
    """Yield what the rows of some batches add up to; an executor calls it."""
    import pyarrow as pa  # noqa: PLC0415 -- it takes its time

    total, last, refused = CountedRows(), 0, None
    try:
        published, keys = shared.value
        counter = LogCounter(Published.parse(published), keys)
        for batch in batches:
            for row in batch.to_pylist():
                total += counter.count(LogRow(**row))
                last = max(last, row["sequence"])
    except SfumatoError as error:  # a task that fails is tried again, and ends in a traceback
        refused = str(error)
    kinds: dict[str, Any] = {"last": pa.int64(), "counted": pa.binary(), "refused": pa.string()}
    form = pa.schema(kinds)
    sum_ = {"last": last, "counted": total.encode(), "refused": refused}
    yield pa.RecordBatch.from_pylist([sum_], form)
