"""The public design of Flat: its mechanism, its messages and its chaff."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sfumato.accounting.shuffle import Chaff
from sfumato.arrays import Array, Bools
from sfumato.core.domain import Domain, Label
from sfumato.core.doubt import Doubt
from sfumato.core.field_checks import check_number, check_one_of, check_whole
from sfumato.core.form import Form
from sfumato.core.guarantee import Guarantee
from sfumato.core.mechanism import Mechanism
from sfumato.core.outlook import Sent
from sfumato.core.quantity import MOVE, Quantity
from sfumato.core.stream import Ask, Place, Stream
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse.subset.chaffed_vectors import ChaffedVectors
from sfumato.mechanisms.sparse.subset.signed_subset import ExSub
from sfumato.streams.chaff_in_tasks import chaff_of
from sfumato.streams.flat.flat_device import SPAN
from sfumato.streams.weave.messages import Difference
from sfumato.streams.weave.strands import Carrier, Sized, Strand, carrier, carriers

__all__ = ["FlatDesign"]


@dataclass(frozen=True)
class FlatDesign(Stream):
    """The public numbers of a :class:`~sfumato.streams.flat.flat.Flat`, and what follows.

    The parameters are those of a Flat.
    """

    items: int | tuple[Label, ...]
    periods: int
    changes: int
    epsilon: float
    mechanism: Carrier = "auto"
    sized: tuple[Sized, ...] = ()
    dummies: float = 0.0
    min_messages: int = 0

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
        object.__setattr__(self, "dummies", float(chaff_of(self.dummies).dummies))
        if self.dummies and [each.size for each in self.sized] != [1]:
            raise ConfigurationError(
                f"sized is {self.sized!r} where dummies are sent; one symbol is expected."
            )
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

    @cached_property
    def chaff(self) -> Chaff:
        """The dummies beside each message."""
        return chaff_of(self.dummies)

    @property
    def messages(self) -> float:
        """The mean number of messages of a device in a period."""
        return 1 + self.dummies

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
        if not self.dummies:
            return Form(written.dtype, written.valid, written.counted)

        def valid(messages: Array) -> Bools:
            few = np.abs(written.signs(messages)).sum(axis=1) <= 1
            return np.asarray(written.valid(messages) & few)

        return Form(written.dtype, valid, written.counted)

    def doubt(self, place: Place, tally: Tally, ask: Ask | None = None) -> Doubt | None:
        """Return how improbable the moves of a period are; None if there is chaff among them."""
        del place, ask
        return None if self.dummies else self.strand.mechanism.doubt(tally)

    def facts(self) -> dict[str, Any]:
        """Return the choices made: the mechanism that carries the moves."""
        chaff = {"dummies": self.dummies} if self.dummies else {}
        return {"changes": self.changes, "mechanism": self.strand.mechanism.name, **chaff}

    def influence(self, devices: int) -> float:
        """Return the most that one forged device can change the mean move of a period."""
        most = 1 + self.chaff.certain + (self.chaff.chance > 0)
        return most * self.strand.mechanism.influence / devices

    @property
    def sent(self) -> Sent:
        """What a device sends over the horizon: all its messages, in every period."""
        messages = self.periods * self.messages
        most = self.periods * (1 + self.chaff.certain + (self.chaff.chance > 0))
        return Sent(messages, messages * self.payload, float(most))

    def moment(self, density: float) -> float:
        """Return the second moment of a device's part, if this share of entries is not zero."""
        noise = self.dummies / (self.strand.mechanism.padded_dimension * self.strand.contrast**2)
        return self.strand.moment(density) + noise

    def message(self) -> Mechanism | ChaffedVectors:
        """Return everything that a device sends over the horizon, as one message."""
        mechanism = self.strand.mechanism
        if self.dummies and isinstance(mechanism, ExSub):
            return ChaffedVectors(mechanism, self.chaff)
        return mechanism
