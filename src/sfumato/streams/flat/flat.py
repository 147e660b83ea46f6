"""Streams of -1, 0 and 1: how many devices rise and fall in each period.

The whole stream is one sparse vector that arrives entry by entry. Nothing is added up over time, so
neither levels nor snapshots are needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from itertools import product
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.accounting.shuffle import sized as fit_sizes
from sfumato.arrays import Floats
from sfumato.core.fleet import Population
from sfumato.core.outlook import Outlook
from sfumato.core.stream import (
    Ask,
    Curator,
    Due,
    Place,
    Steps,
)
from sfumato.core.tally import Tallies, Tally
from sfumato.errors import InputError, MismatchError
from sfumato.randomness import Source
from sfumato.streams import horizon
from sfumato.streams.admission import MOST_ITEMS, refuse_heavy, refuse_many_hits, refuse_wide
from sfumato.streams.amplification import requirement, shuffled
from sfumato.streams.chaff_in_tasks import WORTH, affordable, fewest_messages, refuse_chaff
from sfumato.streams.flat.chaffed_moves import Trains, chaffed
from sfumato.streams.flat.flat_design import FlatDesign
from sfumato.streams.flat.flat_device import SPAN, FlatDevice
from sfumato.streams.flat.flat_fleet import FlatFleet
from sfumato.streams.flat.flat_outlook import FlatOutlook, predicted
from sfumato.streams.posterior.believed_periods import BelievedPeriods
from sfumato.streams.weave.curve import Curve
from sfumato.streams.weave.messages import Difference
from sfumato.streams.weave.observations import Observations
from sfumato.streams.weave.strands import USUAL, Sized, Strand, carrier
from sfumato.streams.weave.weave_admission import refuse_sized
from sfumato.wire.values import TaskValues

__all__ = ["Flat"]


@dataclass(frozen=True)
class Flat(FlatDesign):
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
    dummies
        The mean number of meaningless messages beside each message; see
        :mod:`sfumato.streams.flat.chaffed_moves`.
    min_messages
        The smallest number of messages of a period that leave a shuffler, if there are dummies.

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

    name: ClassVar[str] = "flat"
    needed: ClassVar[Mapping[str, str]] = horizon.NEEDED
    optional: ClassVar[tuple[str, ...]] = (*horizon.OPTIONAL, "chaff")
    fewest_periods: ClassVar[int] = 2
    outlook_class: ClassVar[type[Outlook]] = FlatOutlook

    def plain(self) -> dict[str, Any]:
        """Return the fields of a published task that belong to this stream."""
        # Epsilon is below the task's if the promise about shuffled reports needs that, and sizes
        # are there if they were chosen for that promise.
        sizes = {"sized": [list(astuple(each)) for each in self.sized]} if self.sized else {}
        return {"epsilon": self.epsilon, **sizes, **self._chaff}

    @property
    def _chaff(self) -> dict[str, Any]:
        """The published fields of chaff."""
        if not self.dummies:
            return {}
        return {"dummies": self.dummies, "min_messages": self.min_messages}

    def planned_variance(self, devices: int) -> float:
        """Return the variance of a mean move if devices make all the moves they may."""
        return predicted(self, devices).reported

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Self:
        """Return the stream that a published task describes."""
        items: Any = TaskValues.of_spec(spec).items
        design = (spec["periods"], spec["changes"], spec["epsilon"], spec["mechanism"])
        sized = tuple(Sized(*each) for each in spec.get("sized", ()))
        chaff = spec.get("dummies", 0.0), spec.get("min_messages", 0)
        return cls(items, *design, sized, *chaff)

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
        alone = replace(stream, epsilon=best.epsilon, sized=(size,))
        messages = dict(task.get("chaff") or ()).get("messages", 0)
        if not messages:
            return alone
        payload = Difference(stream.width, dense=False).dtype.itemsize
        most = affordable(required, messages, payload)
        few = chaffed(entries, stream.changes, required, stream.epsilon, most)
        if not few.chaff.dummies or few.mse > WORTH * best.mse:
            return alone
        return replace(
            stream,
            epsilon=few.signal.epsilon,
            sized=(Sized(stream.periods, "exsub", 1),),
            dummies=float(few.chaff.dummies),
            min_messages=fewest_messages(few.chaff, required),
        )

    @classmethod
    def admit(cls, spec: Mapping[str, Any]) -> Self:
        """Return the stream of a stranger's task; ConfigurationError if it is too costly."""
        refuse_wide(spec, MOST_ITEMS)
        refuse_heavy(spec)
        if "dummies" in spec:
            refuse_chaff(spec)
            each = 2 + int(spec["dummies"])
            refuse_heavy({**spec, "payload": each * spec["payload"]})
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
        stream = self.strand.mechanism.stream(coins)
        trains = Trains.drawn(self.chaff, coins) if self.dummies else None
        return FlatDevice(self, stream, trains=trains)

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
        ends = np.arange(1, self.periods + 1)
        n = round(sum(tally.n for tally in tallies.values()) / self.messages)
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
        # Of the messages that came only one in so many is about moves.
        contrast = self.strand.contrast / self.messages
        plus, minus = tally.sums / tally.n
        value = (plus - minus) / contrast
        # One more report with the planned moment, so that a few reports never seem certain.
        planned = self.moment(self.strand.nonzeros / self.strand.mechanism.dimension)
        sent = tally.n * (plus + minus) / contrast**2
        moment = (sent + planned * self.messages) / (tally.n + 1)
        square = np.clip(value**2 - moment / tally.n, 0.0, 1.0)
        return value, (moment - square * self.messages) / tally.n


class FlatCurator(Curator):
    """Releases the mean move of each item when a period closes."""

    def __init__(self, protocol: Flat) -> None:
        self._protocol = protocol

    def timestep(self, period: int) -> Steps:
        """Ask for the tallies of a period; release its means."""
        tallies = yield Due(period)
        return self._protocol.curve(tallies).at(period)
