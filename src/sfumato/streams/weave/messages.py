"""The bytes of one difference: a sign for each entry, in a message of fixed size.

There are two bits for each entry (none, plus, minus), or one if every entry has a sign. A message
is sent at each boundary of a thread, even if it is empty, so silence means loss and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Bools
from sfumato.core.tally import Tally
from sfumato.errors import ReportError

__all__ = ["Difference"]


@dataclass(frozen=True)
class Difference:
    """The form of the signs of ``width`` entries.

    Examples
    --------
    >>> form = Difference(3, dense=False)
    >>> message = form.write(np.array([[0, 1, -1]]))
    >>> form.signs(message).tolist()
    [[0, 1, -1]]
    >>> form.dtype.itemsize
    1

    """

    width: int
    dense: bool

    @property
    def _bits(self) -> int:
        return self.width * (1 if self.dense else 2)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The numpy dtype of a message."""
        return np.dtype([("packed", "u1", ((self._bits + 7) // 8,))])

    def write(self, signs: Array) -> Array:
        """Return one message for each row of -1, 0 and 1."""
        if self.dense:
            bits = signs > 0
        else:
            bits = np.stack([signs > 0, signs < 0], axis=2).reshape(len(signs), -1)
        messages = np.zeros(len(signs), dtype=self.dtype)
        messages["packed"] = np.packbits(bits, axis=1, bitorder="little")
        return messages

    def _unpacked(self, messages: Array) -> NDArray[np.uint8]:
        return np.unpackbits(messages["packed"], axis=1, count=self._bits, bitorder="little")

    def signs(self, messages: Array) -> NDArray[np.int8]:
        """Return the sign of each entry in each message: -1, 0 or 1."""
        bits = self._unpacked(messages).view(np.int8)
        return 2 * bits - 1 if self.dense else bits[:, 0::2] - bits[:, 1::2]

    def valid(self, messages: Array) -> Bools:
        """Return a mask of the messages that a device can have sent."""
        good = np.ones(len(messages), dtype=bool)
        if self._bits % 8:
            good &= messages["packed"][:, -1] >> self._bits % 8 == 0
        if not self.dense:
            bits = self._unpacked(messages)
            good &= ~(bits[:, 0::2] & bits[:, 1::2]).any(axis=1)
        return good

    def tally(self, messages: Array) -> Tally:
        """Return the counts of plus and minus for each entry; ReportError if one is not valid."""
        if not isinstance(messages, np.ndarray) or messages.dtype != self.dtype:
            dtype = getattr(messages, "dtype", type(messages).__name__)
            raise ReportError(f"messages have dtype {dtype}; differences have {self.dtype}.")
        judged = self.valid(messages)
        if not judged.all():
            raise ReportError(
                f"messages[{int(np.argmin(judged))}] says plus and minus of one entry, or more "
                f"than {self.width} entries; no device sends that."
            )
        return self.counted(messages)

    def counted(self, messages: Array) -> Tally:
        """Return the tally of messages that have already been found valid."""
        bits = self._unpacked(messages)
        plus = bits.sum(axis=0, dtype=np.int64) if self.dense else bits[:, 0::2].sum(0, np.int64)
        minus = len(bits) - plus if self.dense else bits[:, 1::2].sum(axis=0, dtype=np.int64)
        return Tally(len(bits), np.stack([plus, minus]))
