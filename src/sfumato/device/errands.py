"""The work of a flush for one task, and its result."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from sfumato.device.transport import Patient, Transport, Unreachable
from sfumato.errors import SfumatoError

__all__ = ["Errand", "Flushed"]

LONGEST_PROBLEM: Final = 400
"""The largest number of characters of a sentence about a problem."""


@dataclass(frozen=True)
class Flushed:
    """The result of a flush.

    Parameters
    ----------
    sent, refused, waiting
        The numbers of reports that were accepted, refused for good, and kept for later.
    problems
        One sentence for each task with a problem, by the task's id.

    """

    sent: int = 0
    refused: int = 0
    waiting: int = 0
    problems: Mapping[str, str] = field(default_factory=dict)

    @property
    def problem(self) -> str:
        """The first problem; empty if there is none."""
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
    """The work of a flush for one task, with its time limit.

    Parameters
    ----------
    task_id
        The id of the task.
    end
        The end of its time, on the monotonic clock.
    force
        Whether to retry at once what has failed recently.
    carrier
        The device's transport.

    """

    task_id: bytes
    end: float
    force: bool
    carrier: Transport

    @property
    def left(self) -> float:
        """The remaining time in seconds."""
        return max(0.0, self.end - time.monotonic())

    @property
    def transport(self) -> Transport:
        """The transport, limited to the remaining time; Unreachable if no time is left."""
        if not self.left:
            raise Unreachable("there was no time left for it")
        return self.carrier.within(self.left) if isinstance(self.carrier, Patient) else self.carrier

    def trouble(self, error: Exception, waiting: int = 0) -> Flushed:
        """Return a result with one sentence about an error."""
        problem = str(error)
        if not isinstance(error, (SfumatoError, Unreachable)):
            problem = f"something unforeseen went wrong ({type(error).__name__}: {problem})"
        return Flushed(waiting=waiting, problems={self.task_id.hex(): problem[:LONGEST_PROBLEM]})
