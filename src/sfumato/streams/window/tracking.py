"""The base of FAST and RescueDP: a filter with a fixed step, and a controller of looks.

Filter and controller are those of the papers. The variance of an answer is known exactly here and
needs no tuning; the variance of a step is a public guess that never depends on the data.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from sfumato.arrays import Floats
from sfumato.streams.window.readings import Reading

if TYPE_CHECKING:
    from sfumato.streams.window.window import Window

__all__ = ["STEP", "Controller", "Tracker"]


STEP: Final = 0.0025
"""The default standard deviation of a curve's step, as a share of its range."""


@dataclass
class Tracker:
    """A Kalman filter whose level has steps of one known variance, the same for all items.

    Parameters
    ----------
    step
        The variance of a step.
    mean, variance
        The mean and variance of each item; the variance is infinite before the first reading.

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
        """Return a new filter; the step is given as a share of the range of values."""
        unknown = np.full(protocol.width, np.inf)
        return cls((step * protocol.reach) ** 2, protocol.nothing, unknown)

    @property
    def started(self) -> bool:
        """Whether there was a reading."""
        return bool(np.isfinite(self.variance).all())

    def predict(self) -> None:
        """Let a period pass."""
        self.variance = self.variance + self.step

    def correct(self, reading: Reading) -> None:
        """Update the filter with a reading."""
        if not self.started:
            self.mean, self.variance = reading.values, reading.variance
            return
        gain = self.variance / (self.variance + reading.variance)
        self.mean = self.mean + gain * (reading.values - self.mean)
        self.variance = (1 - gain) * self.variance


@dataclass
class Controller:
    """A controller that decides when to look next, from the last error and recent ones.

    Its gains are those of the papers, 0.9 for the error and 0.1 for its mean, with no derivative
    term.

    Parameters
    ----------
    pace
        The speed at which the interval between looks changes (theta).
    memory
        The number of errors that it remembers.

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
    """The interval between two looks, in periods."""
    due: int = field(default=1, init=False)
    """The period of the next look."""

    def __post_init__(self) -> None:
        """Start without errors."""
        self._errors: deque[float] = deque(maxlen=self.memory)

    def trouble(self, error: float) -> float:
        """Add an error; return its weighted combination with earlier ones."""
        self._errors.append(error)
        return 0.9 * error + 0.1 * (sum(self._errors) / self.memory)

    def schedule(self, period: int, change: float) -> None:
        """Change the interval by ``change`` times the pace, and set the period of the next look."""
        self.wait = max(1.0, self.wait + self.pace * change)
        self.due = period + int(self.wait)
