"""The design of an endless stream: what is asked of how many devices, and what is promised."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Final, Self

import numpy as np

from sfumato.accounting.windows import WindowLedger, affordable, whole_units
from sfumato.arrays import Floats
from sfumato.core.domain import Domain, Label
from sfumato.core.exact import (
    LARGEST_EPSILON,
    SMALLEST_EPSILON,
)
from sfumato.core.field_checks import check_one_of, check_whole
from sfumato.core.fleet import Population
from sfumato.core.guarantee import Guarantee
from sfumato.core.mechanism import Mechanism
from sfumato.core.outlook import Outlook, Sent
from sfumato.core.stream import Ask
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.mechanisms import GRR, OLH, OUE, Adaptive, Hybrid, SubsetSelection
from sfumato.mechanisms.frequency.oracle import FrequencyOracle
from sfumato.randomness import Source
from sfumato.streams.admission import MOST_ASKED, refuse_wide
from sfumato.streams.asked import LARGEST_SYMBOL, described_mechanism
from sfumato.streams.window import task_fields
from sfumato.streams.window.curators import WindowCurator
from sfumato.streams.window.readings import Asking
from sfumato.streams.window.window_device import WindowDevice
from sfumato.streams.window.window_fleet import WindowFleet
from sfumato.streams.window.window_methods import method_of
from sfumato.streams.window.window_outlook import WindowOutlook, predicted, question, reports
from sfumato.streams.window.window_values import WindowValues
from sfumato.wire.values import TaskValues

__all__ = ["Window"]

COUNTING: Final = (GRR, OUE, OLH, SubsetSelection)
"""The mechanisms with which devices may be asked about an item; for a number it is Hybrid."""


@lru_cache(maxsize=4096)
def _counting(oracle: str, epsilon: float, domain: int | tuple[Label, ...]) -> FrequencyOracle:
    if oracle in ("grr", "oue"):
        return (GRR if oracle == "grr" else OUE)(epsilon, domain)
    return Adaptive(epsilon, domain, rule="least" if oracle == "auto" else "papers").chosen


@dataclass(frozen=True)
class Window(WindowValues):
    """A stream without an end: any w consecutive periods of a device are epsilon-private.

    Parameters
    ----------
    window
        The number w of consecutive periods that share one budget.
    epsilon
        The privacy of what a device sends in any w consecutive periods.
    devices
        The expected number of devices, which is public.
    domain
        For shares: the number of items, or their labels.
    interval
        For a mean: the public interval of the numbers.
    clip
        For a mean: whether numbers outside are clipped to the interval instead of refused.
    method
        The method that decides who is asked what, when: ``auto`` or one of :data:`METHODS`.
    oracle
        The oracle for items: ``auto`` (least variance), ``grr``, ``oue`` or the paper's ``ada``.
    parameters
        Further parameters of the method, by name.
    population
        The number of people that estimates are about, if it is larger than that of devices.
    default
        The value that a device answers for before its first one: public, and the same for all,
        because silence would reveal that a device has no value yet. None means the first item, or
        the middle of the interval.
    unit
        For a mean: the text that is printed after it.

    Guarantee
    ---------
    Two streams that differ in any way within w consecutive periods change the probability of
    everything a device ever sends by a factor of at most e^epsilon. The device itself enforces
    this.

    Examples
    --------
    >>> protocol = Window(window=20, epsilon=1.0, devices=200_000, domain=2, method="lpu")
    >>> from sfumato.core.stream import Timestep
    >>> ask = Timestep(protocol.curator(), 1).question
    >>> ask.mechanism, ask.probability
    (GRR(epsilon=1.0, domain=2), 0.05)
    >>> print(protocol.guarantee)
    What a device sends is protected with epsilon 1 over any 20 consecutive periods (local: blurred
    on the device before anyone sees it), provided that the device's own clock counts the periods.

    """

    window: int
    epsilon: float
    devices: int
    domain: int | tuple[Label, ...] | None = None
    interval: tuple[float, float] | None = None
    clip: bool = False
    method: str = "auto"
    oracle: str = "auto"
    parameters: tuple[tuple[str, Any], ...] = ()
    population: int | None = None
    default: Label | float | None = None
    unit: str = field(default="", kw_only=True)

    name: ClassVar[str] = "window"
    needed: ClassVar[Mapping[str, str]] = task_fields.NEEDED
    optional: ClassVar[tuple[str, ...]] = task_fields.OPTIONAL
    outlook_class: ClassVar[type[Outlook]] = WindowOutlook

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless all fields are in their ranges."""
        WindowLedger(self.window, self.epsilon)
        if whole_units(self.epsilon) < 1 or self.epsilon > LARGEST_EPSILON:
            raise ConfigurationError(
                f"epsilon is {self.epsilon}; a number above {SMALLEST_EPSILON:g} and up to "
                f"{LARGEST_EPSILON:g} is expected."
            )
        check_whole("devices", self.devices, 1)
        check_one_of("oracle", self.oracle, task_fields.ORACLES)
        self.check_values()
        object.__setattr__(self, "parameters", tuple(tuple(pair) for pair in self.parameters))
        self.mechanism(whole_units(self.epsilon))
        self.curator()

    @property
    def tiers(self) -> tuple[Window, ...]:
        """The windows that an owner picks from: only this one; see :class:`Tiers`."""
        return (self,)

    # ---- what is asked ---------------------------------------------------------------------

    @property
    def people(self) -> int:
        """The number of people that estimates are about."""
        return self.population or self.devices

    def mechanism(self, units: int) -> Asking:
        """Return the mechanism of a question that spends this many units."""
        epsilon = affordable(units)
        if self.domain is not None:
            return _counting(self.oracle, epsilon, self.domain)
        return Hybrid(epsilon, *self.bounds, self.clip)

    @property
    def oracles(self) -> tuple[str, ...]:
        """The names of the mechanisms with which devices of this task may be asked."""
        return (Hybrid.name,) if self.domain is None else tuple(kind.name for kind in COUNTING)

    @cached_property
    def _usual(self) -> Mechanism:
        """A mechanism with which devices may be asked, at the whole budget."""
        return self.mechanism(whole_units(self.epsilon))

    def check(self, value: Any) -> None:
        """Raise InputError unless a value is one that the task knows."""
        self._usual.encode([value])

    def asked(self, configuration: Mapping[str, Any]) -> Mechanism:
        """Return the mechanism of a question; raise MismatchError unless the task allows it."""
        described = dict(configuration)
        usual = self._usual.configuration()
        for name in ("domain", "low", "high", "clip"):  # checked before anything is built
            if _listed(described.get(name)) != _listed(usual.get(name)):
                raise MismatchError(f"the question has another {name} than its task.")
        if isinstance(described.get("domain"), list):
            described["domain"] = self.domain
        kinds = (Hybrid,) if self.domain is None else COUNTING
        return described_mechanism(described, kinds)

    def check_question(self, mechanism: Mechanism) -> None:
        """Raise MismatchError unless devices of this task may be asked with this mechanism."""
        if self.domain is not None:
            known = type(mechanism) in COUNTING and getattr(mechanism, "domain", 0) == self.domain
            about = f"one of {', '.join(self.oracles)} over its own items"
        else:
            own = Hybrid(self.epsilon, *self.bounds, self.clip)
            known = type(mechanism) is Hybrid and replace(mechanism, epsilon=self.epsilon) == own
            about = "hybrid over its own interval"
        if not known:
            raise MismatchError(
                f"the question is asked with {mechanism.name} as {mechanism!r}; this task allows "
                f"{about}."
            )
        if mechanism.report_bytes > self.payload:
            raise MismatchError(
                f"the question is asked with {mechanism.name} in {mechanism.report_bytes} bytes; "
                f"this task's answers have up to {self.payload}."
            )

    @property
    def payload(self) -> int:
        """The number of bytes of the longest report of any method's question.

        It has at most a bit for each item, or an item's code if there are few items; a symbol of
        Hybrid has at most eight bytes.
        """
        if self.domain is None:
            return LARGEST_SYMBOL
        number = GRR(self.epsilon, self.domain).report_bytes
        return max((Domain(self.domain).size + 7) // 8, number)

    @cached_property
    def rounds(self) -> int:
        """The largest number of questions in a period."""
        return method_of(self.method).rounds

    @property
    def counts_on(self) -> int:
        """The expected number of devices."""
        return self.devices

    def expecting(self, devices: int) -> Window:
        """Return the same stream for another number of devices."""
        return replace(self, devices=devices)

    def by(self, method: str) -> Window:
        """Return the same stream with another method."""
        return replace(self, method=method, parameters=())

    @property
    def sent(self) -> Sent:
        """What a device sends in a period."""
        messages = reports(method_of(self.method), self.window)
        return Sent(messages, messages * self.payload, float(self.rounds))

    def planned_variance(self, devices: int) -> float | None:
        """Return the variance of an estimate from one period's answers; None if not known."""
        expected = predicted((self.expecting(devices),), method_of(self.method))
        return None if expected is None else expected.reported

    def influence(self, devices: int) -> float | None:
        """Return the most that one forged device can change an estimate from one period.

        Such a device may answer every question. It is None if the number of devices asked depends
        on the data.
        """
        asked = question(self.expecting(devices), method_of(self.method))
        return None if asked is None else asked[0].influence / max(1.0, asked[1])

    def facts(self) -> dict[str, Any]:
        """Return the choices made: the method."""
        return {"method": method_of(self.method).name}

    # ---- as plain data ---------------------------------------------------------------------

    def plain(self) -> dict[str, Any]:
        """Return the fields of a published task beyond the task itself: none."""
        return {}

    def spec(self) -> dict[str, Any]:
        """Return plain data that are enough to make this stream again."""
        return {
            "stream": self.name,
            "values": self.task_values.plain(),
            "window": int(self.window),
            "epsilon": float(self.epsilon),
            "devices": int(self.devices),
            "method": self.method,
            "oracle": self.oracle,
            "parameters": [list(pair) for pair in self.parameters],
        }

    @property
    def brief(self) -> str:
        """The design in a few words."""
        asked = f"{self.width} items" if self.interval is None else f"a number in {self.interval}"
        within = "each period" if self.window == 1 else f"any {self.window} periods"
        return f"{asked}, {within}, {self.devices} devices: {self.method}"

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Self:
        """Return the stream that a published task describes."""
        values = TaskValues.of_spec(spec)
        numbers = values.kind == "number"
        return cls(
            spec["window"],
            spec["epsilon"],
            spec["devices"],
            None if numbers else values.items,
            (values.low, values.high) if numbers else None,  # type: ignore[arg-type]
            values.clip,
            spec["method"],
            spec["oracle"],
            tuple((str(name), value) for name, value in spec["parameters"]),
            default=spec.get("default"),
            unit=values.unit,
        )

    @classmethod
    def fields(cls, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return the checked fields of a task with one window."""
        return task_fields.checked(task)

    @classmethod
    def admit(cls, spec: Mapping[str, Any]) -> Self:
        """Return the stream of a stranger's task; ConfigurationError if it has too many items."""
        refuse_wide(spec, MOST_ASKED)
        return cls.of(spec)

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances, for shares and a mean, with divided budgets and populations."""
        yield cls(2, 1.0, 4_000, domain=("home", "work"), method="lpu")
        yield cls(2, 1.0, 4_000, domain=("home", "work"), method="lbd")
        yield cls(2, 2.0, 4_000, domain=3)
        yield cls(1, 1.0, 4_000, domain=3, method="lbu", oracle="oue")
        # Up to epsilon 0.6 a number is randomized by one coin, so all reports can be listed.
        yield cls(2, 0.5, 4_000, interval=(-1.0, 3.0), method="lpu")
        yield cls(2, 0.5, 4_000, interval=(-1.0, 3.0), method="lpd")

    # ---- what is estimated -----------------------------------------------------------------

    def truth(
        self, held: Sequence[Any], counts: Sequence[int], ask: Ask | None = None
    ) -> Floats | None:
        """Return the shares of the items, or the mean, if the method estimates them unbiased."""
        del ask
        if not method_of(self.method).kind.unbiased:
            return None
        if self.domain is None:
            return np.array([np.average(held, weights=counts)])
        same = [[value == label for label in self.labels] for value in held]
        return np.average(np.array(same, dtype=float), axis=0, weights=counts)

    # ---- both halves -----------------------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to a device, for any window at any time."""
        return Guarantee(
            "local",
            "what a device sends",
            self.epsilon,
            neighbours=f"two streams that differ within {self.window} consecutive periods",
            window=self.window,
            assumptions=("the device's own clock counts the periods",),
        )

    def device(self, coins: Source, tier: int = 0) -> WindowDevice:
        """Return a new device, which draws nothing in advance."""
        del coins
        self.offer(tier)
        return WindowDevice(self, WindowLedger(self.window, self.epsilon))

    def restore(self, state: Any) -> WindowDevice:
        """Return the device that continues from a saved state."""
        return WindowDevice.restore(self, state)

    def fleet(self, population: Population, rng: Source) -> WindowFleet:
        """Return simulated devices, each with its own ledger."""
        return WindowFleet((self,), population, rng)

    def curator(self) -> WindowCurator:
        """Return a new curator with this method."""
        return method_of(self.method)(self, self.parameters)


def _listed(given: Any) -> Any:
    return list(given) if isinstance(given, tuple) else given
