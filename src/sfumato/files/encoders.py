"""Tables as bytes: one way to write each format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from sfumato.files.writing import complete_or_absent

__all__ = ["write_columns"]


def write_columns(
    columns: Mapping[str, list[Any]],
    path: Path,
    *,
    force: bool,
    about: Mapping[str, str] | None = None,
) -> None:
    """Write plain columns as a table; a Parquet file also keeps what is said about them."""
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
            pa.csv.write_csv(table, file)
        else:
            pq.write_table(table, file)
