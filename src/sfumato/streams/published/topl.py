"""ToPL: range sums of a stream in the local model, where each device randomizes its value.

Wang et al., "Continuous Release of Data Streams under both Centralized and Local Differential
Privacy" (2021): in the first periods devices report with the square wave mechanism, the estimated
distribution gives a threshold, and in all later periods devices clip their values to it and report
with the hybrid mechanism.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
from functools import cached_property
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.domain import Label
from sfumato.core.estimate import Covariance, Estimate
from sfumato.core.exact import is_finite_number
from sfumato.core.field_checks import check_number, check_one_of, check_whole
from sfumato.core.fleet import Population
from sfumato.core.guarantee import Guarantee
from sfumato.core.mechanism import Mechanism
from sfumato.core.quantity import Quantity
from sfumato.core.stream import Ask
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError, InputError, MismatchError
from sfumato.mechanisms import Hybrid, SquareWave
from sfumato.randomness import Source
from sfumato.streams.asked import LARGEST_SYMBOL, AskedStream, described_mechanism
from sfumato.streams.published.topl_curator import ToPLCurator, ToPLFleet
from sfumato.streams.published.topl_device import ToPLDevice
from sfumato.wire import fields
from sfumato.wire.fields import Problem
from sfumato.wire.task import MOST_PEOPLE, MOST_PERIODS
from sfumato.wire.values import TaskValues

__all__ = ["ToPL"]


_SMALL: Final = 1e-4  # a density below this, this many times in a row, is taken as zero
_IN_A_ROW: Final = 5
VARIANTS: Final = ("white", "plain")


@dataclass(frozen=True)
class ToPL(AskedStream):
    """Sums of amounts over any periods, with each value epsilon-private on its device.

    Parameters
    ----------
    epsilon
        The privacy of each value.
    bound
        The public bound of a value; larger values are clipped to it.
    learning
        The number of first periods from which the threshold is learnt (more if nobody answers);
        their values are not summed.
    limit
        The number of values in a long range, for which the clipping error is weighed against noise.
    variant
        ``white`` prunes a density fitted without smoothing (SW-W); ``plain`` smooths it (SW).
    grid
        The number of steps of the learnt distribution.
    unit
        The text that is printed after an amount.

    Guarantee
    ---------
    epsilon-LDP for each value: a device answers at most once for each, whoever asks. All other
    answers are for the public default, so that their number reveals nothing.

    Error
    -----
    The variance of a sum of n values is at most n times the worst variance of the hybrid mechanism
    on [0, threshold]; the bias is what is cut off.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> protocol = ToPL(epsilon=2.0, bound=1000.0)
    >>> device = protocol.device(seeded(1))
    >>> device.observe(37.5, seeded(2))
    >>> len(device.answer(Ask(protocol.learner, 1.0), seeded(3)).payload)
    2

    """

    epsilon: float
    bound: float
    learning: int = 1
    limit: int = 1 << 20
    variant: Literal["white", "plain"] = "white"
    grid: int = 1024
    unit: str = ""

    name: ClassVar[str] = "topl"

    needed: ClassVar[Mapping[str, str]] = {
        "epsilon": "a positive number, the privacy of each value,",
        "values": 'a table of numbers from 0 on, as in {kind = "number", low = 0, high = 1000},',
    }
    optional: ClassVar[tuple[str, ...]] = ("learning", "limit", "variant")
    fewest_periods: ClassVar[int] = 2

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless all fields are allowed."""
        check_number("bound", self.bound, above=0)
        check_whole("learning", self.learning, 1)
        check_whole("limit", self.limit, 1)
        check_whole("grid", self.grid, _IN_A_ROW)
        check_one_of("variant", self.variant, VARIANTS)
        _ = self.learner  # raises an error if epsilon is not allowed

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to a device for each value, of which it has one per period."""
        return Guarantee(
            "local",
            "what a device sends",
            self.epsilon,
            neighbours="two streams that differ in one period",
            window=1,
        )

    @property
    def quantity(self) -> Quantity:
        """The quantity of the released values."""
        return Quantity("amount", "Sum of amounts").measured_in(self.unit)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The name of the only entry: the sum of a period's values."""
        return ("sum",)

    @property
    def separate(self) -> bool:
        """Whether errors of different periods are uncorrelated: yes."""
        return True

    @property
    def rounds(self) -> int:
        """The number of questions in a period: one."""
        return 1

    @property
    def payload(self) -> int:
        """The number of bytes of the longest report; a symbol of either mechanism fits in it."""
        return LARGEST_SYMBOL

    def facts(self) -> dict[str, Any]:
        """Return the choices about learning the threshold, as plain data."""
        return {"learning": self.learning, "variant": self.variant}

    def plain(self) -> dict[str, Any]:
        """Return the fields as plain data, without the usual grid and the unit."""
        design = {name: part for name, part in asdict(self).items() if name not in ("grid", "unit")}
        usual = self.grid == type(self).grid
        return {"stream": self.name, **design} | ({} if usual else {"grid": self.grid})

    def spec(self) -> dict[str, Any]:
        """Return plain data that are enough to make this stream again."""
        return self.plain() | ({"values": {"unit": self.unit}} if self.unit else {})

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Self:
        """Return the stream that plain data describe."""
        names = [field.name for field in dataclass_fields(cls) if field.name != "unit"]
        design = {name: spec[name] for name in names if name != "grid" or name in spec}
        return cls(**design, unit=spec.get("values", {}).get("unit", ""))

    @classmethod
    def fields(cls, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return the checked fields of a task, whose numbers go from 0 to the bound."""
        values = TaskValues.of_spec(task)
        if values.kind != "number" or values.low != 0:
            raise Problem(
                ("values",),
                f"values is {fields.shown(task['values'])} where stream is 'topl'; numbers from "
                "low = 0 on are expected.",
            )
        learning = fields.in_range(
            task.get("learning", 1), ("learning",), 1, min(task["periods"] - 1, MOST_PERIODS)
        )
        limit = fields.in_range(task.get("limit", 1 << 20), ("limit",), 1, MOST_PEOPLE)
        variant = fields.choice(task.get("variant", "white"), ("variant",), VARIANTS)
        return {"learning": learning, "limit": limit, "variant": variant}

    @classmethod
    def chosen(cls, task: Mapping[str, Any]) -> Self:
        """Return the stream for a task; the upper end of its numbers is the bound."""
        return cls.of({**task, "bound": TaskValues.of_spec(task).high})

    def estimate(self, n: int, total: float, variance: float) -> Estimate:
        """Return a sum of clipped values as an estimate."""
        covariance = Covariance(np.array([variance]))
        return Estimate(
            np.array([total]), covariance, self.labels, n, self.guarantee, quantity=self.quantity
        )

    @cached_property
    def learner(self) -> SquareWave:
        """The mechanism of the first periods."""
        return SquareWave(self.epsilon, 0, self.bound, clip=True, grid=self.grid)

    def summer(self, threshold: float) -> Hybrid:
        """Return the mechanism of later periods, for a threshold."""
        return Hybrid(self.epsilon, 0, threshold, clip=True)

    @classmethod
    def admit(cls, spec: Mapping[str, Any]) -> Self:
        """Return the stream of a stranger's task; ConfigurationError if its values do not fit."""
        values = TaskValues.of_spec(spec)
        if (values.kind, values.low, values.high) != ("number", 0, spec["bound"]):
            raise ConfigurationError(
                f"values is {fields.shown(spec['values'])}; numbers from 0 to the bound are "
                "expected."
            )
        return cls.of(spec)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances, with both ways of fitting the density."""
        # Up to epsilon 0.6 an amount is randomized by one coin, so all reports can be listed.
        yield cls(epsilon=0.25, bound=100.0, learning=2, limit=64, variant="plain", grid=6)
        yield cls(epsilon=0.5, bound=8.0, limit=64, grid=6)

    def inputs(self) -> Sequence[Any]:
        """Return amounts from 0 to above the bound."""
        return (0.0, self.bound / 3, self.bound, 2 * self.bound)

    def check(self, value: Any) -> None:
        """Raise InputError unless a value is an amount: a finite number from 0 on."""
        if not is_finite_number(value) or value < 0:
            raise InputError(f"value is {value!r}; a number from 0 on is expected.")

    @property
    def default(self) -> float:
        """The value that a device answers for when it holds none."""
        return 0.0

    @property
    def lasts(self) -> bool:
        """Whether a value stays until the next one: no, each is answered for once."""
        return False

    def truth(self, held: Sequence[Any], counts: Sequence[int], ask: Ask | None = None) -> Floats:
        """Return the sum of all amounts, clipped to the threshold; nan while learning."""
        if ask is None or not isinstance(ask.mechanism, Hybrid):
            return np.array([np.nan])
        amounts = [self.default if value is None else value for value in held]
        return np.array([np.minimum(amounts, ask.mechanism.high) @ np.array(counts)])

    def asked(self, configuration: Mapping[str, Any]) -> Mechanism:
        """Return the mechanism of a question; raise MismatchError unless the stream allows it."""
        usual: Mechanism = self.learner
        high = configuration.get("high")
        if configuration.get("mechanism") == Hybrid.name:
            if not is_finite_number(high) or not 0 < high <= self.bound:  # type: ignore[operator]
                raise MismatchError(
                    f"the question has high {str(high)[:40]!r}; a number above 0 and up to "
                    f"{self.bound:g} is expected."
                )
            usual = self.summer(float(high))  # type: ignore[arg-type]
        for name, value in usual.configuration().items():  # checked before anything is built
            if name != "mechanism" and configuration.get(name) != value:
                raise MismatchError(f"the question has another {name} than its task.")
        return described_mechanism(configuration, (SquareWave, Hybrid))

    def device(self, coins: Source, tier: int = 0) -> ToPLDevice:
        """Return a new device, which draws nothing in advance."""
        del coins
        self.offer(tier)
        return ToPLDevice(self)

    def restore(self, state: Any) -> ToPLDevice:
        """Return the device that continues from a saved state."""
        return ToPLDevice.restore(self, state)

    @property
    def averages(self) -> bool:
        """Whether an estimate is a mean over devices: no, it is a sum."""
        return False

    def fleet(self, population: Population, rng: Source) -> ToPLFleet:
        """Return simulated devices, each with one value in each period."""
        return ToPLFleet(population, rng, len(self.labels))

    def curator(self) -> ToPLCurator:
        """Return a curator that learns the threshold and then sums."""
        return ToPLCurator(self)

    def threshold(self, tally: Tally) -> float:
        """Return the best threshold: noise of r/3 reports against the squared clipping error.

        A random range within r values has r/3 values on average, and a mean square of r^2/6.
        """
        shares = self.shares(tally)
        grid = self.learner.grid
        points = self.bound * np.arange(1, grid + 1) / grid
        above = np.cumsum(shares[::-1])[::-1]  # the share of each bucket and all above it
        # The amount cut off above a position is the integral of the share above each later one.
        beyond = np.append(above[1:], 0.0)
        between = (above + beyond) / 2
        cut = np.append(np.cumsum(between[:0:-1])[::-1], 0.0) * self.bound / grid
        noise = self.limit / 3 * self._noise * points**2
        return float(points[np.argmin(noise + self.limit**2 / 6 * cut**2)])

    @cached_property
    def _noise(self) -> float:
        """The worst variance of a report of a value in [0, 1]."""
        return self.summer(1.0).worst_variance

    def shares(self, tally: Tally) -> Floats:
        """Return the estimated distribution over the learner's grid; ``white`` prunes it."""
        fitted = self.learner.distribution(tally, smooth=self.variant == "plain").shares
        if self.variant == "plain":
            return fitted
        small = (fitted < _SMALL).astype(int)
        runs = np.convolve(small, np.ones(_IN_A_ROW, dtype=int), mode="valid") == _IN_A_ROW
        if not runs.any():
            return fitted
        pruned = fitted.copy()
        pruned[int(np.argmax(runs)) :] = 0
        return pruned / pruned.sum() if pruned.sum() else fitted
