"""Columns of times: each cell is read by itself, from its own bytes or its own number alone."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Bools, Ints
from sfumato.errors import InputError
from sfumato.files import numerals
from sfumato.streams.published.local_time import DAY, read_time

__all__ = ["CellTimes", "times_of"]

_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
# What read_time takes, but for fractions below a microsecond: these forms are cast together.
_DATE: Final = "[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
_CLOCK: Final = r"[T ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?"
_OFFSET: Final = "(Z|[+-]([01][0-9]|2[0-3])(:?[0-5][0-9])?)"
_PLAIN: Final = (
    (f"{_DATE}({_CLOCK})?", pa.timestamp("us")),
    (f"{_DATE}{_CLOCK}{_OFFSET}", pa.timestamp("us", "UTC")),
)
_FARTHEST: Final = 10**12  # seconds: no grid reaches there, and sums of such times fit


class CellTimes(NamedTuple):
    """Times in whole seconds, rounded down.

    Parameters
    ----------
    times
        Wall times or moments; see :mod:`sfumato.streams.published.local_time`.
    are_walls
        Which of them are wall times.
    invalid
        Which cells are no time at all.

    """

    times: Ints
    are_walls: Bools
    invalid: Bools


def times_of(cells: Any, *, untyped: bool) -> CellTimes:
    """Return a column of times: ISO texts, dates or timestamps.

    Parameters
    ----------
    cells
        The column.
    untyped
        Whether cells are those of a CSV file.

    Examples
    --------
    >>> cells = pa.array([b"1970-01-02", b" 1970-01-01T00:00:09Z ", b"later", None])
    >>> moments = times_of(cells, untyped=True)
    >>> moments.times.tolist(), moments.invalid.tolist()
    ([86400, 9, 0, 0], [False, False, True, True])
    >>> times_of(pa.nulls(2), untyped=False).invalid.tolist()
    [True, True]

    """
    kind: Any = cells.type
    if pa.types.is_null(kind):  # a writer that saw no time in any row; one row may have been it
        cells = cells.cast(pa.string())
        kind = cells.type
    if untyped or str(kind) in {"string", "large_string", "string_view"}:
        return _texts(cells)
    if pa.types.is_timestamp(kind):
        unit, is_wall = kind.unit, kind.tz is None
    elif pa.types.is_date(kind):
        unit, is_wall = "ms", True
    else:
        raise InputError(
            f"the times are of type {kind}; ISO texts, dates or timestamps are expected."
        )
    invalid = np.asarray(cells.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)
    in_days = kind == pa.date32()
    whole = cells.view(pa.int32() if in_days else pa.int64())
    numbers = pc.fill_null(whole, 0).to_numpy(zero_copy_only=False).astype(np.int64)
    times = numbers * DAY if in_days else numbers // _PER_SECOND[unit]
    return CellTimes(np.clip(times, -_FARTHEST, _FARTHEST), np.full(times.size, is_wall), invalid)


def _texts(cells: Any) -> CellTimes:
    """Return the times that texts say."""
    texts = numerals.trimmed(numerals.as_bytes(cells))
    known = _together(texts)
    if known is not None:
        return known
    coded = texts.dictionary_encode()
    read = [read_time(numerals.decoded(text)) for text in coded.dictionary.to_pylist()]
    times = np.array([0 if time is None else time[0] for time in read], dtype=np.int64)
    are_walls = np.array([time is None or time[1] for time in read], dtype=np.bool_)
    invalid = np.array([time is None for time in read], dtype=np.bool_)
    indices = coded.indices.to_numpy(zero_copy_only=False)
    return CellTimes(times[indices], are_walls[indices], invalid[indices])


def _together(texts: Any) -> CellTimes | None:
    """Return the times of texts that all have the same plain form; None if some have not."""
    strings = numerals.as_string(texts)
    for pattern, kind in _PLAIN:
        if pc.all(pc.match_substring_regex(texts, rf"\A{pattern}\z"), min_count=0).as_py():
            try:
                micros = pc.cast(strings, kind).view(pa.int64())
            except pa.ArrowInvalid:  # some day is not in the calendar
                return None
            times = micros.to_numpy(zero_copy_only=False) // _PER_SECOND["us"]
            valid = np.zeros(times.size, dtype=np.bool_)
            return CellTimes(times, np.full(times.size, kind.tz is None), valid)
    return None
