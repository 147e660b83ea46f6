"""The device's half of Flat, which sends each period's randomized moves as they come."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core.stream import Message, Place, StreamDevice
from sfumato.errors import InputError, MismatchError
from sfumato.mechanisms.sparse.entry_streams import EntryStream
from sfumato.randomness import Source
from sfumato.streams.flat.chaffed_moves import Trains
from sfumato.streams.weave import saved

if TYPE_CHECKING:  # a stream makes its devices
    from sfumato.streams.flat.flat import Flat

__all__ = ["SPAN", "FlatDevice"]

SPAN: Final = 1
"""The span of a message, which is about one period."""
BESIDE: Final = -2
"""What the coins of dummies are bound to: a number that no move is, the same for all devices."""


@dataclass
class FlatDevice(StreamDevice):
    """One device: the rest of its secret counts, its period, and its dummies if it has any."""

    protocol: Flat
    stream: EntryStream
    period: int = 0
    trains: Trains | None = None
    _beside: tuple[Message, ...] = ()

    @property
    def beside(self) -> tuple[Message, ...]:
        """The messages of the dummies in the last period."""
        return self._beside

    @property
    def message_bytes(self) -> int:
        """The number of bytes of each message."""
        return self.protocol.payload

    def observe(self, value: ArrayLike | None, coins: Source) -> Message:
        """Observe the next period's moves, one for each item; return the message that is due.

        None, and anything that is not a list of moves, counts as no move.
        """
        if self.period == self.protocol.periods:
            raise MismatchError(f"all {self.period} periods have been observed; join a new task.")
        try:
            moves = self.protocol.moves(value)
        except InputError:
            moves = self.protocol.moves(None)
        self.period += 1
        own = coins.bound(moves).coins()
        signs = [self.stream.observe(move, own) for move in moves]
        if self.trains is not None:
            width, before = self.protocol.width, self.protocol.width * (self.period - 1)
            left = self.protocol.strand.mechanism.padded_dimension - before
            # These coins are not bound to what the device holds, and neither is what is drawn.
            due = self.trains.due(width, left, coins.bound([BESIDE]).coins())
            self._beside = tuple(map(self._message, due))
        return self._message(signs)

    def _message(self, signs: list[int]) -> Message:
        message = self.protocol.difference.write(np.array([signs], dtype=np.int8))
        return Message(Place(SPAN, self.period), message.tobytes())

    def save(self) -> dict[str, Any]:
        """Return the state as plain data, which is as secret as the stream itself."""
        state = {"period": self.period, "stream": list(self.stream.save())}
        trains = self.trains
        return state if trains is None else state | {"trains": [trains.dummies, trains.coming]}

    @classmethod
    def restore(cls, protocol: Flat, state: Any) -> Self:
        """Return the device of a saved state; MismatchError if no device can have saved it."""
        mechanism = protocol.strand.mechanism
        most = math.ceil(protocol.dummies) if protocol.dummies else None
        saved.check_flat(mechanism, protocol.periods, protocol.width, state, most)
        trains = Trains(*state["trains"]) if most else None
        return cls(protocol, mechanism.resumed(state["stream"]), state["period"], trains)
