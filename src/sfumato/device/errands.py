"""What a flush does for each task, and what became of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sfumato.device.transport import Patient, Transport, Unreachable
from sfumato.errors import SfumatoError

__all__ = ["Errand", "Flushed"]

LONGEST_PROBLEM: Final = 400
"""Characters of a sentence about what went wrong, at most."""


@dataclass(frozen=True)
class Flushed:
    """What became of the reports that were due.

    Parameters
    ----------
    sent, refused, waiting
        How many reports were taken, refused for good, and kept for another time.
    problems
        What went wrong, in one sentence for each task that had trouble, by the task's id.

    """

    sent: int = 0
    refused: int = 0
    waiting: int = 0
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def problem(self) -> str:
        """The first of the problems; empty if there is none."""
        return next(iter(self.problems.values()), "")

    def __add__(self, other: Flushed) -> Flushed:
        return Flushed(
            self.sent + other.sent,
            self.refused + other.refused,
            self.waiting + other.waiting,
            {
                **self.problems,
                **{k: v for k, v in other.problems.items() if k not in self.problems},
            },
        )


@dataclass(frozen=True)
class Errand:
    """What a flush does for one task, and how long it may take.

    Parameters
    ----------
    task_id
        The task.
    end
        When the time is up, by the steady clock.
    force
        Whether to try again at once what has failed a moment ago.
    carrier
        The transport that the device has.

    """

    task_id: bytes
    end: float
    force: bool
    carrier: Transport

    @property
    def left(self) -> float:
        """The seconds that are left of it."""
        return max(0.0, self.end - time.monotonic())

    @property
    def transport(self) -> Transport:
        """The transport, told how long it may take; raise Unreachable if there is no time left."""
        if not self.left:
            raise Unreachable("there was no time left for it")
        return self.carrier.within(self.left) if isinstance(self.carrier, Patient) else self.carrier

    def trouble(self, error: Exception, waiting: int = 0) -> Flushed:
        """Return what went wrong, in one sentence."""
        problem = str(error)
        if not isinstance(error, (SfumatoError, Unreachable)):
            problem = f"something unforeseen went wrong ({type(error).__name__}: {problem})"
        return Flushed(waiting=waiting, problems={self.task_id.hex(): problem[:LONGEST_PROBLEM]})
