"""What the server does with the answers, period by period: the part all methods share.

A method is one class with a generator ``release(period)`` that reads like its pseudo-code::

    reading = yield from self.asked(parts)      # of the budget, or of the devices
    return self.publish(reading)

It draws nothing and knows nobody. What its parts are parts of is for its division to say
(:mod:`sfumato.streams.window.divisions`), so that one class serves both.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass, fields
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.core.estimate import Covariance, Estimate, checked_level
from sfumato.core.exact import is_finite_number
from sfumato.core.intervals import z_score
from sfumato.core.stream import Ask, Curator
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.streams.window.divisions import Division
from sfumato.streams.window.readings import Reading, read

if TYPE_CHECKING:  # a protocol makes its curators
    from sfumato.streams.window.window import Window

__all__ = ["POSITIVE", "SHARE", "Step", "WindowCurator", "WindowEstimate"]

Floats = NDArray[np.float64]
Step = Generator[Ask, Tally, "WindowEstimate"]
"""Questions out, tallies in, and an estimate at the end."""

POSITIVE: Final = {"below": inf}
"""The metadata of a parameter that is a number above 0."""
SHARE: Final = {"below": 1.0}
"""The metadata of a parameter that is a number above 0 and below 1."""


@dataclass(frozen=True, eq=False, repr=False)
class WindowEstimate(Estimate):
    """What is published for a period: a share for each item, or one mean.

    Variances are around the truth, as far as the method knows; they are infinite before anything
    was published.

    Parameters
    ----------
    period
        The period that it speaks of.
    published
        Whether fresh answers went in; otherwise an earlier release is repeated.
    raw, raw_variance
        The unbiased values of this period alone, if the method made something better of them.
    surprise
        How unlikely each answer was, given all before, if the method expects anything.
    as_of
        The last period that is taken into account, if it is not this one.

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

    def raw_interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return each unbiased value's interval at this level."""
        if self.raw is None or self.raw_variance is None:
            raise MismatchError(f"period {self.period} has no unbiased values beside the released.")
        reach = z_score(checked_level(level)) * np.sqrt(self.raw_variance)
        return self.raw - reach, self.raw + reach

    def alarms(self, rate: float = 0.01) -> NDArray[np.bool_]:
        """Return which items jumped; a period without a jump has an alarm at most this often."""
        if not 0 < rate < 1:
            raise ConfigurationError(f"rate is {rate!r}; a number between 0 and 1 is expected.")
        if self.surprise is None:
            return np.zeros(self.values.size, dtype=bool)
        return np.asarray(self.surprise < rate / self.values.size)


@dataclass(eq=False, repr=False)
class WindowCurator(Curator):
    """The part of a method that is the same for all.

    The further fields of a method, all of them by keyword, are its parameters.

    Parameters
    ----------
    protocol
        The public design.
    division
        What the method divides over a window.

    """

    protocol: Window
    division: Division

    rounds: ClassVar[int] = 1
    """How many questions a period has, at most."""
    unbiased: ClassVar[bool] = False
    """Whether each release is right on average, whatever devices hold."""

    def __post_init__(self) -> None:
        """Refuse parameters out of their range; begin with nothing released."""
        for each in fields(self):
            if "below" in each.metadata:
                _check_range(each.name, getattr(self, each.name), each.metadata["below"])
        self.window = self.protocol.window
        self.period = 0
        self.tier = 0
        """Which tier it asks, where a task has several."""
        self.received = 0
        """How many answers were read so far."""
        nothing = np.full(self.protocol.width, np.inf)
        self.last = self.estimate(self.protocol.nothing, nothing, published=False)
        """What was released last."""
        self.fresh = self.last
        """What was published last."""

    # ---- one period ------------------------------------------------------------------------

    @abstractmethod
    def release(self, period: int) -> Step:
        """Ask what the method asks in a period; return what it releases."""

    def timestep(self, period: int) -> Step:
        """Ask what is needed in a period; return what is released."""
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
        """Spend so many parts; return what the answers say about everybody, None without any."""
        mechanism, _ = self.division.question(parts)
        tally = yield Ask(mechanism, self.division.spend(self.period, parts), self.tier)
        self.received += tally.n
        return read(mechanism, tally, self.protocol.people) if tally.n else None

    def dissimilarity(self, reading: Reading) -> float:
        """Return the mean squared distance of the truth from the last release, without bias.

        It may be negative: cutting it off at zero would bias it.
        """
        return float(np.mean((reading.values - self.last.values) ** 2)) - reading.average

    def estimate(
        self, values: Floats, variance: Floats, *, published: bool, **beside: Any
    ) -> WindowEstimate:
        """Return what is released in this period; see :class:`WindowEstimate` for the rest."""
        return WindowEstimate(
            values,
            # How the values of one release vary together is not kept.
            Covariance(variance, joint=False),
            self.protocol.labels,
            self.received,
            self.protocol.guarantee,
            self.period,
            published,
            **beside,
        )

    def publish(self, reading: Reading | None) -> WindowEstimate:
        """Return a fresh release; if nobody answered, the last one again."""
        if reading is None:
            return self.repeat()
        return self.estimate(reading.values, reading.variance, published=True)

    def repeat(self, distance: float = 0.0) -> WindowEstimate:
        """Return the last release once more.

        Its variance is that of when it was published or, if it is larger, the squared distance
        that the truth seems to have moved away by since.
        """
        variance = np.maximum(self.fresh.variance, distance)
        return self.estimate(self.last.values, variance, published=False)


def _check_range(name: str, value: float, below: float) -> None:
    if not is_finite_number(value) or not 0 < value < below:
        wanted = "a number above 0" + ("" if below == inf else f", below {below:g}")
        raise ConfigurationError(f"{name} is {value!r}; {wanted} is expected.")
