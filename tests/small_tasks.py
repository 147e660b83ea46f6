"""Small tasks, for tests of what becomes of a task, whatever it is about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["lights", "listening"]

KEPT = {"keep": "for ever"}
"""Contents stay, so that a test can count them again."""


def lights(periods: int, period: str, **fields: Any) -> dict[str, Any]:
    """Return the table of a task about lights, which are on or off, without snapshots."""
    task = {"title": "Lights", "epsilon": 2.0, "periods": periods, "period": period, "changes": 2}
    return {**task, **KEPT, "values": {"kind": "binary"}, "mix": {"1": 1.0}, **fields}


def listening(
    periods: int, period: str, items: Sequence[str] = ("home", "work", "road"), **fields: Any
) -> dict[str, Any]:
    """Return the table of a task about where people listen, with the usual mix."""
    values = {"kind": "category", "items": list(items)}
    task = {"title": "Where people listen", "epsilon": 2.0, "periods": periods, "period": period}
    return {**task, **KEPT, "changes": 3, "values": values, **fields}
