"""Streams in files: one row for each value that a device observed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.cli.columns import Kind, Table
from sfumato.errors import InputError
from sfumato.lab.fleets import read_streams
from sfumato.streams.weave.values import Attributes, Items, Values

__all__ = ["read"]


def read(table: Table, values: Values, periods: int) -> NDArray[Any]:
    """Return the streams of a file with the columns device, period and the value's own."""
    if isinstance(values, Attributes):
        parts = {name: items.labels for name, items in values.categories}
    else:
        parts = {"item" if isinstance(values, Items) else "value": values.labels}
    wanted = {"device": ("device", Kind.TEXT), "period": ("period", Kind.NUMBER)}
    for name, labels in parts.items():
        words = any(isinstance(label, str) for label in labels) and values.kind != "binary"
        wanted[name] = (name, Kind.TEXT if words else Kind.NUMBER)
    cells = table.columns(wanted)
    try:
        return read_streams(values, periods, {name: _array(cell) for name, cell in cells.items()})
    except InputError as error:
        raise InputError(f"{table.path}: {error}") from error


def _array(cells: list[Any]) -> NDArray[Any]:
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array
