"""Events: when an item's share, or the mean of a histogram, is above a threshold.

An alarm is raised when the value is above the threshold by more than its own uncertainty explains:
in a period in which the truth is not above, there is an alarm at most as often as was asked for,
as far as the release's intervals hold. Which periods a method tells apart, whatever the rate, is
its ROC curve.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.core.estimate import Estimate
from sfumato.errors import ConfigurationError, InputError

__all__ = ["ROC", "Event", "Watch", "roc", "threshold"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

HEIGHT: Final = 0.75
"""Where the paper puts the threshold between the lowest and the highest value."""


@dataclass(frozen=True)
class Event:
    """What is said about one period.

    Parameters
    ----------
    period
        The period that this is about.
    value, deviation
        What is watched, and how uncertain it is.
    chance
        How likely a value as high as this is where the truth is just at the threshold.
    alarm
        Whether that is below the rate that was asked for.

    """

    period: int
    value: float
    deviation: float
    chance: float
    alarm: bool


class Watch:
    """A weighted sum of a release's values.

    Parameters
    ----------
    weights
        One for each value: a single 1 for an item, the items' numbers for the histogram's mean.

    Examples
    --------
    >>> from sfumato.core.estimate import Covariance
    >>> from sfumato.core.guarantee import Guarantee
    >>> promise = Guarantee("local", "what a device sends", 1.0)
    >>> spread = Covariance(np.array([1e-4, 1e-4]))
    >>> release = Estimate(np.array([0.6, 0.4]), spread, ("a", "b"), 900, promise)
    >>> watch = Watch.item(1, of=2)
    >>> watch.value(release), watch.deviation(release)
    (0.4, 0.01)
    >>> [event.alarm for event in watch.events([release], above=0.35, rate=0.01)]
    [True]

    """

    def __init__(self, weights: Sequence[float] | Floats) -> None:
        self.weights = np.asarray(weights, dtype=np.float64)
        if self.weights.ndim != 1 or not self.weights.size:
            raise InputError(f"weights have shape {self.weights.shape}; a flat list is expected.")

    @classmethod
    def item(cls, place: int, of: int) -> Watch:
        """Watch one item."""
        if not 0 <= place < of:
            raise InputError(f"item is {place}; the items are 0..{of - 1}.")
        return cls(np.eye(of)[place])

    @classmethod
    def mean(cls, numbers: Sequence[float]) -> Watch:
        """Watch the mean of the numbers that items stand for.

        The plain average of all shares, which LDP-IDS (2022) names, is 1/d in every period and has
        nothing to detect.
        """
        return cls(numbers)

    def of(self, values: Floats) -> Floats:
        """Return the sum for one or more rows of values."""
        return np.asarray(values @ self.weights)

    def value(self, release: Estimate) -> float:
        """Return the sum of a release."""
        return float(self.of(release.values))

    def deviation(self, release: Estimate) -> float:
        """Return how uncertain the sum is.

        Shares sum to one, so their errors sum to zero and only the weights' differences count;
        otherwise the errors are taken to be alike.
        """
        size, variances = self.weights.size, release.covariance.variances()
        if size == 1 or np.count_nonzero(self.weights) == 1:
            return float(np.sqrt(self.weights**2 @ variances))
        apart = self.weights - self.weights.mean()
        return float(np.sqrt(size / (size - 1) * (apart**2 @ variances)))

    def events(
        self, releases: Sequence[Estimate], *, above: float, rate: float = 0.01, first: int = 1
    ) -> list[Event]:
        """Return what is said about each period.

        Parameters
        ----------
        releases
            What was released in each period, by any method.
        above
            The threshold above which there is an event.
        rate
            How often there may be an alarm in a period in which the truth is not above.
        first
            The period of the first release.

        """
        if not 0 < rate < 1:
            raise ConfigurationError(f"rate is {rate!r}; a number between 0 and 1 is expected.")
        normal = NormalDist()
        found = []
        for period, release in enumerate(releases, first):
            value, deviation = self.value(release), self.deviation(release)
            sure = np.isfinite(deviation) and deviation > 0
            chance = normal.cdf((above - value) / deviation) if sure else 1.0
            found.append(Event(period, value, deviation, chance, chance < rate))
        return found


def threshold(truth: Floats, height: float = HEIGHT) -> float:
    """Return the value at this height between the lowest and the highest."""
    return float(truth.min() + height * (truth.max() - truth.min()))


@dataclass(frozen=True, eq=False)
class ROC:
    """How many events are found, by how many false alarms.

    Parameters
    ----------
    false, true
        The shares of periods without and with an event that have an alarm, as the bar is lowered.
    area
        Under the curve: how likely a period with an event scores higher than one without; nan if
        there are no periods of one kind.

    """

    false: Floats
    true: Floats
    area: float


def roc(scores: Floats, events: Bools) -> ROC:
    """Return the ROC curve of scores.

    Examples
    --------
    >>> roc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])).area
    0.75

    """
    yes, no = int(events.sum()), int((~events).sum())
    if not yes or not no:
        return ROC(np.array([0.0, 1.0]), np.array([0.0, 1.0]), float("nan"))
    order = np.argsort(-scores, kind="stable")
    last = np.append(np.diff(scores[order]) != 0, np.ones(1, dtype=bool))  # equal scores: one bar
    true = np.append(0.0, np.cumsum(events[order])[last] / yes)
    false = np.append(0.0, np.cumsum(~events[order])[last] / no)
    return ROC(false, true, float(np.trapezoid(true, false)))
