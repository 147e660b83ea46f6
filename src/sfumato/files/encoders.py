"""Tables as bytes: one way to write each format, whoever writes it."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from sfumato.files.writing import complete_or_absent

__all__ = ["RowGroups", "csv_rows", "write_columns"]


def csv_rows(table: pa.Table, *, header: bool = False) -> bytes:
    r"""Return the rows of a table as lines of CSV, after the names of its columns if asked for.

    Examples
    --------
    >>> csv_rows(pa.table({"to": [64], "sum": [5.0]}), header=True)
    b'"to","sum"\n64,5\n'

    """
    lines = io.BytesIO()
    pa.csv.write_csv(table, lines, pa.csv.WriteOptions(include_header=header))
    return lines.getvalue()


class RowGroups:
    """Writes rows in groups of one size, however they arrive.

    The pieces that a file is read in depend on the lengths of its lines, and those on its values:
    nothing of them may be seen in the file that is written.

    Parameters
    ----------
    write
        Writes one group of rows.
    rows
        How many rows a group has; the last one may have fewer.

    """

    def __init__(self, write: Callable[[pa.Table], object], rows: int) -> None:
        self._write = write
        self._rows = rows
        self._waiting: list[pa.Table] = []
        self._count = 0

    def add(self, table: pa.Table) -> None:
        """Take further rows, and write the groups that are complete."""
        self._waiting.append(table)
        self._count += table.num_rows
        if self._count >= self._rows:
            self._flush(self._count // self._rows * self._rows)

    def finish(self) -> None:
        """Write the rows that are left."""
        if self._count:
            self._flush(self._count)

    def _flush(self, count: int) -> None:
        table = pa.concat_tables(self._waiting)
        for start in range(0, count, self._rows):
            group = table.slice(start, min(self._rows, count - start))
            self._write(group.combine_chunks())
        self._waiting = [table.slice(count)]
        self._count -= count


def write_columns(
    columns: Mapping[str, list[Any]],
    path: Path,
    *,
    force: bool,
    about: Mapping[str, str] | None = None,
) -> None:
    """Write columns as a CSV or Parquet file; a Parquet file also keeps what describes them."""
    # A column has one type: items that are words and numbers are all written as words.
    alike = {
        name: cells
        if len({type(cell) for cell in cells} - {type(None)}) < 2
        else [*map(str, cells)]
        for name, cells in columns.items()
    }
    table = pa.table(alike).replace_schema_metadata(dict(about or {}))
    with complete_or_absent(path, force=force) as file:
        if path.suffix.lower() == ".csv":
            file.write(csv_rows(table, header=True))
        else:
            pq.write_table(table, file)
