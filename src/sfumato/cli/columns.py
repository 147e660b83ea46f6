"""One column of a CSV or Parquet file, batch by batch: memory does not grow with the file."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from stat import S_ISREG
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

from sfumato.errors import InputError

__all__ = ["Batch", "Column", "cells", "readable"]

_MAGIC = b"PAR1"


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn what a reader says about a broken file into one sentence."""
    if not S_ISREG(path.stat().st_mode):
        msg = f"{path} is not a regular file; the name of a file is expected."
        raise InputError(msg)
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError, csv.Error) as error:
        if isinstance(error, OSError) and error.filename:
            raise
        # A reader may quote the whole row it stumbled over: people's data have no place here.
        said = re.sub(r"(Expected \d+ columns, got \d+):.*", r"\1", str(error).splitlines()[0])
        msg = f"{path} cannot be read: {said.rstrip('.')}."
        raise InputError(msg) from error


@dataclass(frozen=True)
class Batch:
    """Some values, the row of the first one, and which share of the file is read."""

    values: Any
    row: int
    share: float


@dataclass(frozen=True)
class Column:
    """A column of a file; ``name`` may be left out if there is only one.

    ``text`` says what the cells of a CSV are, which has no types of its own: text, or numbers.
    """

    path: Path
    name: str | None
    text: bool

    def batches(self, rows: int) -> Iterator[Batch]:
        """Yield at most so many rows at a time."""
        with readable(self.path):
            with self.path.open("rb") as file:
                parquet = file.read(len(_MAGIC)) == _MAGIC
            row = 0
            for values, share in self._parquet(rows) if parquet else self._csv():
                for start in range(0, len(values), rows):
                    part = values.slice(start, rows)
                    if not (parquet or self.text):
                        with self.located(row, len(part)):
                            part = _numbers(part)
                    yield Batch(part, row, share)
                    row += len(part)
        if not row:
            msg = f"{self.path} has no rows; at least one value is expected."
            raise InputError(msg)

    @contextmanager
    def located(self, row: int, count: int) -> Iterator[None]:
        """Say in which rows (the first one is row 1) a value was found that cannot be used."""
        try:
            yield
        except InputError as error:
            column = f", column {self.name}" if self.name else ""
            msg = f"{self.path}{column}, rows {row + 1}..{row + count}: {error}"
            raise InputError(msg) from error

    def _parquet(self, rows: int) -> Iterator[tuple[Any, float]]:
        # A buffered reader holds a few pages of a column, not all of its row group.
        with pq.ParquetFile(self.path, buffer_size=1 << 20, pre_buffer=False) as file:
            name = self._chosen(file.schema_arrow.names)
            done, total = 0, max(file.metadata.num_rows, 1)
            for batch in file.iter_batches(rows, columns=[name]):
                values = batch.column(name)
                done += len(values)
                if isinstance(values, pa.DictionaryArray):
                    values = values.dictionary_decode()
                yield values, done / total

    def _csv(self) -> Iterator[tuple[Any, float]]:
        with self.path.open(encoding="utf-8-sig", newline="") as file:
            name = self._chosen(next(csv.reader(file), []))
        cells = pa.csv.ConvertOptions(
            include_columns=[name],
            column_types={name: pa.string()},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        )
        lines = pa.csv.ParseOptions(ignore_empty_lines=False)
        total = max(self.path.stat().st_size, 1)
        with self.path.open("rb") as file:
            for batch in pa.csv.open_csv(file, convert_options=cells, parse_options=lines):
                yield batch.column(name), file.tell() / total

    def _chosen(self, names: list[str]) -> str:
        if not names:
            msg = f"{self.path} is empty; a table with a header is expected."
            raise InputError(msg)
        name = names[0] if self.name is None and len(names) == 1 else self.name
        if name is None:
            msg = f"{self.path} has the columns {', '.join(names)}; pick one with --column."
            raise InputError(msg)
        if names.count(name) != 1:
            found = "more than one" if name in names else "no"
            msg = f"{self.path} has {found} column {name!r}; it has {', '.join(names)}."
            raise InputError(msg)
        return name


def cells(path: Path, name: str, *, text: bool) -> list[Any]:
    """Return a whole column, with None where a cell is empty."""
    found: list[Any] = []
    for batch in Column(path, name, text=text).batches(1 << 16):
        found += batch.values.to_pylist()
    return found


def _numbers(column: Any) -> Any:
    """Return cells as whole numbers or else as floating-point ones."""
    trimmed = pc.utf8_trim_whitespace(column)
    for kind in (pa.int64(), pa.float64()):
        try:
            return pc.cast(trimmed, kind)
        except pa.ArrowInvalid:
            continue
    for index, cell in enumerate(trimmed.to_pylist()):
        try:
            float(cell or 0)
        except ValueError as error:
            msg = f"values[{index}] is {cell!r}; a number is expected."
            raise InputError(msg) from error
    msg = "some value is no number that fits into 64 bits."
    raise InputError(msg)
