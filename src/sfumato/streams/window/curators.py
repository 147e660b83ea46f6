"""The base of curators over a window, which all methods share.

A method is one class with a generator ``release(period)`` that reads like its pseudo-code::

    reading = yield from self.asked(parts)      # of the budget, or of the devices
    return self.publish(reading)

It draws nothing and knows no device. Its division (:mod:`sfumato.streams.window.divisions`) decides
whether parts are parts of the budget or of the devices, so that one class serves both.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass, fields
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from sfumato.arrays import Bools, Floats
from sfumato.core.estimate import Covariance, Estimate, Unfiltered, checked_level
from sfumato.core.field_checks import check_number
from sfumato.core.intervals import z_score
from sfumato.core.stream import Ask, Curator
from sfumato.core.tally import Tally
from sfumato.errors import MismatchError
from sfumato.streams.window.divisions import Division
from sfumato.streams.window.readings import Reading, read

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.window.window import Window

__all__ = ["POSITIVE", "SHARE", "Step", "WindowCurator", "WindowEstimate"]

Step = Generator[Ask, Tally, "WindowEstimate"]
"""A generator that yields questions, is sent tallies, and returns an estimate."""

POSITIVE: Final = {"below": inf}
"""The metadata of a parameter that is a number above 0."""
SHARE: Final = {"below": 1.0}
"""The metadata of a parameter that is a number above 0 and below 1."""


@dataclass(frozen=True, eq=False, repr=False)
class WindowEstimate(Estimate):
    """The release of a period: a share for each item, or one mean.

    Variances are around the truth, as far as the method knows them; they are infinite before the
    first publication.

    Parameters
    ----------
    period
        The period.
    published
        Whether new answers were used; if not, an earlier release is repeated.
    raw, raw_variance
        The unbiased values of this period alone, if the method has improved on them.
    surprise
        The probability of each answer given all earlier ones, if the method predicts answers.
    as_of
        The last period whose answers were used, if it is not this one.

    """

    period: int = 0
    published: bool = False
    raw: Floats | None = None
    raw_variance: Floats | None = None
    surprise: Floats | None = None
    as_of: int | None = None

    @property
    def variance(self) -> Floats:
        """The variance of each value."""
        return self.covariance.variances()

    @property
    def unfiltered(self) -> Unfiltered | None:
        """The unbiased answer of this period alone, and how likely it was beforehand."""
        if self.raw is None or self.raw_variance is None or self.surprise is None:
            return None
        return Unfiltered(self.raw, self.raw_variance, self.surprise)

    def raw_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return the two ends of each unbiased value's interval."""
        if self.raw is None or self.raw_variance is None:
            raise MismatchError(f"period {self.period} has no unbiased values beside the released.")
        reach = z_score(checked_level(level)) * np.sqrt(self.raw_variance)
        return self.raw - reach, self.raw + reach

    def alarms(self, rate: float = 0.01) -> Bools:
        """Return which items jumped; ``rate`` is the probability of a false alarm in a period."""
        check_number("rate", rate, above=0, below=1)
        if self.surprise is None:
            return np.zeros(self.values.size, dtype=bool)
        return np.asarray(self.surprise < rate / self.values.size)


@dataclass(eq=False, repr=False)
class WindowCurator(Curator):
    """The part of a curator that is the same for all methods.

    Further fields of a method, all by keyword, are its parameters.

    Parameters
    ----------
    protocol
        The stream.
    division
        The division of budget or devices over a window.

    """

    protocol: Window
    division: Division

    rounds: ClassVar[int] = 1
    """The largest number of questions in a period."""
    unbiased: ClassVar[bool] = False
    """Whether each release is unbiased for all values that devices may hold."""

    def __post_init__(self) -> None:
        """Raise ConfigurationError for a parameter out of range; start with nothing released."""
        for each in fields(self):
            if "below" in each.metadata:
                check_number(
                    each.name, getattr(self, each.name), above=0, below=each.metadata["below"]
                )
        self.window = self.protocol.window
        self.period = 0
        self.tier = 0
        """The tier that is asked, if a task has several."""
        self.received = 0
        """The number of answers so far."""
        nothing = np.full(self.protocol.width, np.inf)
        self.last = self.estimate(self.protocol.nothing, nothing, published=False)
        """The last release."""
        self.fresh = self.last
        """The last release that was published with new answers."""

    # ---- one period ------------------------------------------------------------------------

    @abstractmethod
    def release(self, period: int) -> Step:
        """Ask the method's questions in a period; return the release."""

    def timestep(self, period: int) -> Step:
        """Ask the questions of a period; return the release."""
        if period <= self.period:
            raise MismatchError(
                f"period is {period}; it was {self.period} before, and periods only go forward."
            )
        self.period = period
        self.last = yield from self.release(period)
        if self.last.published:
            self.fresh = self.last
        return self.last

    # ---- questions and answers -------------------------------------------------------------

    def asked(self, parts: float) -> Generator[Ask, Tally, Reading | None]:
        """Ask with this many parts; return the reading of the answers, None if there are none."""
        mechanism, _ = self.division.question(parts)
        tally = yield Ask(mechanism, self.division.spend(self.period, parts), self.tier)
        self.received += tally.n
        return read(mechanism, tally, self.protocol.people) if tally.n else None

    def dissimilarity(self, reading: Reading) -> float:
        """Return an unbiased estimate of the mean squared distance of truth and last release.

        It may be negative, because clipping at zero would bias it.
        """
        return float(np.mean((reading.values - self.last.values) ** 2)) - reading.average

    def estimate(
        self, values: Floats, variance: Floats, *, published: bool, **beside: Any
    ) -> WindowEstimate:
        """Return the release of this period; see :class:`WindowEstimate` for further fields."""
        return WindowEstimate(
            values,
            # The covariance of the values of one release is not kept.
            Covariance(variance, joint=False),
            self.protocol.labels,
            self.received,
            self.protocol.guarantee,
            self.period,
            published,
            **beside,
        )

    def publish(self, reading: Reading | None) -> WindowEstimate:
        """Return a new release, or the last one again if nobody answered."""
        if reading is None:
            return self.repeat()
        return self.estimate(reading.values, reading.variance, published=True)

    def repeat(self, distance: float = 0.0) -> WindowEstimate:
        """Return the last release again.

        Its variance is the one at its publication or, if larger, the squared distance by which the
        truth seems to have moved since.
        """
        variance = np.maximum(self.fresh.variance, distance)
        return self.estimate(self.last.values, variance, published=False)
