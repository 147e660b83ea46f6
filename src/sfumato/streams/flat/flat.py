"""Streams of -1, 0 and 1: how many devices rise and fall in each period.

The whole stream is one sparse vector that arrives entry by entry. Nothing is added up over time, so
neither levels nor snapshots are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.accounting.shuffle import sized as fit_sizes
from sfumato.arrays import Floats
from sfumato.core.domain import Domain, Label
from sfumato.core.field_checks import check_number, check_one_of, check_whole
from sfumato.core.fleet import Population
from sfumato.core.guarantee import Guarantee
from sfumato.core.mechanism import Mechanism
from sfumato.core.outlook import Outlook
from sfumato.core.quantity import MOVE, Quantity
from sfumato.core.stream import (
    Ask,
    Curator,
    Due,
    Form,
    Place,
    Steps,
    Stream,
)
from sfumato.core.tally import Tallies, Tally
from sfumato.errors import ConfigurationError, InputError, MismatchError
from sfumato.randomness import Source
from sfumato.streams import horizon
from sfumato.streams.admission import MOST_ITEMS, refuse_heavy, refuse_many_hits, refuse_wide
from sfumato.streams.amplification import requirement, shuffled
from sfumato.streams.flat.flat_device import SPAN, FlatDevice
from sfumato.streams.flat.flat_fleet import FlatFleet
from sfumato.streams.flat.flat_outlook import FlatOutlook, predicted
from sfumato.streams.posterior.believed_periods import BelievedPeriods
from sfumato.streams.weave.curve import Curve
from sfumato.streams.weave.messages import Difference
from sfumato.streams.weave.observations import Observations
from sfumato.streams.weave.strands import USUAL, Carrier, Sized, Strand, carrier, carriers
from sfumato.streams.weave.weave_admission import refuse_sized
from sfumato.wire.values import TaskValues

__all__ = ["Flat"]


@dataclass(frozen=True)
class Flat(Stream):
    """Rises and falls of some items over a horizon, each device's whole stream epsilon-private.

    Parameters
    ----------
    items
        The number of items that rise and fall, or their labels.
    periods
        The number of periods of the horizon.
    changes
        The largest number of non-zero entries of a device's stream; later ones count as zero.
    epsilon
        The privacy of a device's whole stream.
    mechanism
        The mechanism that carries the stream: auto, concord, exsub, exsub-printed or a rival.
    sized
        The mechanism with its size, if that does not follow epsilon.

    Guarantee
    ---------
    epsilon-LDP for all messages of a device together: they are one output of the mechanism.

    Error
    -----
    The variance of one period's mean is that of the mechanism divided by n; periods are
    uncorrelated.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> protocol = Flat(("ACME",), periods=4, changes=2, epsilon=1.0)
    >>> device = protocol.device(seeded(1))
    >>> [device.observe([move], seeded(t)).place.period for t, move in enumerate((0, 1, 0, -1))]
    [1, 2, 3, 4]

    """

    items: int | tuple[Label, ...]
    periods: int
    changes: int
    epsilon: float
    mechanism: Carrier = "auto"
    sized: tuple[Sized, ...] = ()

    name: ClassVar[str] = "flat"
    needed: ClassVar[Mapping[str, str]] = horizon.NEEDED
    optional: ClassVar[tuple[str, ...]] = horizon.OPTIONAL
    fewest_periods: ClassVar[int] = 2
    outlook_class: ClassVar[type[Outlook]] = FlatOutlook

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless all fields are in their ranges."""
        items = self.items if isinstance(self.items, int) else tuple(self.items)
        object.__setattr__(self, "items", items)
        if isinstance(items, int) and items < 1:
            raise ConfigurationError(f"items is {items}; at least one is expected.")
        if self.width > 1:
            Domain.of(items)
        for name, most in (("periods", 1 << 14), ("changes", self.width * self.periods)):
            value = getattr(self, name)
            check_whole(name, value, 1, most)
        check_number("epsilon", self.epsilon, above=0)
        check_one_of("mechanism", self.mechanism, carriers(self.mechanism))
        if any(each.differences != self.periods for each in self.sized) or len(self.sized) > 1:
            raise ConfigurationError(
                f"sized is {self.sized!r}; one size, for {self.periods} periods, is expected."
            )

    @property
    def labels(self) -> tuple[Label, ...]:
        """The names of the items."""
        return tuple(range(self.items)) if isinstance(self.items, int) else self.items

    @property
    def width(self) -> int:
        """The number of items."""
        return self.items if isinstance(self.items, int) else len(self.items)

    @property
    def quantity(self) -> Quantity:
        """The quantity of the released values."""
        return MOVE

    @property
    def horizon(self) -> int:
        """The number of periods."""
        return self.periods

    @property
    def separate(self) -> bool:
        """Whether errors of different periods are uncorrelated: yes."""
        return True

    @property
    def guarantee(self) -> Guarantee:
        """What is promised to a device."""
        return Guarantee.of_stream(self.periods, self.epsilon)

    @cached_property
    def strand(self) -> Strand:
        """The mechanism that carries the stream, as a strand."""
        entries = self.periods * self.width
        if self.sized:
            mechanism = self.sized[0].mechanism(self.epsilon, entries, self.changes)
        else:
            mechanism = carrier(self.epsilon, entries, self.changes, self.mechanism)
        return Strand(mechanism, self.periods, self.changes)

    @cached_property
    def difference(self) -> Difference:
        """The form of one period's message."""
        return Difference(self.width, self.strand.mechanism.sends_every_entry)

    @property
    def payload(self) -> int:
        """The number of bytes of a message."""
        return self.difference.dtype.itemsize

    @property
    def tracks(self) -> tuple[tuple[int, int], ...]:
        """The spans and parts of messages: all messages are of one kind."""
        return ((SPAN, 0),)

    def form(self, place: Place, ask: Ask | None = None) -> Form | None:
        """Return the form of the messages of a place; None if there are none."""
        del ask
        if (place.span, place.part) not in self.tracks or not 1 <= place.period <= self.periods:
            return None
        written = self.difference
        return Form(written.dtype, written.valid, written.counted)

    def facts(self) -> dict[str, Any]:
        """Return the choices made: the mechanism that carries the moves."""
        return {"changes": self.changes, "mechanism": self.strand.mechanism.name}

    def planned_variance(self, devices: int) -> float:
        """Return the variance of a mean move if devices make all the moves they may."""
        return predicted(self, devices).reported

    def influence(self, devices: int) -> float:
        """Return the most that one forged device can change the mean move of a period."""
        return self.strand.mechanism.influence / devices

    def plain(self) -> dict[str, Any]:
        """Return the fields of a published task that belong to this stream."""
        # Epsilon is below the task's if the promise about shuffled reports needs that, and sizes
        # are there if they were chosen for that promise.
        sizes = {"sized": [list(astuple(each)) for each in self.sized]} if self.sized else {}
        return {"epsilon": self.epsilon, **sizes}

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Self:
        """Return the stream that a published task describes."""
        items: Any = TaskValues.of_spec(spec).items
        design = (spec["periods"], spec["changes"], spec["epsilon"], spec["mechanism"])
        sized = tuple(Sized(*each) for each in spec.get("sized", ()))
        return cls(items, *design, sized)

    @classmethod
    def fields(cls, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return the checked fields of a task over a horizon."""
        return horizon.checked(task)

    @classmethod
    def chosen(cls, task: Mapping[str, Any]) -> Flat:
        """Return the stream for a task, of least error under the promises that it makes."""
        stream = cls.of(task)
        required = requirement(task)
        if required is None:
            return stream
        entries, named = stream.periods * stream.width, stream.mechanism
        if named == "exsub-printed" or named not in USUAL:
            return shuffled(stream, required)
        fitted = [
            fit_sizes(carrier(stream.epsilon, entries, stream.changes, name), required)
            for name in (("concord", "exsub") if named == "auto" else (named,))
        ]
        best = min(fitted, key=lambda mechanism: mechanism.mse)
        size = Sized.of(Strand(best, stream.periods, stream.changes))
        return replace(stream, epsilon=best.epsilon, sized=(size,))

    @classmethod
    def admit(cls, spec: Mapping[str, Any]) -> Self:
        """Return the stream of a stranger's task; ConfigurationError if it is too costly."""
        refuse_wide(spec, MOST_ITEMS)
        refuse_heavy(spec)
        if "sized" in spec:
            refuse_sized(spec)
        stream = cls.of(spec)
        refuse_many_hits(stream.changes)
        return stream

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances: one item and two, with both kinds of subsets."""
        yield cls(("ACME",), periods=3, changes=2, epsilon=1.0, mechanism="concord")
        yield cls(2, periods=2, changes=2, epsilon=1.0, mechanism="exsub")

    def spec(self) -> dict[str, Any]:
        """Return plain data that are enough to make this stream again."""
        values = TaskValues(
            "moves", self.items if isinstance(self.items, int) else tuple(self.items)
        )
        return {
            "stream": self.name,
            "values": values.plain(),
            "periods": int(self.periods),
            "changes": int(self.changes),
            "mechanism": self.mechanism,
            **self.plain(),
        }

    def truth(self, held: Sequence[Any], counts: Sequence[int], ask: Ask | None = None) -> Floats:
        """Return the mean move of each item."""
        del ask
        return np.average([self.moves(value) for value in held], axis=0, weights=counts)

    def at(self, epsilon: float) -> Flat:
        """Return the same stream at another epsilon, with a size that follows it."""
        return replace(self, epsilon=epsilon, sized=())

    def message(self) -> Mechanism:
        """Return everything that a device sends over the horizon, as one message."""
        return self.strand.mechanism

    def moves(self, value: ArrayLike | None) -> list[int]:
        """Return one period's moves as a list; zeros for None, InputError for a bad value."""
        if value is None:
            return [0] * self.width
        try:
            moves = np.asarray(value)
        except ValueError:  # lists of different lengths
            moves = np.empty(0)
        if moves.shape != (self.width,) or not np.isin(moves, (-1, 0, 1)).all():
            raise InputError(
                f"value is {value!r}; -1, 0 or 1 for each of {self.width} items is expected."
            )
        return [int(move) for move in moves]

    def inputs(self) -> Sequence[Any]:
        """Return all possible moves of one period."""
        return [list(moves) for moves in product((0, 1, -1), repeat=self.width)]

    def check(self, value: Any) -> None:
        """Raise InputError unless a value has one move for each item."""
        self.moves(value)

    @property
    def default(self) -> list[int]:
        """The value of a device before its first observation: no move."""
        return self.moves(None)

    @property
    def lasts(self) -> bool:
        """Whether a value stays until the next one: no, a move belongs to one period."""
        return False

    @property
    def work(self) -> int:
        """The number of entries that a device processes in each period."""
        return self.width

    def device(self, coins: Source, tier: int = 0) -> FlatDevice:
        """Return a new device, whose secret counters are drawn before any data."""
        self.offer(tier)
        return FlatDevice(self, self.strand.mechanism.stream(coins))

    def restore(self, state: Any) -> FlatDevice:
        """Return the device that continues from a saved state."""
        return FlatDevice.restore(self, state)

    def fleet(self, population: Population, rng: Source) -> FlatFleet:
        """Return simulated devices, whose moves of all periods are randomized at once."""
        return FlatFleet(self, population, rng)

    def released(self, values: Floats, variances: Floats, n: Sequence[int]) -> BelievedPeriods:
        """Return closed periods from their releases, which can also be read under a prior."""
        return BelievedPeriods(
            self.labels, values, variances, tuple(n), self.guarantee, self.separate
        )

    def curator(self) -> FlatCurator:
        """Return a curator that releases each period's means when it closes."""
        return FlatCurator(self)

    def curve(self, tallies: Tallies[Any]) -> Curve:
        """Return the mean of each item in each period, from tallies with keys (1, period, 0)."""
        values = np.full((self.periods, self.width), np.nan)
        noise = np.zeros((self.periods, self.width))
        weights = np.diag(np.full(self.periods, np.nan))
        for period in range(1, self.periods + 1):
            tally = tallies.get(Place(SPAN, period))
            if tally is not None and tally.n:
                values[period - 1], noise[period - 1] = self.read(tally)
                weights[period - 1, period - 1] = 1.0
        ends, n = np.arange(1, self.periods + 1), sum(tally.n for tally in tallies.values())
        spans, ones = np.full(self.periods, SPAN), np.ones(self.periods)
        # Each period is a separate question: moves may be correlated or not.
        edges = Observations(ends - 1, ends, spans, ends, spans, values, noise, ones)
        whole = (slice(0, self.width), weights, edges)
        return Curve(values, self.labels, (whole,), n, None, self.guarantee, lowest=-1.0)

    def read(self, tally: Tally) -> tuple[Floats, Floats]:
        """Return a period's means and their variances, from the reports' second moments."""
        if tally.sums.shape != (2, self.width):
            raise MismatchError(
                f"the tally has shape {tally.sums.shape}; (2, {self.width}) is expected."
            )
        contrast = self.strand.contrast
        plus, minus = tally.sums / tally.n
        value = (plus - minus) / contrast
        # One more report with the planned moment, so that a few reports never seem certain.
        moment = (tally.n * (plus + minus) / contrast**2 + self.strand.variance) / (tally.n + 1)
        square = np.clip(value**2 - moment / tally.n, 0.0, 1.0)
        return value, (moment - square) / tally.n


class FlatCurator(Curator):
    """Releases the mean move of each item when a period closes."""

    def __init__(self, protocol: Flat) -> None:
        self._protocol = protocol

    def timestep(self, period: int) -> Steps:
        """Ask for the tallies of a period; release its means."""
        tallies = yield Due(period)
        return self._protocol.curve(tallies).at(period)
