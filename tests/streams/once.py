"""A stream in one file: each device draws one period beforehand, and answers in it, once.

It is as simple as a stream can be, and shows all that one has to say. Registered under a name, it
runs wherever sfumato's own streams do (see ``test_once.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from sfumato.core.domain import Label
from sfumato.core.estimate import Covariance, Estimate
from sfumato.core.guarantee import Guarantee
from sfumato.core.stream import (
    Ask,
    Curator,
    Due,
    Form,
    Message,
    Place,
    Steps,
    Stream,
    StreamDevice,
)
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError, InputError, MismatchError
from sfumato.mechanisms import GRR
from sfumato.randomness import Source
from sfumato.wire.fields import Problem
from sfumato.wire.values import TaskValues

SPAN = 0


@dataclass(frozen=True)
class Once(Stream):
    """Shares of items over a horizon, each device's whole stream epsilon-private.

    Parameters
    ----------
    items
        What a device holds one of.
    periods
        How many periods the horizon has.
    epsilon
        Privacy of a device's whole stream.
    rest
        Every so many-th period nobody is asked; 0 for none. It is here to be a field of the
        stream's own.

    Guarantee
    ---------
    epsilon-LDP for everything a device sends: it sends one report, in a period that was drawn
    before and without the data.

    """

    items: tuple[Label, ...]
    periods: int
    epsilon: float
    rest: int = 0

    name: ClassVar[str] = "once"
    optional: ClassVar[tuple[str, ...]] = ("rest",)

    def __post_init__(self) -> None:
        """Refuse a horizon of rest."""
        if not self.heard:
            raise ConfigurationError(f"rest is {self.rest}; some period must be asked about.")

    @cached_property
    def mechanism(self) -> GRR:
        """What an answer is blurred with."""
        return GRR(self.epsilon, self.items)

    @cached_property
    def heard(self) -> tuple[int, ...]:
        """The periods that devices answer in."""
        periods = range(1, self.periods + 1)
        return tuple(period for period in periods if not self.rest or period % self.rest)

    # ---- what it is ------------------------------------------------------------------------

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to a device."""
        return Guarantee.of_stream(self.periods, self.epsilon)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The items."""
        return self.items

    @property
    def horizon(self) -> int:
        """How many periods there are."""
        return self.periods

    @property
    def wholes(self) -> tuple[slice, ...]:
        """Each device holds exactly one item."""
        return (slice(0, len(self.items)),)

    @property
    def separate(self) -> bool:
        """Different devices answer in different periods."""
        return True

    @property
    def payload(self) -> int:
        """The bytes of a report."""
        return self.mechanism.report_bytes

    @property
    def tracks(self) -> tuple[tuple[int, int], ...]:
        """All reports are of one kind."""
        return ((SPAN, 0),)

    def form(self, place: Place, ask: Ask | None = None) -> Form | None:
        """Return how the reports of a period are read."""
        del ask
        known = (place.span, place.part) in self.tracks and place.period in self.heard
        return Form.of(self.mechanism) if known else None

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Small instances."""
        yield cls(("home", "work"), periods=2, epsilon=1.0)
        yield cls(("home", "work", "road"), periods=3, epsilon=0.5, rest=2)

    # ---- tasks -----------------------------------------------------------------------------

    def plain(self) -> dict[str, Any]:
        """Return what the stream fixes beyond its task: nothing."""
        return {}

    def spec(self) -> dict[str, Any]:
        """Return plain data that make this stream."""
        return {
            "stream": "once",
            "values": {"kind": "category", "items": list(self.items)},
            "periods": self.periods,
            "epsilon": self.epsilon,
            "rest": self.rest,
        }

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Self:
        """Return the stream of a published task."""
        items = TaskValues.of_spec(spec).items
        named = tuple(range(items)) if isinstance(items, int) else tuple(items or ())
        return cls(named, spec["periods"], spec["epsilon"], spec.get("rest", 0))

    @classmethod
    def fields(cls, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return the field of its own, checked."""
        rest, kind = task.get("rest", 0), task["values"]["kind"]
        if kind != "category":
            raise Problem(
                ("values", "kind"),
                f"values.kind is {kind!r} where stream is 'once'; 'category' is expected.",
            )
        if type(rest) is not int or rest < 0 or rest == 1:
            raise Problem(("rest",), f"rest is {rest!r}; 0, or a whole number from 2, is expected.")
        return {"rest": rest}

    # ---- the device's half -----------------------------------------------------------------

    def inputs(self) -> Sequence[Any]:
        """Return all items."""
        return self.items

    def check(self, value: Any) -> None:
        """Raise InputError unless the value is an item."""
        self.mechanism.encode([value])

    @property
    def default(self) -> Label:
        """The first item, before there is a value."""
        return self.items[0]

    def device(self, coins: Source, tier: int = 0) -> OnceDevice:
        """Return a new device, whose period is drawn now."""
        self.offer(tier)
        place = int(coins.below(len(self.heard), 1)[0])
        return OnceDevice(self, self.heard[place], self.default)

    def restore(self, state: Any) -> OnceDevice:
        """Return the device that goes on from a saved state."""
        if not isinstance(state, dict) or set(state) != {"period", "turn", "held"}:
            raise MismatchError("the saved state is none of this task; period, turn and held are.")
        whole = type(state["period"]) is int and type(state["turn"]) is int
        if not whole or state["turn"] not in self.heard or state["held"] not in self.items:
            raise MismatchError("the saved state has a turn or a value that this task lacks.")
        if not 0 <= state["period"] <= self.periods:
            raise MismatchError("the saved state has a period that this task lacks.")
        return OnceDevice(self, state["turn"], state["held"], state["period"])

    # ---- the server's half -----------------------------------------------------------------

    def curator(self) -> OnceCurator:
        """Return a curator that releases each period's shares when it closes."""
        return OnceCurator(self)


@dataclass
class OnceDevice(StreamDevice):
    """One device: when its turn is, and what it holds."""

    stream: Once
    turn: int
    held: Label
    period: int = 0

    @property
    def message_bytes(self) -> int:
        """The size of its report."""
        return self.stream.payload

    @property
    def bounds_copies(self) -> bool:
        """The report is drawn with coins that are bound to the value."""
        return True

    def observe(self, value: Any, coins: Source) -> Message | None:
        """Take in the next period's value; return the report if it is this device's turn."""
        if self.period == self.stream.periods:
            raise MismatchError(f"all {self.period} periods have been observed; join a new task.")
        self.period += 1
        try:
            self.stream.check(value)
            self.held = value
        except InputError:
            pass  # no news
        if self.period != self.turn:
            return None
        own = coins.bound([self.stream.items.index(self.held)])
        report = self.stream.mechanism.randomize([self.held], own)
        return Message(Place(SPAN, self.period), report.tobytes())

    def save(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {"period": self.period, "turn": self.turn, "held": self.held}


class OnceCurator(Curator):
    """Releases the shares of each period when it closes; of a period of rest it knows nothing."""

    def __init__(self, stream: Once) -> None:
        self.stream = stream

    def timestep(self, period: int) -> Steps:
        """Estimate the shares from the reports of the period."""
        mechanism, stream = self.stream.mechanism, self.stream
        tallies = yield Due(period)
        tally = tallies.get(Place(SPAN, period), Tally.zero(mechanism.tally_shape))
        if tally.n:
            estimate = mechanism.estimate(tally)
            values, variances = estimate.values, estimate.covariance.variances()
        else:
            values = np.full(len(stream.items), np.nan)
            variances = np.full(len(stream.items), np.inf)
        joint = Covariance(variances, joint=False)
        return Estimate(values, joint, stream.labels, tally.n, stream.guarantee)
