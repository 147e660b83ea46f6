"""Columns of CSV and Parquet files, read batch by batch so that memory stays small.

All columns that are asked for come from one reader, so that cells of one row stay together however
the file is laid out. A CSV file has no types: whoever asks for a column says what its cells are,
and each cell is then read by itself.
"""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from sfumato.errors import ConfigurationError, InputError
from sfumato.files import numerals
from sfumato.files.dialects import USUAL, Dialect
from sfumato.files.opening import is_parquet, readable
from sfumato.frames import check_column

__all__ = ["Kind", "RowBatch", "Table"]

_ROWS: Final = 1 << 16
_BYTES: Final = 1 << 18  # of another encoding, decoded at once
_BLOCK: Final = 1 << 20  # bytes of a CSV file, parsed at once


class Kind(Enum):
    """How the cells of a CSV file are read; columns of a Parquet file keep their own type."""

    CELLS = "bytes as they are"
    TEXT = "text"
    NUMBER = "numbers"


@dataclass(frozen=True)
class RowBatch:
    """Some rows of a file.

    Parameters
    ----------
    columns
        The cells of each column that was asked for, in the order in which it was.
    names
        The names of these columns.
    untyped
        Whether the file has no types, so that cells are bytes.
    row
        The number of rows before these.
    share
        The share of the file that has been read, up to 1.

    """

    columns: tuple[Any, ...]
    names: tuple[str, ...]
    untyped: bool
    row: int
    share: float

    def __len__(self) -> int:
        return len(self.columns[0])


@dataclass(frozen=True)
class Table:
    """A CSV or Parquet file with a header.

    Parameters
    ----------
    path
        The file.
    dialect
        How the file is written, if it is a CSV file.

    """

    path: Path
    dialect: Dialect = USUAL

    def header(self) -> list[str]:
        """Return the names of the columns."""
        with readable(self.path):
            return self._names()

    def rows(self, most: int) -> int:
        """Return the number of rows; of a CSV file, ``most`` if there are as many or more."""
        with readable(self.path):
            if is_parquet(self.path):
                return int(pq.read_metadata(self.path).num_rows)
            names, count = self._names(), 0
            for batch, _ in self._csv(names[:1], names):
                count += batch.num_rows
                if count >= most:
                    break
        return min(count, most)

    def batches(self, wanted: Sequence[tuple[str | None, Kind]], rows: int) -> Iterator[RowBatch]:
        """Yield the rows of some columns.

        Parameters
        ----------
        wanted
            The name of each column, and what its cells are; the name may be None if the file has
            only one column.
        rows
            The largest number of rows at a time.

        """
        row = 0
        with readable(self.path):
            names = self._names()
            chosen = [self._chosen(name, names) for name, _ in wanted]
            typed = is_parquet(self.path)
            tables = self._parquet(chosen, rows) if typed else self._csv(chosen, names)
            for table, share in tables:
                for start in range(0, table.num_rows, rows):
                    part = table.slice(start, rows)
                    columns = []
                    for name, (_, kind) in zip(chosen, wanted, strict=True):
                        with self.located(name, row, part.num_rows):
                            column = _plain(part.column(name))
                            columns.append(column if typed else _READERS[kind](column))
                    yield RowBatch(tuple(columns), tuple(chosen), not typed, row, share)
                    row += part.num_rows
        if not row:
            raise InputError(f"{self.path} has no rows; at least one value is expected.")

    def columns(self, wanted: Mapping[str, tuple[str, Kind]]) -> dict[str, list[Any]]:
        """Return whole columns, with None where a cell is empty.

        Parameters
        ----------
        wanted
            The name of each column and what its cells are, by the key it has in the result.

        """
        # A list can hold whole numbers beside others: each is read as what it is.
        read = [
            (name, Kind.CELLS if kind is Kind.NUMBER else kind) for name, kind in wanted.values()
        ]
        lists: dict[str, list[Any]] = {role: [] for role in wanted}
        for batch in self.batches(read, _ROWS):
            for (role, (name, kind)), column in zip(wanted.items(), batch.columns, strict=True):
                numbers = batch.untyped and kind is Kind.NUMBER
                with self.located(name, batch.row, len(batch)):
                    lists[role] += numerals.listed(column) if numbers else column.to_pylist()
        return lists

    @contextmanager
    def located(self, name: str, row: int, count: int) -> Iterator[None]:
        """Let an error about a value name the file, the column and the rows, counted from 1."""
        try:
            yield
        except InputError as error:
            raise InputError(
                f"{self.path}, column {name}, rows {row + 1}..{row + count}: {error}"
            ) from error

    def _names(self) -> list[str]:
        if is_parquet(self.path):
            self._refuse_dialect()
            return list(pq.read_schema(self.path).names)
        encoding, errors = self.dialect.encoding, "backslashreplace"
        with self.path.open(encoding=encoding, errors=errors, newline="") as file:
            names = next(csv.reader(file, delimiter=self.dialect.delimiter), [])
        return [name.removeprefix("\ufeff") if not index else name
                for index, name in enumerate(names)]  # fmt: skip

    def _refuse_dialect(self) -> None:
        """Raise ConfigurationError if it is said how a file is written that is no CSV file."""
        for field in fields(self.dialect):
            value = getattr(self.dialect, field.name)
            if value != getattr(USUAL, field.name):
                raise ConfigurationError(
                    f"{field.name} is {value!r} where {self.path} is a Parquet file; only a CSV "
                    "file has one."
                )

    def _parquet(self, chosen: list[str], rows: int) -> Iterator[tuple[Any, float]]:
        # A buffered reader holds a few pages of a column, not all of its row group.
        with pq.ParquetFile(self.path, buffer_size=1 << 20, pre_buffer=False) as file:
            done, total = 0, max(file.metadata.num_rows, 1)
            for batch in file.iter_batches(rows, columns=list(dict.fromkeys(chosen))):
                batch.validate(full=True)  # text need not be text in a damaged file
                done += batch.num_rows
                yield batch, done / total

    def _csv(self, chosen: list[str], names: list[str]) -> Iterator[tuple[Any, float]]:
        cells = pa.csv.ConvertOptions(
            include_columns=list(dict.fromkeys(chosen)),
            column_types=dict.fromkeys(chosen, pa.binary()),
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        # The header is read above, whatever bytes are in it: here it is a row to leave out.
        rows = pa.csv.ReadOptions(
            column_names=_apart(names), skip_rows_after_names=1, block_size=_BLOCK
        )
        lines = pa.csv.ParseOptions(
            delimiter=self.dialect.delimiter, newlines_in_values=True, ignore_empty_lines=False
        )
        total = max(self.path.stat().st_size, 1)
        with self.path.open("rb") as file:
            source: Any = file if self.dialect.is_utf8 else _AsUtf8(file, self.dialect.encoding)
            for batch in pa.csv.open_csv(source, rows, lines, cells):
                yield self._with_missing(batch), file.tell() / total

    def _with_missing(self, batch: Any) -> Any:
        """Return the rows with nulls for the texts that mean "no value"."""
        if not self.dialect.missing:
            return batch
        texts = pa.array([text.strip(numerals.BLANKS).encode() for text in self.dialect.missing])
        columns = []
        for column in batch.columns:
            absent = pc.is_in(numerals.blank_free(column), value_set=texts)
            columns.append(pc.if_else(absent, pa.scalar(None, column.type), column))
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    def _chosen(self, wanted: str | None, names: list[str]) -> str:
        if not names:
            raise InputError(f"{self.path} is empty; a table with a header is expected.")
        name = names[0] if wanted is None and len(names) == 1 else wanted
        if name is None:
            raise InputError(
                f"{self.path} has the columns {', '.join(names)}; name one of them as the column."
            )
        check_column(name, names, str(self.path))
        return name


_READERS: Final = {
    Kind.CELLS: lambda column: column,
    Kind.TEXT: numerals.as_text,
    Kind.NUMBER: numerals.typed,
}


def _plain(column: Any) -> Any:
    """Return a column without a dictionary of its own."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _apart(names: list[str]) -> list[str]:
    """Return the names with an index behind each that is there more than once."""
    return [
        name if names.count(name) == 1 else f"{name}\0{index}" for index, name in enumerate(names)
    ]


class _AsUtf8(io.RawIOBase):
    """A file in another encoding, read as UTF-8; bytes that cannot be decoded are escaped."""

    def __init__(self, file: BinaryIO, encoding: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)("backslashreplace")
        self._ready = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        while not self._ended and (size < 0 or len(self._ready) < size):
            chunk = self._file.read(_BYTES)
            self._ended = not chunk
            text = self._decoder.decode(chunk, final=self._ended)
            self._ready += text.encode("utf-8", "backslashreplace")
        end = len(self._ready) if size < 0 else size
        part, self._ready = self._ready[:end], self._ready[end:]
        return part
