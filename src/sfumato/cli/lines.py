"""Numbers as text, one on each line or in each cell; what is none becomes not-a-number."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["LONGEST", "of_cells", "of_lines"]

LONGEST: Final = 400  # bytes of a line that can still be a number


def of_lines(lines: list[bytes]) -> NDArray[Any]:
    """Return the number on each line.

    Examples
    --------
    >>> of_lines([b"1", b" 2 ", b"3"])
    array([1, 2, 3])
    >>> of_lines([b"1.5", b"spam", b"", b"-1e3"])
    array([    1.5,     nan,     nan, -1000. ])

    """
    if max(map(len, lines), default=0) > LONGEST:
        lines = [line if len(line) <= LONGEST else b"" for line in lines]
    try:
        return of_cells(pa.array(lines, pa.binary()).cast(pa.string()))
    except pa.ArrowInvalid:  # bytes that are no text
        return np.array([_number(line) for line in lines])


def of_cells(cells: Any) -> NDArray[Any]:
    """Return the number in each cell of a column of text."""
    trimmed = pc.utf8_trim_whitespace(cells)
    if not trimmed.null_count:
        for kind in (pa.int64(), pa.float64()):
            try:
                numbers: NDArray[Any] = pc.cast(trimmed, kind).to_numpy(zero_copy_only=False)
            except pa.ArrowInvalid:
                continue
            return numbers
    return np.array([_number(cell) for cell in trimmed.to_pylist()], dtype=np.float64)


def _number(text: str | bytes | None) -> float:
    if text is None or (b"_" if isinstance(text, bytes) else "_") in text:  # type: ignore[operator]
        return np.nan
    try:
        return float(text)
    except ValueError:
        return np.nan
