"""The device of a flat stream: it sends each period's moves, blurred, as they come."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
from numpy.typing import ArrayLike

from sfumato.core.stream import Message, Place, StreamDevice
from sfumato.errors import InputError, MismatchError
from sfumato.mechanisms.sparse.subset.subset_stream import DenseStream, SubsetStream
from sfumato.randomness import Source
from sfumato.streams.weave import saved

if TYPE_CHECKING:  # a stream makes its devices
    from sfumato.streams.flat.flat import Flat

__all__ = ["SPAN", "FlatDevice"]

SPAN: Final = 1
"""Each message speaks of one period."""


@dataclass
class FlatDevice(StreamDevice):
    """One device: what it has left to send, and how far it is."""

    protocol: Flat
    stream: SubsetStream | DenseStream
    period: int = 0

    @property
    def message_bytes(self) -> int:
        """The size of each of its messages."""
        return self.protocol.payload

    def observe(self, value: ArrayLike | None, coins: Source) -> Message:
        """Take in the next period's moves, one for each item; return the message due now.

        None, and whatever is no move, counts as a period in which nothing has moved.
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
        """Return the state as plain data; it is as secret as the stream itself."""
        return {"period": self.period, "stream": list(self.stream.save())}

    @classmethod
    def restore(cls, protocol: Flat, state: Any) -> Self:
        """Go on from a saved state; raise MismatchError on what no device of this design saved."""
        saved.check_flat(protocol.strand.mechanism, protocol.periods, protocol.width, state)
        kind = DenseStream if protocol.strand.mechanism.form.dense else SubsetStream
        return cls(protocol, kind.restore(tuple(state["stream"])), state["period"])
