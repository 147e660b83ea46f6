"""Vectors that arrive entry by entry: what every mechanism's stream on a device can do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from sfumato.errors import InputError
from sfumato.randomness import Coins

__all__ = ["EntryStream", "are_counters", "check_entry", "drawn_sign"]


class EntryStream(Protocol):
    """The device's half of a mechanism for one vector, with its secrets and a few counters."""

    def observe(self, entry: int, coins: Coins) -> int:
        """Return the symbol to send for the next entry; 0 for nothing."""

    def save(self) -> tuple[int, ...]:
        """Return the state as plain numbers, which are as secret as the vector itself."""


def check_entry(entry: int) -> None:
    """Raise InputError unless an entry is -1, 0 or 1."""
    if entry not in (-1, 0, 1):
        raise InputError(f"entry is {entry!r}; -1, 0 or 1 is expected.")


def are_counters(state: Any, count: int, most: int) -> bool:
    """Return whether a state is a list of ``count`` whole numbers in 0..most."""
    return (
        isinstance(state, list)
        and len(state) == count
        and all(type(number) is int and 0 <= number <= most for number in state)
    )


def drawn_sign(row: Sequence[int], coins: Coins) -> int:
    """Return 1, -1 or 0, drawn with the first, second and third of these weights."""
    drawn = coins.below(sum(row))
    if drawn < row[0]:
        return 1
    return -1 if drawn < row[0] + row[1] else 0
