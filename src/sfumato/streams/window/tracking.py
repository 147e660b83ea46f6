"""What the adapted methods share: a filter with a fixed step, and a controller of when to look.

Both are as their papers have them. The variance of an answer is known exactly here and needs no
tuning; the variance of a step is a public guess and is never taken from the data.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["STEP", "Controller", "Tracker"]

Floats = NDArray[np.float64]

STEP: Final = 0.0025
"""The deviation of a curve's step that is taken for granted, as a share of its range."""


@dataclass
class Tracker:
    """A Kalman filter whose level takes steps of one known variance, for each item alike.

    Examples
    --------
    >>> tracker = Tracker(step=0.0)
    >>> tracker.correct(np.array([0.2]), np.array([0.01]))
    >>> tracker.predict()
    >>> tracker.correct(np.array([0.4]), np.array([0.01]))
    >>> tracker.mean.round(3).tolist(), tracker.variance.round(3).tolist()
    ([0.3], [0.005])

    """

    step: float
    """The variance of a step."""
    mean: Floats = field(default_factory=lambda: np.zeros(0))
    variance: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def started(self) -> bool:
        """Whether anything was seen."""
        return bool(self.mean.size)

    def predict(self) -> None:
        """Let a period pass."""
        self.variance = self.variance + self.step

    def correct(self, seen: Floats, noise: Floats) -> None:
        """Take in an answer."""
        if not self.started:
            self.mean, self.variance = seen, noise
            return
        gain = self.variance / (self.variance + noise)
        self.mean = self.mean + gain * (seen - self.mean)
        self.variance = (1 - gain) * self.variance


@dataclass
class Controller:
    """A PID controller: an error now, its mean of late, and how fast it grows.

    Examples
    --------
    >>> controller = Controller(0.9, 0.1, 0.0, memory=2)
    >>> [round(controller.feed(period, error), 3) for period, error in ((1, 1.0), (3, 3.0))]
    [0.95, 2.9]

    """

    proportional: float
    integral: float
    derivative: float
    memory: int
    _errors: deque[float] = field(default_factory=deque)
    _period: int = 0

    def feed(self, period: int, error: float) -> float:
        """Return what is to be done about an error."""
        before = self._errors[-1] if self._errors else error
        grown = (error - before) / max(1, period - self._period)
        self._period = period
        self._errors.append(error)
        while len(self._errors) > self.memory:
            self._errors.popleft()
        late = sum(self._errors) / self.memory
        return self.proportional * error + self.integral * late + self.derivative * grown
