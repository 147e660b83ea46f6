"""The contract of a kind of values, and the check of codes of whole streams."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Ints
from sfumato.core.domain import Label
from sfumato.errors import InputError
from sfumato.streams.snapshots import Look, Snapshot

__all__ = ["CHUNK_BYTES", "Bits", "Values", "judged_codes"]

Bits = NDArray[np.int8]

CHUNK_BYTES: Final = 1 << 25
"""The number of entries of whole streams that are encoded at a time."""


class Values(ABC):
    """A kind of values, each of which is a vector of zeros and ones.

    A *block* is a run of entries that one snapshot shows: all entries or, if there are several
    attributes, those of one attribute.
    """

    kind: ClassVar[str]
    """The name of the kind in a task file."""

    @property
    @abstractmethod
    def labels(self) -> tuple[Label, ...]:
        """The names of the entries."""

    @property
    def width(self) -> int:
        """The number of entries."""
        return len(self.labels)

    @property
    def blocks(self) -> tuple[slice, ...]:
        """The entries of each block, as slices."""
        return (slice(0, self.width),)

    @property
    def least_changes(self) -> int:
        """The smallest number of entries that change when the first value appears."""
        return 1

    @property
    def always_there(self) -> bool:
        """Whether every stream uses a change for its first value.

        If so, and snapshots show the level, a thread should leave out its first look.
        """
        return False

    @property
    def default(self) -> Any:
        """The value of a device before its first observation: public, and the same for all."""
        return None

    @abstractmethod
    def inputs(self) -> Sequence[Any]:
        """Return every value that a device can hold, except None."""

    @abstractmethod
    def encode(self, value: Any) -> Bits:
        """Return the entries of one value; raise InputError if it is not of this kind."""

    @abstractmethod
    def encode_streams(self, streams: Array) -> Bits:
        """Return the entries of whole streams, (devices, periods, width), for simulation."""

    @abstractmethod
    def said(self, cell: Any) -> Any:
        """Return a coded value in the form in which an app passes it to a device."""

    def totals(self, streams: Array, seen: Callable[[Bits], Bits] = lambda bits: bits) -> Ints:
        """Return the number of devices that hold each entry (columns) in each period (rows).

        Parameters
        ----------
        streams
            The codes of each device (rows) in each period (columns).
        seen
            A function that removes entries which do not count.

        """
        total = np.zeros((streams.shape[1], self.width), dtype=np.int64)
        step = max(1, CHUNK_BYTES // total.size)
        for start in range(0, len(streams), step):
            bits = self.encode_streams(streams[start : start + step])
            total += seen(bits).sum(axis=0, dtype=np.int64)
        return total

    @abstractmethod
    def changes(self, most: int, differences: int, *, anchored: bool) -> int:
        """Return the number of entries that can change in the differences of one thread.

        ``most`` limits the changes of a whole stream, starting from the empty state; an anchored
        thread does not send its first value, only later changes.
        """

    @abstractmethod
    def snapshot(self, epsilon: float, block: int, look: Look | None = None) -> Snapshot:
        """Return the best oracle for a snapshot of a block, or the one chosen by ``look``."""

    def describe(self) -> dict[str, Any]:
        """Return the kind as plain data, as in a task file."""
        return {"kind": self.kind}


def judged_codes(streams: Any, least: int, most: int, *parts: int) -> Array:
    """Return codes of whole streams with these parts; raise InputError for a wrong code."""
    codes = np.asarray(streams)
    if codes.ndim != 2 + len(parts) or codes.shape[2:] != parts:
        expected = ", ".join(["devices", "periods", *map(str, parts)])
        raise InputError(f"streams have shape {codes.shape}; ({expected}) is expected.")
    if codes.dtype.kind not in "iub":
        raise InputError(
            f"streams have dtype {codes.dtype}; whole numbers {least}..{most} are expected."
        )
    if codes.size and (int(codes.min()) < least or int(codes.max()) > most):
        index = tuple(int(at) for at in np.argwhere((codes < least) | (codes > most))[0])
        raise InputError(
            f"streams has {codes[index]} for device {index[0]} in period {index[1] + 1}; "
            f"whole numbers {least}..{most} are expected."
        )
    return codes
