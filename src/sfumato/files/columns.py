"""Columns of a CSV or Parquet file, rows as rows, batch by batch: memory stays small.

All columns that are asked for come from one reader, so that a row is a row however the file is laid
out. A CSV file has no types of its own: whoever asks for a column says what its cells are, and each
cell is then read by itself.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from stat import S_ISREG
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from sfumato.errors import InputError
from sfumato.files import numerals
from sfumato.files.dialects import USUAL, Dialect

__all__ = ["Kind", "RowBatch", "Table", "readable"]

_MAGIC: Final = b"PAR1"
_ROWS: Final = 1 << 16
_BYTES: Final = 1 << 18  # of another encoding, decoded at once
_BLOCK: Final = 1 << 20  # bytes of a CSV file, parsed at once


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what a reader says about a broken file into one sentence."""
    if not S_ISREG(path.stat().st_mode):
        msg = f"{path} is not a regular file; the name of a file is expected."
        raise InputError(msg)
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeError, csv.Error) as error:
        if isinstance(error, OSError) and error.filename:
            raise
        # A reader may quote the whole row it stumbled over: people's data have no place here.
        said = re.sub(r"(Expected \d+ columns, got \d+):.*", r"\1", str(error).splitlines()[0])
        said = re.sub("straddling object.*", "a row is too long, or a quote is not closed", said)
        msg = f"{path} cannot be read: {said.rstrip('.')}."
        raise InputError(msg) from error


class Kind(Enum):
    """What the cells of a column are taken for; columns of a Parquet file keep their own type."""

    CELLS = "bytes as they are"
    TEXT = "text"
    NUMBER = "numbers"


@dataclass(frozen=True)
class RowBatch:
    """Some rows, the place of the first one, and which share of the file is read.

    Parameters
    ----------
    columns
        One for each column that was asked for, in that order and of one length.
    names
        What they are called.
    untyped
        Whether they come from a file without types, where cells are bytes.
    row
        The place of the first row in the file, from 0 on.
    share
        Which share of the file is read.

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
    """A CSV or Parquet file with a header."""

    path: Path
    dialect: Dialect = USUAL

    def header(self) -> list[str]:
        """Return the names of the columns."""
        with readable(self.path):
            return self._names()

    def batches(self, wanted: Sequence[tuple[str | None, Kind]], rows: int) -> Iterator[RowBatch]:
        """Yield at most so many rows at a time, of some columns and what their cells are.

        A name may be None if there is only one column.
        """
        row = 0
        with readable(self.path):
            names = self._names()
            chosen = [self._chosen(name, names) for name, _ in wanted]
            is_parquet = self._is_parquet()
            read = self._parquet(chosen, rows) if is_parquet else self._csv(chosen, names)
            for table, share in read:
                for start in range(0, table.num_rows, rows):
                    part = table.slice(start, rows)
                    columns = []
                    for name, (_, kind) in zip(chosen, wanted, strict=True):
                        with self.located(name, row, part.num_rows):
                            column = _plain(part.column(name))
                            columns.append(column if is_parquet else _READERS[kind](column))
                    yield RowBatch(tuple(columns), tuple(chosen), not is_parquet, row, share)
                    row += part.num_rows
        if not row:
            msg = f"{self.path} has no rows; at least one value is expected."
            raise InputError(msg)

    def columns(self, wanted: Mapping[str, tuple[str, Kind]]) -> dict[str, list[Any]]:
        """Return whole columns, with None where a cell is empty.

        Parameters
        ----------
        wanted
            The name of each column and what its cells are, by what to call it in the result.

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
        """Say in which rows (the first one is row 1) a value stands that cannot be used."""
        try:
            yield
        except InputError as error:
            msg = f"{self.path}, column {name}, rows {row + 1}..{row + count}: {error}"
            raise InputError(msg) from error

    def _is_parquet(self) -> bool:
        with readable(self.path), self.path.open("rb") as file:
            return file.read(len(_MAGIC)) == _MAGIC

    def _names(self) -> list[str]:
        if self._is_parquet():
            return list(pq.read_schema(self.path).names)
        encoding, errors = self.dialect.encoding, "backslashreplace"
        with self.path.open(encoding=encoding, errors=errors, newline="") as file:
            names = next(csv.reader(file, delimiter=self.dialect.delimiter), [])
        return [name.removeprefix("\ufeff") if not place else name
                for place, name in enumerate(names)]  # fmt: skip

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
        """Return rows in which the texts that mean no value are none."""
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
            msg = f"{self.path} is empty; a table with a header is expected."
            raise InputError(msg)
        name = names[0] if wanted is None and len(names) == 1 else wanted
        if name is None:
            msg = f"{self.path} has the columns {', '.join(names)}; name one of them as the column."
            raise InputError(msg)
        if names.count(name) != 1:
            many = "more than one" if name in names else "no"
            msg = f"{self.path} has {many} column {name!r}; it has {', '.join(names)}."
            raise InputError(msg)
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
    """Return names of which no two are the same; a name that is there once is kept."""
    return [
        name if names.count(name) == 1 else f"{name}\0{place}" for place, name in enumerate(names)
    ]


class _AsUtf8(io.RawIOBase):
    """A file in another encoding, read as UTF-8; what cannot be decoded is one value's affair."""

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
