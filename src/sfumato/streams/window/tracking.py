"""What the adapted methods share: a filter with a fixed step, and a controller of when to look.

Filter and controller are as their papers have them. The variance of an answer is known exactly here
and needs no tuning; the variance of a step is a public guess and is never taken from the data.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.streams.window.curators import Step, WindowEstimate
from sfumato.streams.window.divisions import Divided, Spent, between
from sfumato.streams.window.readings import Reading

if TYPE_CHECKING:
    from sfumato.streams.window.protocol import Window

__all__ = ["STEP", "Controller", "Paced", "Tracker"]

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


class Paced(Divided):
    """Look when it is due, correct the filter, and decide when to look next.

    Parameters
    ----------
    protocol
        The public design.
    pace
        How fast the interval between two looks changes (theta).
    step
        The deviation of a curve's step, as a share of its range.
    memory
        How many errors the controller remembers.

    """

    def __init__(self, protocol: Window, pace: float, step: float, memory: int) -> None:
        super().__init__(protocol)
        self.pace = between("pace", pace, 0)
        low, high = protocol.interval or (0.0, 1.0)
        self.reach = high - low
        self.tracker = Tracker((between("step", step, 0) * self.reach) ** 2)
        self.controller = Controller(0.9, 0.1, 0.0, memory=memory)
        self.wait = 1.0
        self.due = 1
        self.spent = Spent(self.window)

    @abstractmethod
    def offered(self, period: int) -> int:
        """Return how many parts a look in this period could have."""

    @abstractmethod
    def waiting(self, period: int, reading: Reading, before: Floats, parts: int) -> float:
        """Return how long to wait after an answer, given what the filter had expected."""

    def step(self, period: int) -> Step:
        """Predict; if a look is due and can be paid, correct and choose the next time."""
        if self.tracker.started:
            self.tracker.predict()
        parts = self.offered(period)
        if period < self.due or parts < 1:
            return self._release(published=False)
        self.spent.add(period, parts)
        reading = yield from self.asked(parts)
        if reading is None:
            return self._release(published=False)
        before = self.tracker.mean if self.tracker.started else reading.values
        self.tracker.correct(reading.values, reading.variance)
        self.wait = max(1.0, self.waiting(period, reading, before, parts))
        self.due = period + int(self.wait)
        return self._release(published=True)

    def _release(self, *, published: bool) -> WindowEstimate:
        if not self.tracker.started:
            return self.repeat()
        return self.estimate(self.tracker.mean, self.tracker.variance, published=published)
