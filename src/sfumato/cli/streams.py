"""Streams in files: one row for each value that a device observed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.cli.columns import Kind, Table
from sfumato.errors import InputError
from sfumato.simulation import Observed

__all__ = ["read"]


def read(table: Table, observed: Observed) -> NDArray[Any]:
    """Return the streams of a file with the columns device, period and the value's own."""
    wanted = {"device": ("device", Kind.TEXT), "period": ("period", Kind.NUMBER)}
    for name, words in observed.columns.items():
        wanted[name] = (name, Kind.TEXT if words else Kind.NUMBER)
    cells = table.columns(wanted)
    try:
        return observed.read({name: _array(cell) for name, cell in cells.items()})
    except InputError as error:
        raise InputError(f"{table.path}: {error}") from error


def _array(cells: list[Any]) -> NDArray[Any]:
    array = np.empty(len(cells), dtype=object)
    array[:] = cells
    return array
