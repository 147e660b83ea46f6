"""Streams in files: one row for each value that a device observed."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sfumato.cli import columns
from sfumato.errors import InputError
from sfumato.lab.fleets import read_streams
from sfumato.streams.weave.values import Attributes, Items, Values

__all__ = ["header", "read"]


def header(path: Path) -> list[str]:
    """Return the names of a CSV or Parquet file's columns."""
    with columns.readable(path):
        with path.open("rb") as file:
            if file.read(4) == b"PAR1":
                return list(pq.read_schema(path).names)
        with path.open(encoding="utf-8-sig", newline="") as file:
            return next(csv.reader(file), [])


def read(path: Path, values: Values, periods: int) -> NDArray[Any]:
    """Return the streams of a file with the columns device, period and the value's own."""
    if isinstance(values, Attributes):
        told = {name: items.labels for name, items in values.categories}
    else:
        told = {"item" if isinstance(values, Items) else "value": values.labels}
    table: dict[str, Any] = {
        "device": columns.cells(path, "device", text=True),
        "period": columns.cells(path, "period", text=False),
    }
    for name, labels in told.items():
        words = any(isinstance(label, str) for label in labels) and values.kind != "binary"
        table[name] = columns.cells(path, name, text=words)
    lengths = {len(column) for column in table.values()}
    if len(lengths) > 1:
        raise InputError(f"{path} has columns of {sorted(lengths)} rows; one length is expected.")
    try:
        return read_streams(values, periods, {name: _array(cell) for name, cell in table.items()})
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def _array(cells: list[Any]) -> NDArray[Any]:
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array
