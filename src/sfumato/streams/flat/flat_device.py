"""The device's half of Flat, which sends each period's randomized moves as they come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core.stream import Message, Place, StreamDevice
from sfumato.errors import InputError, MismatchError
from sfumato.mechanisms.sparse.entry_streams import EntryStream
from sfumato.randomness import Source
from sfumato.streams.weave import saved

if TYPE_CHECKING:  # a stream makes its devices
    from sfumato.streams.flat.flat import Flat

__all__ = ["SPAN", "FlatDevice"]

SPAN: Final = 1
"""The span of a message, which is about one period."""


@dataclass
class FlatDevice(StreamDevice):
    """One device: the rest of its secret counts, and its period."""

    protocol: Flat
    stream: EntryStream
    period: int = 0

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
        message = self.protocol.difference.write(np.array([signs], dtype=np.int8))
        return Message(Place(SPAN, self.period), message.tobytes())

    def save(self) -> dict[str, Any]:
        """Return the state as plain data, which is as secret as the stream itself."""
        return {"period": self.period, "stream": list(self.stream.save())}

    @classmethod
    def restore(cls, protocol: Flat, state: Any) -> Self:
        """Return the device of a saved state; MismatchError if no device can have saved it."""
        mechanism = protocol.strand.mechanism
        saved.check_flat(mechanism, protocol.periods, protocol.width, state)
        return cls(protocol, mechanism.resumed(state["stream"]), state["period"])
