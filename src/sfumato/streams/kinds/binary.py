"""Values that are on or off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from sfumato.arrays import Array
from sfumato.core.domain import Label
from sfumato.core.exact import is_finite_number
from sfumato.errors import InputError
from sfumato.streams import snapshots
from sfumato.streams.kinds.value_kind import Bits, Values, judged_codes
from sfumato.streams.snapshots import Look, Snapshot

__all__ = ["Binary"]


@dataclass(frozen=True)
class Binary(Values):
    """A value that is on or off.

    Examples
    --------
    >>> Binary().encode(1).tolist()
    [1]

    """

    label: Label = "on"
    kind: ClassVar[str] = "binary"

    @property
    def labels(self) -> tuple[Label, ...]:
        """The name of the only entry."""
        return (self.label,)

    def inputs(self) -> Sequence[Any]:
        """Return the two values, off and on."""
        return (0, 1)

    def encode(self, value: Any) -> Bits:
        """Return the value as a vector of one bit; raise InputError if it is not 0 or 1."""
        number = isinstance(value, (bool, np.bool_)) or is_finite_number(value)
        if not number or value not in (0, 1):
            raise InputError(f"value is {value!r}; 0 or 1 is expected.")
        return np.array([int(value)], dtype=np.int8)

    def encode_streams(self, streams: Array) -> Bits:
        """Return streams of 0 and 1 as bits, by [device, period, entry]."""
        return judged_codes(streams, 0, 1).astype(np.int8)[:, :, None]

    def said(self, cell: Any) -> int:
        """Return the value as 0 or 1."""
        return int(cell)

    def changes(self, most: int, differences: int, *, anchored: bool) -> int:
        """Return the number of changes: at most one for each difference."""
        del anchored
        return min(most, differences)

    def snapshot(self, epsilon: float, block: int, look: Look | None = None) -> Snapshot:
        """Return the oracle of a snapshot: randomized response."""
        del block, look
        return snapshots.of_bit(epsilon)

    def describe(self) -> dict[str, Any]:
        """Return the kind and its label as plain data."""
        return {"kind": self.kind, "items": [self.label]}
