"""Events: periods in which an item's share, or a histogram's mean, is above a threshold.

An alarm is raised when the value is above the threshold by more than its own uncertainty explains:
in a period in which the truth is not above, an alarm is at most as likely as the given rate, if the
release's intervals hold. Of a single item an alarm means that its interval is above the threshold.
A release that was filtered lags behind what happens at once, so its unbiased answer is judged as
well, and alone where the filters did not expect it. The ROC curve shows how well a method tells the
periods apart, over all rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from statistics import NormalDist
from typing import Final

import numpy as np

from sfumato.arrays import Bools, Floats
from sfumato.core.estimate import Estimate
from sfumato.core.field_checks import check_number
from sfumato.errors import InputError

__all__ = ["ROC", "Event", "Watch", "roc", "threshold"]


UNEXPECTED: Final = 0.05
"""The probability of an answer below which the filtered value is not judged beside it."""
HEIGHT: Final = 0.75
"""The paper's threshold, as a part of the way from the lowest to the highest value."""


@dataclass(frozen=True)
class Event:
    """The result for one period."""

    period: int
    """The period."""
    value: float
    """The watched value."""
    deviation: float
    """The standard deviation of the watched value."""
    chance: float
    """The probability of answers this high if the truth is exactly at the threshold."""
    alarm: bool
    """Whether this probability is below the given rate."""


class Watch:
    """A weighted sum of a release's values that is watched for events.

    Parameters
    ----------
    weights
        The weight of each value: a single 1 for an item, the items' numbers for the mean of a
        histogram.

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
    def item(cls, index: int, of: int) -> Watch:
        """Return a watch of one item, given its index and the number of items."""
        if not 0 <= index < of:
            raise InputError(f"item is {index}; the items are 0..{of - 1}.")
        return cls(np.eye(of)[index])

    @classmethod
    def mean(cls, numbers: Sequence[float]) -> Watch:
        """Return a watch of the mean of the numbers that the items stand for.

        The plain average of all shares, which LDP-IDS (2022) proposes, is 1/d in every period and
        shows no event.
        """
        return cls(numbers)

    def of(self, values: Floats) -> Floats:
        """Return the weighted sum for each row of values."""
        return np.asarray(values @ self.weights)

    def value(self, release: Estimate) -> float:
        """Return the weighted sum of a release."""
        return float(self.of(release.values))

    def deviation(self, release: Estimate) -> float:
        """Return the standard deviation of the weighted sum.

        Shares sum to one, so their errors sum to zero and only differences of weights count; apart
        from that all pairs of errors are assumed to be equally correlated.
        """
        return self._deviation(release.covariance.variances())

    def _deviation(self, variances: Floats) -> float:
        size, watched = self.weights.size, self.weights != 0
        if size == 1 or watched.sum() == 1:
            return float(np.sqrt(self.weights[watched] ** 2 @ variances[watched]))
        apart = self.weights - self.weights.mean()
        return float(np.sqrt(size / (size - 1) * (apart**2 @ variances)))

    def score(self, release: Estimate, above: float) -> float:
        """Return by how many standard deviations a release is above a threshold.

        If there is an unbiased answer beside a filtered value, the higher of both counts, each in
        its own deviations. An answer that the filters did not expect counts alone: the filtered
        value hardly knows of it yet.
        """
        score = self._released_score(release, above)
        alone = release.unfiltered
        if alone is None:
            return score
        answer = _standardized(
            float(self.of(alone.values)) - above, self._deviation(alone.variances)
        )
        watched = self.weights != 0
        likely = watched.sum() * float(alone.surprise[watched].min())
        return answer if likely < UNEXPECTED else max(score, answer)

    def _released_score(self, release: Estimate, above: float) -> float:
        """Return the same for the released values alone; minus infinity if nothing is known.

        A single item is judged by the noise that it would have at the threshold, as in intervals.
        Of a sum of several the threshold does not say how it is divided among them, and so not how
        noisy it would be: it is judged by the noise at the estimate.
        """
        watched = np.flatnonzero(self.weights)
        deviation = self.deviation(release)
        if watched.size != 1 or not np.isfinite(deviation):
            return _standardized(self.value(release) - above, deviation)
        weight = self.weights[watched[0]]
        score = float(np.sign(weight) * release.scores(above / weight)[watched[0]])
        return -inf if np.isnan(score) else score

    def events(
        self, releases: Sequence[Estimate], *, above: float, rate: float = 0.01, first: int = 1
    ) -> list[Event]:
        """Return the result for each period.

        Parameters
        ----------
        releases
            The releases of the periods, made by any method.
        above
            The threshold above which there is an event.
        rate
            The largest probability of an alarm in a period in which the truth is not above.
        first
            The period of the first release.

        """
        check_number("rate", rate, above=0, below=1)
        normal = NormalDist()
        events = []
        for period, release in enumerate(releases, first):
            value, deviation = self.value(release), self.deviation(release)
            judged = 1 if release.unfiltered is None else 2  # whichever is higher, so both count
            chance = min(1.0, judged * normal.cdf(-self.score(release, above)))
            events.append(Event(period, value, deviation, chance, chance < rate))
        return events


def _standardized(excess: float, deviation: float) -> float:
    """Return an excess in standard deviations; minus infinity if nothing is known."""
    return excess / deviation if np.isfinite(deviation) and deviation > 0 else -inf


def threshold(truth: Floats, height: float = HEIGHT) -> float:
    """Return the value at this height, a part of the way from the lowest to the highest truth."""
    return float(truth.min() + height * (truth.max() - truth.min()))


@dataclass(frozen=True, eq=False)
class ROC:
    """The ROC curve: the share of events found against the share of false alarms.

    Parameters
    ----------
    false, true
        The shares of periods without and with an event that have an alarm, for falling score
        limits.
    area
        The area under the curve, which is the probability that a period with an event scores higher
        than one without; nan if one kind of period does not occur.

    """

    false: Floats
    true: Floats
    area: float


def roc(scores: Floats, events: Bools) -> ROC:
    """Return the ROC curve of scores, given which periods have an event.

    Examples
    --------
    >>> roc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True])).area
    0.75

    """
    yes, no = int(events.sum()), int((~events).sum())
    if not yes or not no:
        return ROC(np.array([0.0, 1.0]), np.array([0.0, 1.0]), float("nan"))
    order = np.argsort(-scores, kind="stable")
    # Equal scores share one limit.
    falling = scores[order]
    last = np.append(falling[1:] != falling[:-1], np.ones(1, dtype=bool))
    true = np.append(0.0, np.cumsum(events[order])[last] / yes)
    false = np.append(0.0, np.cumsum(~events[order])[last] / no)
    return ROC(false, true, float(np.trapezoid(true, false)))
