"""Files of packed reports: one row has many reports of a period, as one blob of their contents.

The columns are those of a collector's log: ``sequence``, the number of the row within its task;
``task``, its id; ``period``; ``n``, how many reports the row has; and ``contents``, which is a
numpy array of the dtype that :class:`~sfumato.wire.reports.Layout` names. The task is in the
metadata of the file, as it was published, and so are the questions that its devices answered; or a
mechanism's configuration, if that is all there is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import IO, Any, Final

from sfumato.engines.counting import RowCounter
from sfumato.engines.rows import Row
from sfumato.errors import InputError, SfumatoError
from sfumato.wire.reading import read_json

__all__ = ["COLUMNS", "RowFile", "RowWriter"]

PREFIX: Final = b"sfumato."
DESCRIBED: Final = frozenset(PREFIX + name for name in (b"task", b"questions", b"mechanism"))
"""The names under which a file has its task, its questions or its mechanism."""
COLUMNS: Final = ("sequence", "task", "period", "n", "contents")
UNNUMBERED: Final = ("period", "n", "contents")
"""The columns of files without numbers, whose rows are numbered by their position."""
TOGETHER: Final = 8
"""The number of rows that are written or read at once."""


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
        import pyarrow as pa  # noqa: PLC0415 -- it takes its time
        import pyarrow.parquet as pq  # noqa: PLC0415

        about: Any = {
            PREFIX + name.encode(): json.dumps(plain).encode()
            for name, plain in counter.plain().items()
        }
        kinds = (pa.int64(), pa.binary(), pa.int64(), pa.int64(), pa.binary())
        fields = [pa.field(*each, nullable=False) for each in zip(COLUMNS, kinds, strict=True)]
        self._schema = pa.schema(fields, about)
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
        self.count = 0
        """The number of reports so far."""

    def write(self, row: Row) -> None:
        """Append a row."""
        self._waiting.append(row)
        self.count += len(row.contents) // self._size
        if len(self._waiting) >= TOGETHER:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa  # noqa: PLC0415 -- it takes its time

        rows, self._waiting = self._waiting, []
        plain = [dict(zip(COLUMNS, self._cells(row), strict=True)) for row in rows]
        self._file.write_table(pa.Table.from_pylist(plain, self._schema))

    def _cells(self, row: Row) -> tuple[int, bytes, int, int, bytes]:
        n = len(row.contents) // self._size
        return row.sequence, row.task_id, row.period, n, row.contents

    def finish(self) -> None:
        """Write what is left, and the end of the file."""
        if self._waiting:
            self._flush()
        self._file.close()


@dataclass(frozen=True)
class RowFile:
    """A file of packed rows, of which only the description has been read.

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
    numbered
        Whether its rows have numbers; if not, they are numbered by their position.

    """

    path: Path
    counter: RowCounter
    groups: int
    rows: int
    numbered: bool

    @classmethod
    def open(cls, path: str | Path) -> RowFile:
        """Read the description of a file; raise InputError unless it has packed rows."""
        path = Path(path)
        with opened_parquet(path) as file:
            schema, groups, rows = file.schema_arrow, file.num_row_groups, file.metadata.num_rows
        about = tuple(
            (name.removeprefix(PREFIX).decode(), text)
            for name, text in sorted((schema.metadata or {}).items())
            if name in DESCRIBED
        )
        names = set(schema.names)
        if not about or not set(UNNUMBERED) <= names:
            raise InputError(
                f"{path} has the columns {', '.join(schema.names)[:80]} and "
                f"{'its' if about else 'no'} task; a file of `sfumato export` has its task and "
                f"{', '.join(COLUMNS)}."
            )
        try:
            counter = _described(about)
        except SfumatoError as error:
            raise InputError(f"{path} cannot be counted: {error}") from error
        return cls(path, counter, groups, rows, set(COLUMNS) <= names)

    def read(self, groups: Iterable[int] | None = None) -> Iterator[Row]:
        """Yield the rows of some row groups, or of all, a few at a time."""
        columns = list(COLUMNS if self.numbered else UNNUMBERED)
        with opened_parquet(self.path) as file:
            first = _first_rows(file)
            for group in range(self.groups) if groups is None else groups:
                position = first[group]
                for batch in file.iter_batches(
                    TOGETHER, row_groups=[group], columns=columns, use_threads=False
                ):
                    yield from self._rows(batch, position)
                    position += len(batch)

    def numbers(self) -> Iterator[list[int]]:
        """Yield the numbers of the rows of each row group, without reading their contents."""
        with opened_parquet(self.path) as file:
            for first, last in pairwise(_first_rows(file)) if not self.numbered else ():
                yield [*range(first, last)]
            for group in range(self.groups if self.numbered else 0):
                yield file.read_row_group(group, columns=["sequence"])["sequence"].to_pylist()

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
            yield Row(sequence, own, cells["period"][index], contents)


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
