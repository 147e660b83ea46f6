"""What the adapted methods share: a filter with a fixed step, and a controller of when to look.

Filter and controller are as their papers have them. The variance of an answer is known exactly here
and needs no tuning; the variance of a step is a public guess and is never taken from the data.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.streams.window.readings import Reading

if TYPE_CHECKING:
    from sfumato.streams.window.window import Window

__all__ = ["STEP", "Controller", "Tracker"]

Floats = NDArray[np.float64]

STEP: Final = 0.0025
"""The deviation of a curve's step that is taken for granted, as a share of its range."""


@dataclass
class Tracker:
    """A Kalman filter whose level takes steps of one known variance, for each item alike.

    Parameters
    ----------
    step
        The variance of a step.
    mean, variance
        What is known of each item; the variance is infinite before anything was seen.

    Examples
    --------
    >>> tracker = Tracker(0.0, np.zeros(1), np.full(1, np.inf))
    >>> for value in (0.2, 0.4):
    ...     tracker.predict()
    ...     tracker.correct(Reading(np.array([value]), np.array([0.01]), 0.01, 0.0, n=1))
    >>> tracker.mean.round(3).tolist(), tracker.variance.round(3).tolist()
    ([0.3], [0.005])

    """

    step: float
    mean: Floats
    variance: Floats

    @classmethod
    def of(cls, protocol: Window, step: float) -> Self:
        """Return a filter that has seen nothing; the step is a share of the values' range."""
        unknown = np.full(protocol.width, np.inf)
        return cls((step * protocol.reach) ** 2, protocol.nothing, unknown)

    @property
    def started(self) -> bool:
        """Whether anything was seen."""
        return bool(np.isfinite(self.variance).all())

    def predict(self) -> None:
        """Let a period pass."""
        self.variance = self.variance + self.step

    def correct(self, reading: Reading) -> None:
        """Take in what was answered."""
        if not self.started:
            self.mean, self.variance = reading.values, reading.variance
            return
        gain = self.variance / (self.variance + reading.variance)
        self.mean = self.mean + gain * (reading.values - self.mean)
        self.variance = (1 - gain) * self.variance


@dataclass
class Controller:
    """A controller of when to look next: it weighs an error now and its mean of late.

    Its gains are the papers', 0.9 and 0.1; how fast the error grows has none.

    Parameters
    ----------
    pace
        How fast the interval between two looks changes (theta).
    memory
        How many errors it remembers.

    Examples
    --------
    >>> controller = Controller(pace=2.0, memory=2)
    >>> [round(controller.trouble(error), 3) for error in (1.0, 3.0)]
    [0.95, 2.9]
    >>> controller.schedule(period=3, change=0.75)
    >>> controller.wait, controller.due
    (2.5, 5)

    """

    pace: float
    memory: int
    wait: float = field(default=1.0, init=False)
    """The interval between two looks."""
    due: int = field(default=1, init=False)
    """The period of the next look."""

    def __post_init__(self) -> None:
        """Begin with no errors."""
        self._errors: deque[float] = deque(maxlen=self.memory)

    def trouble(self, error: float) -> float:
        """Take in an error; return how bad it is, given those before."""
        self._errors.append(error)
        return 0.9 * error + 0.1 * (sum(self._errors) / self.memory)

    def schedule(self, period: int, change: float) -> None:
        """Change the interval by so many paces, and wait that long after a look in this period."""
        self.wait = max(1.0, self.wait + self.pace * change)
        self.due = period + int(self.wait)
