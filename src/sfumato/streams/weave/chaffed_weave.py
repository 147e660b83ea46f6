"""Weave with chaff: every device sends dummies beside its signal, on threads of their own.

All messages are unlinked by a shuffler, so that dummies hide the signals of all devices; see
:mod:`sfumato.streams.weave.dummies` and docs/proofs/chaff.md. In each place messages are a mixture
with known chances, of signals and of even dummies: estimates divide by the part of signals.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from math import floor
from typing import Any, Self, cast

import numpy as np

from sfumato.accounting.shuffle import Chaff, ChaffedLevels, Levels
from sfumato.arrays import Array, Bools
from sfumato.core.doubt import Doubt
from sfumato.core.fleet import Population
from sfumato.core.outlook import Sent
from sfumato.core.stream import Ask, Form, Place
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError
from sfumato.randomness import Source
from sfumato.streams.chaff_in_tasks import chaff_of
from sfumato.streams.snapshots import Snapshot
from sfumato.streams.weave.chaffed_device import ChaffedDevice
from sfumato.streams.weave.chaffed_fleet import ChaffedFleet
from sfumato.streams.weave.dummies import UNITS, even_chance
from sfumato.streams.weave.mix import Network
from sfumato.streams.weave.strands import Strand
from sfumato.streams.weave.threads import SNAPSHOT, Thread
from sfumato.streams.weave.weave import Weave

__all__ = ["ChaffedWeave"]


@dataclass(frozen=True)
class ChaffedWeave(Weave):
    """A Weave whose devices send dummies beside their signals.

    Its other parameters are those of a Weave with all sizes, of which differences send one symbol.

    Parameters
    ----------
    dummies
        The mean number of a device's dummies.
    min_messages
        The smallest number of messages of a period that leave a shuffler.

    """

    dummies: float = 1.0
    min_messages: int = 0

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless dummies can hide what this stream sends."""
        super().__post_init__()
        object.__setattr__(self, "dummies", float(chaff_of(self.dummies).dummies))
        if self.aligned or self.enrols or not self.dummies:
            raise ConfigurationError(
                "dummies are sent where threads are aligned or devices enrol; neither is expected."
                if self.dummies
                else "dummies is 0; a stream without chaff is a Weave."
            )
        lacking = {
            len(self.edges(thread)) for thread, _ in self.signal.threads() if thread.span
        } - {each.differences for each in self.sized}
        if lacking or any((each.carrier, each.size) != ("exsub", 1) for each in self.sized):
            raise ConfigurationError(
                f"sized is {self.sized!r} where dummies are sent; one symbol of exsub is expected "
                "for every thread."
            )
        for look in self.signal.snapshots if SNAPSHOT in self.spans else ():
            even_chance(look.mechanism)

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Self:
        """Return the stream that a published task describes."""
        design = Weave.plainly(spec)
        own = {field.name: getattr(design, field.name) for field in fields(Weave)}
        return cls(**own, dummies=spec["dummies"], min_messages=spec["min_messages"])

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield nothing: checks follow the signal, which is a Weave."""
        yield from ()

    # ---- what is sent --------------------------------------------------------------------------

    @cached_property
    def signal(self) -> Weave:
        """The stream without its dummies: what a device sends about its value."""
        return Weave(*(getattr(self, field.name) for field in fields(Weave)))

    @cached_property
    def chaff(self) -> Chaff:
        """The number of a device's dummies."""
        return chaff_of(self.dummies)

    @property
    def most_messages(self) -> int:
        """The largest number of messages of a device in a period."""
        return 1 + self.chaff.certain + (self.chaff.chance > 0)

    @cached_property
    def _message(self) -> ChaffedLevels:
        levels = cast("Levels", self.signal.message())
        return ChaffedLevels(levels, self.chaff, self.epsilon)

    def message(self) -> ChaffedLevels:
        """Return everything that a device sends: its signal, with dummies beside it."""
        return self._message

    def kept(self, thread: Thread) -> int:
        """Return the chance of keeping a dummy's thread that was drawn like a signal's, in units.

        Dummies are on a thread as often as signals that are drawn evenly.
        """
        return floor(UNITS * even_chance(self.mechanism_of(thread)) / self._most_even)

    @cached_property
    def _most_even(self) -> Fraction:
        return max(even_chance(self.mechanism_of(thread)) for thread, _ in self.signal.threads())

    def mechanism_of(self, thread: Thread) -> Any:
        """Return the mechanism of a thread."""
        if thread.is_snapshot:
            return self.signal.snapshots[thread.block].mechanism
        return self.signal.strand(thread).mechanism

    def real_symbols(self, thread: Thread) -> int:
        """Return the number of a difference thread's symbols that are no stubs."""
        return 2 * len(self.edges(thread)) * self.values.width

    def signals(self, thread: Thread) -> float:
        """Return the part of a thread's messages that are signals."""
        dummies = self.dummies * float(even_chance(self.mechanism_of(thread))) / self._even
        return 1 / (1 + dummies)

    @cached_property
    def _even(self) -> float:
        """The chance that a signal is drawn evenly, whatever thread it is on."""
        levels = cast("Levels", self.signal.message())
        return sum(float(chance) * float(even_chance(each)) for chance, each in levels.parts)

    # ---- what is read --------------------------------------------------------------------------

    def threads(self) -> Iterator[tuple[Thread, float]]:
        """Yield every thread with the mean number of its messages at a look, for each device."""
        for thread, share in super().threads():
            yield thread, share / self.about_values(thread)

    def about_values(self, thread: Thread) -> float:
        """Return the part of a thread's messages that are about values."""
        if thread.is_snapshot:
            return self.snapshots[thread.block].signals
        return self.strand(thread).signals

    def _strand(self, differences: int) -> Strand:
        strands = self._strands
        if differences not in strands:
            thread = next(
                thread
                for thread, _ in self.signal.threads()
                if thread.span and len(self.edges(thread)) == differences
            )
            strands[differences] = replace(self.signal.strand(thread), signals=self.signals(thread))
        return strands[differences]

    @cached_property
    def snapshots(self) -> tuple[Snapshot, ...]:
        """The snapshot of each block, with dummies among its reports."""
        return tuple(
            replace(look, signals=self.signals(Thread(SNAPSHOT, 1, block)))
            if SNAPSHOT in self.spans
            else look
            for block, look in enumerate(self.signal.snapshots)
        )

    def block_network(self, block: int) -> Network:
        """Return the graph of one block's entries; its conductances are those of one device."""
        whole = super().block_network(block)
        table = np.stack([whole.start, whole.end, whole.span], axis=1).tolist()
        threads = [
            Thread(SNAPSHOT, end, block)
            if not self.spans[span]
            else Thread(self.spans[span], end % self.spans[span])
            for _, end, span in table
        ]
        parts = np.array([self.about_values(thread) for thread in threads])
        return Network(self.periods, self.spans, table, (whole.unit / parts).tolist())

    def form(self, place: Place, ask: Ask | None = None) -> Form | None:
        """Return the form of the messages of a place; a difference has one symbol at most."""
        form = super().form(place, ask)
        if form is None or place.span == SNAPSHOT:
            return form
        written = self.difference(Thread(place.span, place.period % place.span))

        def valid(messages: Array) -> Bools:
            few = np.abs(written.signs(messages)).sum(axis=1) <= 1
            return np.asarray(written.valid(messages) & few)

        return Form(form.dtype, valid, form.tally)

    def doubt(self, place: Place, tally: Tally, ask: Ask | None = None) -> Doubt | None:
        """Return None: with chaff among them, reports are not judged."""
        del place, tally, ask
        return None

    # ---- what is published, and what it costs ----------------------------------------------------

    def plain(self) -> dict[str, Any]:
        """Return the fields of a published task that belong to this stream, with all sizes."""
        return super().plain() | {"dummies": self.dummies, "min_messages": self.min_messages}

    def describe(self) -> dict[str, Any]:
        """Return the public design as plain data, with everything that a device depends on."""
        return super().describe() | {"dummies": self.dummies}

    def facts(self) -> dict[str, Any]:
        """Return the choices made: changes, mechanism, mix and dummies."""
        return super().facts() | {"dummies": self.dummies}

    def at(self, epsilon: float) -> Self:
        """Return the same stream at another epsilon, with the sizes that it has."""
        return self.fixed_at(epsilon)

    @property
    def sent(self) -> Sent:
        """What a device sends over the horizon, dummies included."""
        whole = super().sent
        return whole._replace(most_messages=whole.most_messages * self.most_messages)

    def influence(self, devices: int) -> float:
        """Return the most that one forged device can change a period's mean when it closes."""
        return self.most_messages * super().influence(devices)

    # ---- devices ---------------------------------------------------------------------------------

    def device(self, coins: Source, tier: int = 0) -> ChaffedDevice:
        """Return a new device on a randomly drawn thread, with its dummies."""
        self.offer(tier)
        return ChaffedDevice.join(self, coins)

    def restore(self, state: Any) -> ChaffedDevice:
        """Return the device that continues from a saved state."""
        return ChaffedDevice.restore(self, state)

    def fleet(self, population: Population, rng: Source) -> ChaffedFleet:
        """Return simulated devices, each on a randomly drawn thread, with their dummies."""
        return ChaffedFleet(self, population, rng)
