"""What the server does with the answers, period by period: the part all methods share.

A method is one class with a generator ``step(period)`` that reads like its pseudo-code::

    tally = yield self.ask(mechanism, size)     # a cohort of so many devices, in expectation
    tally = yield self.ask_all(mechanism)       # everybody
    return self.publish(self.read(mechanism, tally))

It draws nothing and knows nobody. A cohort is everybody who is free and whose own coin says so;
its expected size is public, and so is how many devices are free, in expectation: all but the
cohorts of the last w - 1 periods.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.accounting.windows import whole_units
from sfumato.core.estimate import Covariance, Estimate, checked_level
from sfumato.core.intervals import z_score
from sfumato.core.mechanism import Mechanism
from sfumato.core.stream import Ask, Curator
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.streams.window.readings import Reading, planned_variance, read

if TYPE_CHECKING:  # a protocol makes its curators
    from sfumato.streams.window.protocol import Window

__all__ = ["Step", "WindowCurator", "WindowEstimate"]

Floats = NDArray[np.float64]
Step = Generator[Ask, Tally, "WindowEstimate"]
"""Questions out, tallies in, and an estimate at the end."""

EVERYBODY: Final = 1.0


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


class WindowCurator(Curator):
    """The part of a method that is the same for all.

    Parameters
    ----------
    protocol
        The public design.

    """

    name: ClassVar[str]
    """What task files call it."""
    summary: ClassVar[str]
    """One line for people who choose."""
    divides: ClassVar[str]
    """What it divides over a window: ``budget`` or ``population``."""
    rounds: ClassVar[int] = 1
    """How many questions a period has, at most."""

    def __init__(self, protocol: Window) -> None:
        self.protocol = protocol
        self.window = protocol.window
        self.devices = protocol.devices
        self.population = protocol.population or protocol.devices
        self.units = whole_units(protocol.epsilon)
        """The whole budget of a window."""
        self.period = 0
        self.tier = 0
        """Which tier it asks, where a task has several."""
        self.received = 0
        """How many answers were read so far."""
        nothing = np.full(protocol.width, np.inf)
        self.last = self.estimate(protocol.nothing, nothing, published=False)
        """What was released last."""
        self.fresh = self.last
        """What was published last."""
        self._cohorts: dict[int, float] = {}

    # ---- one period ------------------------------------------------------------------------

    @abstractmethod
    def step(self, period: int) -> Step:
        """Ask what the method asks in a period; return what it releases."""

    def timestep(self, period: int) -> Generator[Ask, Any, WindowEstimate]:
        """Ask what is needed in a period; return what is released."""
        if period <= self.period:
            raise MismatchError(
                f"period is {period}; it was {self.period} before, and periods only go forward."
            )
        self.period = period
        self._cohorts = {
            past: size for past, size in self._cohorts.items() if past > period - self.window
        }
        self.last = yield from self.step(period)
        if self.last.published:
            self.fresh = self.last
        return self.last

    # ---- questions -------------------------------------------------------------------------

    def oracle(self, units: int | None = None) -> Mechanism:
        """Return the mechanism that spends so many units; by default a whole window's."""
        return self.protocol.mechanism(self.units if units is None else units)

    @property
    def free(self) -> float:
        """How many devices are free now, in expectation: earlier questions of this period count."""
        return max(0.0, self.devices - sum(self._cohorts.values()))

    def ask(self, mechanism: Mechanism, size: float) -> Ask:
        """Ask a cohort of this expected size, for all that a device can spend in a window."""
        free = self.free
        size = min(float(size), free)
        self._cohorts[self.period] = self._cohorts.get(self.period, 0.0) + size
        return Ask(mechanism, size / free if free else 0.0, self.tier)

    def ask_all(self, mechanism: Mechanism) -> Ask:
        """Ask everybody for a part of the budget."""
        return Ask(mechanism, EVERYBODY, self.tier)

    # ---- answers ---------------------------------------------------------------------------

    def read(self, mechanism: Mechanism, tally: Tally) -> Reading | None:
        """Return what a cohort's answers say about everybody; None if nobody answered."""
        self.received += tally.n
        return read(mechanism, tally, self.population) if tally.n else None

    def variance(self, mechanism: Mechanism, size: float, known: Reading | None = None) -> float:
        """Return the average variance of what a cohort of this size would say, sampling included.

        Parameters
        ----------
        mechanism, size
            What would be asked, and of how many.
        known
            What is known of the present values; without it they spread as widely as they can.

        """
        return planned_variance(mechanism, size, self.population, known)

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
        covariance = Covariance(np.maximum(self.fresh.variance, distance), joint=False)
        return replace(
            self.last,
            covariance=covariance,
            n=self.received,
            period=self.period,
            published=False,
        )

    # ---- parameters ------------------------------------------------------------------------

    def part(self, share: float, what: str) -> int:
        """Return a share of a window's budget in whole units; raise if it is less than one."""
        units = int(self.units * share)
        if units < 1:
            raise ConfigurationError(
                f"epsilon is {self.protocol.epsilon:g} over a window of {self.window}; {what} "
                f"would get {self.protocol.epsilon * share:.2g}, and 1e-06 is the least."
            )
        return units

    def needs_devices(self, least: int) -> None:
        """Raise if there are too few devices to divide."""
        if self.devices < least:
            raise ConfigurationError(
                f"devices is {self.devices} over a window of {self.window}; {self.name} needs "
                f"{least} at least, or a cohort has nobody in it."
            )
