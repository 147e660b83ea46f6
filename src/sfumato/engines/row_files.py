"""Files of packed reports: one row has many reports of a period, as one blob of their contents.

The columns are those of a collector's log: ``sequence``, the number of the row within its task;
``task``, its id; ``period``; ``n``, how many reports the row has; and ``contents``, which is a
numpy array of the dtype that :class:`~sfumato.wire.reports.Layout` names. The task is in the
metadata of the file, as it was published, and so are the questions that its devices answered; or a
mechanism's configuration, if that is all there is.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from sfumato.engines.counting import RowCounter
from sfumato.engines.rows import Row
from sfumato.errors import InputError, SfumatoError
from sfumato.wire.reading import read_json

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["COLUMNS", "RowFile", "RowWriter", "row_table"]

PREFIX: Final = b"sfumato."
DESCRIBED: Final = {
    b"sfumato": "mechanism",  # of a file of plain reports
    PREFIX + b"mechanism": "mechanism",
    PREFIX + b"questions": "questions",
    PREFIX + b"task": "task",
}
"""The names under which a file has its task, its questions or its mechanism."""
KEYED: Final = b"sfumato.form"
"""The name under which a file of plain reports says what the entries of its vectors stand for."""
COLUMNS: Final = ("sequence", "task", "period", "n", "contents")
UNNUMBERED: Final = ("period", "n", "contents")
"""The columns of files without numbers, whose rows are numbered by their position."""
PLAIN: Final = ("report",)
"""The column of files of plain reports."""
NUMBERS: Final = ("sequence", "period", "n")
"""The columns of whole numbers; the others have bytes."""
PACKED: Final = 1 << 16
"""How many plain reports are taken as one row."""
TOGETHER: Final = 1 << 22
"""The number of bytes of contents from which on no further row is written or read at once."""
MOST_TOGETHER: Final = 64
"""The largest number of rows that are written or read at once."""


class RowWriter:
    """Writes rows of a task into a file; memory does not grow with their number.

    Parameters
    ----------
    file
        The open file.
    counter
        What counts the rows; the file says it to whoever reads it.

    """

    def __init__(self, file: IO[bytes], counter: RowCounter) -> None:
        import pyarrow.parquet as pq  # noqa: PLC0415 -- it takes its time

        about: Any = {
            PREFIX + name.encode(): json.dumps(plain).encode()
            for name, plain in counter.plain().items()
        }
        self._schema = _schema(about)
        self._file: Any = pq.ParquetWriter(
            file,
            self._schema,
            compression="zstd",
            use_dictionary=["task"],  # type: ignore[arg-type] # its types know of bools only
            write_page_checksum=True,
            write_statistics=["sequence", "period"],
        )
        self._size = counter.size
        self._waiting: list[Row] = []
        self._bytes = 0
        self.count = 0
        """The number of reports so far."""

    def write(self, row: Row) -> None:
        """Append a row."""
        self._waiting.append(row)
        self._bytes += len(row.contents)
        self.count += len(row.contents) // self._size
        if self._bytes >= TOGETHER or len(self._waiting) >= MOST_TOGETHER:
            self._flush()

    def _flush(self) -> None:
        rows, self._waiting, self._bytes = self._waiting, [], 0
        self._file.write_table(row_table(rows, self._size, self._schema))

    def finish(self) -> None:
        """Write what is left, and the end of the file."""
        if self._waiting:
            self._flush()
        self._file.close()


def _schema(about: Any = None) -> pa.Schema:
    import pyarrow as pa  # noqa: PLC0415 -- it takes its time

    kinds = (pa.int64(), pa.binary(), pa.int64(), pa.int64(), pa.binary())
    fields = [pa.field(*each, nullable=False) for each in zip(COLUMNS, kinds, strict=True)]
    return pa.schema(fields, about)


def row_table(rows: Iterable[Row], size: int, schema: pa.Schema | None = None) -> pa.Table:
    """Return rows as a table with the columns of files, of reports of ``size`` bytes."""
    import pyarrow as pa  # noqa: PLC0415 -- it takes its time

    plain = [
        (row.sequence, row.task_id, row.period, len(row.contents) // size, row.contents)
        for row in rows
    ]
    return pa.Table.from_pylist(
        [dict(zip(COLUMNS, cells, strict=True)) for cells in plain], schema or _schema()
    )


@dataclass(frozen=True)
class RowFile:
    """A file of packed rows, of which only the description has been read.

    A file of plain reports, as `sfumato randomize` writes it, is one as well: so many neighbours
    are a row.

    Parameters
    ----------
    path
        The file.
    counter
        What counts its rows.
    groups
        The number of its row groups, each of which is read at once.
    rows
        The number of its rows.
    columns
        The columns that are read.

    """

    path: Path
    counter: RowCounter
    groups: int
    rows: int
    columns: tuple[str, ...]

    @classmethod
    def open(cls, path: str | Path) -> RowFile:
        """Read the description of a file; raise InputError unless it has packed rows."""
        path = Path(path)
        with opened_parquet(path) as file:
            schema, groups, firsts = file.schema_arrow, file.num_row_groups, _first_rows(file)
        about = tuple(
            (DESCRIBED[name], text)
            for name, text in sorted((schema.metadata or {}).items())
            if name in DESCRIBED
        )
        if KEYED in (schema.metadata or {}):
            raise InputError(f"{path} has reports about keys, which `sfumato estimate` reads.")
        there = set(schema.names)
        columns = next((each for each in (COLUMNS, UNNUMBERED, PLAIN) if set(each) <= there), None)
        if not about or columns is None:
            raise InputError(
                f"{path} has the columns {', '.join(schema.names)[:80]} and "
                f"{'its' if about else 'no'} task; a file of `sfumato export` has its task and "
                f"{', '.join(COLUMNS)}."
            )
        for name in columns:
            _demand_kind(path, schema.field(name))
        try:
            counter = _described(about)
        except SfumatoError as error:
            raise InputError(f"{path} cannot be counted: {error}") from error
        file = cls(path, counter, groups, firsts[-1], columns)
        return replace(file, rows=sum(len(file.positions(*each)) for each in pairwise(firsts)))

    @property
    def numbered(self) -> bool:
        """Whether its rows have numbers; if not, they are numbered by their position."""
        return self.columns == COLUMNS

    def positions(self, first: int, last: int) -> range:
        """Return the numbers of the rows of a row group, if they have none of their own."""
        return range(first, last, PACKED if self.columns == PLAIN else 1)

    def read(self, taken: Mapping[int, Collection[int]] | None = None) -> Iterator[Row]:
        """Yield all rows, or those at some positions of some row groups, a few at a time."""
        with opened_parquet(self.path) as file:
            first = _first_rows(file)
            for group in range(self.groups) if taken is None else taken:
                position, chosen = first[group], None if taken is None else set(taken[group])
                batches = file.iter_batches(
                    self._at_once(file.metadata.row_group(group)),
                    row_groups=[group],
                    columns=list(self.columns),
                    use_threads=False,
                )
                rows = chain.from_iterable(self._batches(batches, position))
                for index, row in enumerate(rows):
                    if chosen is None or index in chosen:
                        yield row

    def _at_once(self, group: Any) -> int:
        """Return how many rows of a row group are read at once."""
        if self.columns == PLAIN:
            return PACKED
        fitting: int = TOGETHER * group.num_rows // max(group.total_byte_size, 1)
        return max(1, min(MOST_TOGETHER, fitting))

    def _batches(self, batches: Iterable[Any], position: int) -> Iterator[Iterable[Row]]:
        for batch in batches:
            if self.columns == PLAIN:
                yield [Row(position, self.counter.task_id, 0, _joined(batch.column(0)))]
            else:
                yield self._rows(batch, position)
            position += len(batch)

    def numbers(self) -> Iterator[Sequence[int]]:
        """Yield the numbers of the rows of each row group, without reading their contents."""
        with opened_parquet(self.path) as file:
            firsts = _first_rows(file)
            column = file.read(columns=["sequence"])["sequence"] if self.numbered else None
        for first, last in pairwise(firsts):
            if column is None:
                yield self.positions(first, last)
                continue
            numbers = column[first:last]
            if numbers.null_count:
                raise InputError(f"{self.path} has rows without a number.")
            yield numbers.to_pylist()

    def _rows(self, batch: Any, position: int) -> Iterator[Row]:
        size, own = self.counter.size, self.counter.task_id
        cells = {name: batch.column(name).to_pylist() for name in batch.schema.names}
        for index, (n, contents) in enumerate(zip(cells["n"], cells["contents"], strict=True)):
            sequence = cells["sequence"][index] if self.numbered else position + index
            if sequence is None or not n or contents is None or len(contents) != n * size:
                raise InputError(
                    f"row {sequence} of {self.path} has {len(contents or b''):,} bytes for {n} "
                    f"reports; those of its task have {size} bytes each."
                )
            task = cells["task"][index] if self.numbered else own
            if task != own:
                raise InputError(
                    f"row {sequence} of {self.path} is of task {(task or b'').hex()[:12]}; rows of "
                    f"task {own.hex()[:12]} are expected."
                )
            try:
                yield Row(sequence, own, cells["period"][index], contents)
            except InputError as error:
                raise InputError(f"{self.path} cannot be counted: {error}") from None


def _demand_kind(path: Path, field: pa.Field[Any]) -> None:
    """Raise InputError unless a column of a file has whole numbers, or bytes, as its name says."""
    import pyarrow as pa  # noqa: PLC0415 -- it takes its time

    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    if field.name in NUMBERS:
        fits, words = pa.types.is_integer(kind), "whole numbers are"
    elif field.name in PLAIN:
        fits, words = pa.types.is_fixed_size_binary(field.type), "bytes of one length are"
    else:
        fits = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
        words = "bytes are"
    if not fits:
        raise InputError(f"{field.name} of {path} is {field.type}; {words} expected.")


def _joined(column: Any) -> bytes:
    """Return the cells of a column of fixed size, one after the other."""
    size, data = column.type.byte_width, column.buffers()[1]
    if column.null_count:
        raise InputError(f"{column.null_count} reports are missing.")
    start = column.offset * size
    return bytes(data[start : start + len(column) * size].to_pybytes())


@lru_cache(maxsize=8)
def _described(about: tuple[tuple[str, bytes], ...]) -> RowCounter:
    """Return what counts the rows that are described so; files of one lake say the same."""
    return RowCounter.of({name: read_json(text, f"its {name}") for name, text in about})


def _first_rows(file: Any) -> list[int]:
    """Return the position of the first row of each row group, and after them their number."""
    sizes = (file.metadata.row_group(group).num_rows for group in range(file.num_row_groups))
    return [*accumulate(sizes, initial=0)]


@contextmanager
def opened_parquet(path: Path) -> Iterator[Any]:
    """Open a Parquet file; whatever cannot be read of it raises InputError, which names it."""
    import pyarrow.parquet as pq  # noqa: PLC0415 -- it takes its time

    from sfumato.files.opening import readable  # noqa: PLC0415 -- it imports pyarrow, too

    with readable(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        yield file
