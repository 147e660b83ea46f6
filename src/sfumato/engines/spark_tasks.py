"""What executors run: batches of Arrow in, tallies out; it needs no PySpark.

Whatever they refuse comes back as a sentence with the name of its error, because a task that fails
would be tried again, and end in a traceback.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfumato import errors
from sfumato.core.stream import Place
from sfumato.core.tally import Tallies
from sfumato.engines.counting import RowCounter
from sfumato.engines.lake import RowRun
from sfumato.engines.row_files import RowFile
from sfumato.engines.rows import Row
from sfumato.errors import MismatchError, SfumatoError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["count_rows", "count_runs", "raise_refused", "sum_once"]

Batches = Iterable["pa.RecordBatch"]


def count_rows(sent: bytes, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield the number and the tallies of each row; ``sent`` is the counter."""
    counter = RowCounter.decode(sent)
    for batch in batches:
        numbers, tallies, refused = [], [], []
        for cells in _cells(batch):
            numbers.append(cells[0])
            one, why = _refusing(lambda cells=cells: counter.count(Row(*cells)))
            tallies.append(one)
            refused.append(why)
        yield _batch(sequence=numbers, tallies=tallies, refused=refused)


def sum_once(batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield the sum of counted rows, in which each number counts once."""
    tallies, refused = _refusing(lambda: Tallies.sum(_new(batches)))
    yield _batch(tallies=[tallies], refused=[refused])


def _new(batches: Batches) -> Iterator[Tallies[Place]]:
    """Yield the tallies of rows with numbers that have not come before."""
    seen: dict[int, int] = {}
    for batch in batches:
        for sequence, tallies, refused in _cells(batch):
            raise_refused(refused)
            if sequence not in seen:
                seen[sequence] = hash(tallies)
                yield Tallies.decode(tallies)
            elif seen[sequence] != hash(tallies):
                raise MismatchError(f"row {sequence} is there twice, with different reports.")


def count_runs(sent: bytes, batches: Batches) -> Iterator[pa.RecordBatch]:
    """Yield the sum of the runs that batches name; ``sent`` is the counter."""
    counter = RowCounter.decode(sent)
    tallies, refused = _refusing(lambda: Tallies.sum(map(counter.count, _read(counter, batches))))
    yield _batch(tallies=[tallies], refused=[refused])


def _read(counter: RowCounter, batches: Batches) -> Iterator[Row]:
    for batch in batches:
        for path, columns, groups, taken in _cells(batch):
            file = RowFile(Path(path), counter, 0, 0, tuple(columns))
            yield from RowRun(file, dict(zip(groups, taken, strict=True)), 0).rows()


def _refusing(count: Any) -> tuple[bytes, str | None]:
    """Return tallies as bytes, or why there are none."""
    try:
        return count().encode(), None
    except SfumatoError as error:
        return b"", f"{type(error).__name__} {error}"


def raise_refused(refused: str | None) -> None:
    """Raise the error that an executor has met, if there is one."""
    if refused is not None:
        name, _, sentence = refused.partition(" ")
        raise getattr(errors, name, SfumatoError)(sentence)


def _cells(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    return zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _batch(**columns: Sequence[Any]) -> pa.RecordBatch:
    import pyarrow as pa  # noqa: PLC0415 -- it takes its time

    kinds = {"sequence": pa.int64(), "tallies": pa.binary(), "refused": pa.string()}
    arrays = [pa.array(cells, kinds[name]) for name, cells in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, list(columns))
