"""Recorded streams from tables with one row for each value that a device observed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato import frames
from sfumato.arrays import Array, Ints
from sfumato.errors import InputError, SfumatoError
from sfumato.streams.kinds import Attributes, Binary, Items, Values

__all__ = ["read_devices", "read_periods", "read_streams"]

UNKNOWN: Final = -2
"""The code of a period without a row; -1 is the code of a row without an item."""


def read_streams(values: Values, periods: int, table: Any) -> Array:
    """Return the streams of a table with one row for each observed value.

    The columns are ``device``, ``period`` (1..periods) and the value: ``value``; for attributes one
    column for each; for sets ``item``, with one row for each item, or an empty cell for the empty
    set. The rows of a device are in the order of time. In a period without a row the device was
    away, and it repeats its last value. Before its first row it has nothing, which a category does
    not allow.

    Examples
    --------
    >>> table = {"device": [7, 7, 8], "period": [1, 3, 2], "value": [1, 0, 1]}
    >>> read_streams(Binary(), 4, table).tolist()
    [[1, 1, 0, 0], [0, 1, 1, 1]]

    """
    if isinstance(values, Attributes):
        columns = tuple(name for name, _ in values.categories)
    else:
        columns = ("item",) if isinstance(values, Items) else ("value",)
    cells = frames.picked(table, ["device", "period", *columns])
    period = read_periods(cells["period"], periods)
    device, names = read_devices(cells["device"], period, again=isinstance(values, Items))
    rows = list(zip(*(cells[name].tolist() for name in columns), strict=True))
    codes = _codes(values, columns, rows, cells["device"], period)
    if isinstance(values, Items):
        streams = np.full((len(names), periods, values.width), UNKNOWN, dtype=np.int8)
        streams[device, period - 1] = 0
        there = codes >= 0
        streams[device[there], period[there] - 1, codes[there]] = 1
    elif isinstance(values, Attributes):
        streams = np.full((len(names), periods, len(columns)), UNKNOWN, dtype=np.int32)
        streams[device, period - 1] = codes
    else:
        streams = np.full((len(names), periods), UNKNOWN, dtype=np.int32)
        streams[device, period - 1] = codes
    return _repeated(values, streams, names)


def read_periods(cells: Array, periods: int) -> Ints:
    """Return a column of periods; raise InputError unless all are periods of the task."""
    for row, cell in enumerate(cells.tolist()):
        whole = isinstance(cell, int) or (isinstance(cell, float) and cell.is_integer())
        if not whole or isinstance(cell, bool) or not 1 <= cell <= periods:
            raise InputError(
                f"period is {cell!r} in row {row + 1}; a whole number in 1..{periods} is expected."
            )
    return cells.astype(np.int64)


def read_devices(cells: Array, period: Ints, *, again: bool = False) -> tuple[Ints, list[Hashable]]:
    """Return each row's device as a number from 0 on, and the devices' names.

    The rows of a device must be in the order of time; ``again`` allows several rows for one period.
    """
    indices: dict[Hashable, int] = {}
    rows = np.empty(cells.size, dtype=np.int64)
    for row, name in enumerate(cells.tolist()):
        if frames.absent(name):
            raise InputError(f"device is missing in row {row + 1}; a name or number is expected.")
        rows[row] = indices.setdefault(name, len(indices))
    if not indices:
        raise InputError("the table has no rows; at least one device is expected.")
    _refuse_backwards(rows, period, list(indices), again=again)
    return rows, list(indices)


def _refuse_backwards(device: Ints, period: Ints, names: list[Hashable], *, again: bool) -> None:
    """Raise InputError if a device's rows go back in time or, unless ``again``, repeat a period."""
    order = np.argsort(device, kind="stable")
    same = np.diff(device[order]) == 0
    step = np.diff(period[order])
    wrong = np.flatnonzero(same & ((step < 0) if again else (step <= 0)))
    if wrong.size:
        row = order[wrong[0] + 1]
        before = period[order[wrong[0]]]
        verb = "again" if period[row] == before else "after"
        other = "" if verb == "again" else f" {before}"
        raise InputError(
            f"device {names[device[row]]!r} has period {period[row]} {verb}{other} (row "
            f"{row + 1}); a device's periods only go forward."
        )


def _codes(
    values: Values,
    columns: tuple[str, ...],
    rows: list[tuple[Any, ...]],
    devices: Array,
    period: Ints,
) -> NDArray[np.int32]:
    """Return the codes of each row's values; each distinct row is checked once."""
    known: dict[tuple[Any, ...], Any] = {}
    codes = []
    for index, row in enumerate(rows):
        if row not in known:
            try:
                known[row] = _code(values, columns, row)
            except SfumatoError as error:
                raise InputError(
                    f"device {devices[index]!r}, period {period[index]}: {error}"
                ) from error
        codes.append(known[row])
    return np.array(codes, dtype=np.int32)


def _code(values: Values, columns: tuple[str, ...], row: tuple[Any, ...]) -> Any:
    cells = [None if frames.absent(cell) else cell for cell in row]
    if isinstance(values, Items):
        return -1 if cells[0] is None else int(values.encode([cells[0]]).argmax())
    if isinstance(values, Attributes):
        bits = values.encode(dict(zip(columns, cells, strict=True)))
        return [_place(bits[block]) for block in values.blocks]
    bits = values.encode(cells[0])
    return int(bits[0]) if isinstance(values, Binary) else _place(bits)


def _place(bits: NDArray[np.int8]) -> int:
    """Return the index of the one, or -1 if there is none."""
    return int(bits.argmax()) if bits.any() else -1


def _repeated(values: Values, streams: Array, names: Iterable[Hashable]) -> Array:
    """Fill periods without a row with the value before, and those before the first with nothing."""
    seen = np.asarray(streams > UNKNOWN).reshape(*streams.shape[:2], -1).max(axis=2)
    last = np.maximum.accumulate(np.where(seen, np.arange(streams.shape[1]), -1), axis=1)
    late = last[:, 0] < 0
    if values.always_there and late.any():
        index = int(np.argmax(late))
        raise InputError(
            f"device {list(names)[index]!r} has no value before period "
            f"{int(seen[index].argmax()) + 1}; a {values.kind} is there from period 1 on, unless "
            "it is optional."
        )
    rows = np.arange(len(streams))[:, None]
    filled: Array = streams[rows, np.maximum(last, 0)]
    filled[last < 0] = 0 if isinstance(values, (Binary, Items)) else -1
    return filled
