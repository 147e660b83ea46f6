"""Lists of entries, with what is held in each: checked, in order, and each entry once."""

from __future__ import annotations

import numpy as np

from sfumato.arrays import Array
from sfumato.errors import InputError

__all__ = ["check_lists", "in_order"]


def check_lists(positions: Array, held: Array, name: str, kinds: str, right: str) -> None:
    """Raise InputError unless there is a number of the right kind for each position.

    Parameters
    ----------
    positions, held
        The entries that each person lists, and what is held in each.
    name
        What that is called.
    kinds, right
        The kinds of numbers that are allowed, as numpy has them and for people.

    """
    if positions.ndim != 2 or positions.shape != held.shape or not positions.size:
        raise InputError(
            f"position has shape {positions.shape} and {name} {held.shape}; the same number of "
            "columns for at least one person is expected."
        )
    if positions.dtype.kind not in "iu" or held.dtype.kind not in kinds:
        raise InputError(
            f"position and {name} have dtypes {positions.dtype} and {held.dtype}; {right} are "
            "expected."
        )


def in_order(positions: Array, held: Array, dimension: int, rows: str) -> tuple[Array, Array]:
    """Return each row by rising position, with zeros last; raise InputError if one comes twice.

    The position of a zero is ``dimension``, beyond the end, since zeros only fill up a row.
    ``rows`` is what the rows are called in the error.
    """
    moved = np.where(held != 0, positions.astype(np.int64), dimension)
    order = np.argsort(moved, axis=1, kind="stable")
    moved = np.take_along_axis(moved, order, axis=1)
    twice = (moved[:, 1:] == moved[:, :-1]) & (moved[:, 1:] < dimension)
    if twice.any():
        row, column = np.argwhere(twice)[0]
        raise InputError(f"{rows}[{row}] names entry {moved[row, column]} twice; once is enough.")
    return moved, np.take_along_axis(held, order, axis=1)
