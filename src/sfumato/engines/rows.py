"""Rows of reports, which engines count once."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final

from sfumato.errors import InputError

__all__ = ["Row", "Seen"]

MOST: Final = 1 << 63
"""The number from which on a whole number has no room in a column."""


@dataclass(frozen=True)
class Row:
    """Contents of reports of one task and period, which are counted together, once.

    Raises InputError for cells that no row has.

    Parameters
    ----------
    sequence
        The number of the row, unique within the task, and the same whenever the row comes again.
    task_id
        The id of the task.
    period
        The period of all contents.
    contents
        The opened contents of the reports, concatenated.

    """

    sequence: int
    task_id: bytes
    period: int
    contents: bytes

    def __post_init__(self) -> None:
        """Raise InputError for anything but whole numbers and bytes."""
        for name in ("sequence", "period"):
            number = getattr(self, name)
            if type(number) is not int or not 0 <= number < MOST:
                what = repr(number)[:40]
                raise InputError(f"{name} of a row is {what}; 0 or a larger number is expected.")
        for name in ("task_id", "contents"):
            cell = getattr(self, name)
            if not isinstance(cell, bytes):
                raise InputError(f"{name} of a row is {repr(cell)[:40]}; bytes are expected.")


@dataclass
class Seen:
    """The numbers seen so far, as runs of consecutive numbers, which takes little memory.

    Examples
    --------
    >>> seen = Seen()
    >>> [seen.add(number) for number in (0, 2, 1, 2)], seen.runs
    ([True, True, True, False], [[0, 3]])

    """

    runs: list[list[int]] = field(default_factory=list)

    def add(self, number: int) -> bool:
        """Add a number; return whether it is new."""
        index = bisect_right(self.runs, number, key=lambda run: run[0])
        before = self.runs[index - 1] if index else [-1, -1]
        if before[0] <= number < before[1]:
            return False
        joins_before = index > 0 and before[1] == number
        joins_after = index < len(self.runs) and self.runs[index][0] == number + 1
        if joins_before and joins_after:
            before[1] = self.runs.pop(index)[1]
        elif joins_before:
            before[1] += 1
        elif joins_after:
            self.runs[index][0] = number
        else:
            self.runs.insert(index, [number, number + 1])
        return True
