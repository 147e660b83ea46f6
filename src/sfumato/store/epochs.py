"""Epochs: what an engine that counts a task acknowledges, and how far it has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from sfumato.core.tally import Place, Tally

__all__ = ["EngineProgress", "Epoch"]


@dataclass(frozen=True)
class Epoch:
    """A run of rows of a task's log that an engine has counted; its number is that of its last row.

    Parameters
    ----------
    first, last
        The numbers of the first and the last row. An epoch begins where the one before has ended.
    tallies
        What the rows add up to, by place.
    refused
        The number of reports of each period that do not count, as no device can have sent them.

    """

    first: int
    last: int
    tallies: Mapping[Place, Tally]
    refused: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class EngineProgress:
    """How far an engine has come with a task.

    Parameters
    ----------
    sequence
        The number of the last row of the log that was acknowledged; 0 if none was.
    counted, refused
        The number of reports that count, and of those that do not.

    """

    sequence: int = 0
    counted: int = 0
    refused: int = 0
