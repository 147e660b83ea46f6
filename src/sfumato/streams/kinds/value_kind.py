"""The contract of a kind of values, and how codes of whole streams are judged."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.core.domain import Label
from sfumato.errors import InputError
from sfumato.streams.snapshots import Look, Snapshot

__all__ = ["CHUNK_BYTES", "Bits", "Values", "judged_codes"]

Bits = NDArray[np.int8]

CHUNK_BYTES: Final = 1 << 25
"""So many entries of whole streams are encoded at a time."""


class Values(ABC):
    """What a device observes, as a vector of zeros and ones.

    A *block* is a run of entries that one snapshot speaks about: all of them, but for several
    attributes, of which a snapshot picks one.
    """

    kind: ClassVar[str]
    """What a task file calls it."""

    @property
    @abstractmethod
    def labels(self) -> tuple[Label, ...]:
        """What the entries are called."""

    @property
    def width(self) -> int:
        """How many entries there are."""
        return len(self.labels)

    @property
    def blocks(self) -> tuple[slice, ...]:
        """The entries of each snapshot."""
        return (slice(0, self.width),)

    @property
    def least_changes(self) -> int:
        """How many entries change when the first value appears, at least."""
        return 1

    @property
    def always_there(self) -> bool:
        """Whether every stream spends a change on its first value.

        Where snapshots tell the level, a thread then does better to leave its first look out.
        """
        return False

    @property
    def default(self) -> Any:
        """What a device that has seen nothing yet sends as: public, and the same for all."""
        return None

    @abstractmethod
    def inputs(self) -> Sequence[Any]:
        """Return every value a device can hold, but for none at all."""

    @abstractmethod
    def encode(self, value: Any) -> Bits:
        """Return the entries of one value; raise InputError on a bad one."""

    @abstractmethod
    def encode_streams(self, streams: NDArray[Any]) -> Bits:
        """Return the entries of whole streams, (devices, periods, width), for simulation."""

    @abstractmethod
    def said(self, cell: Any) -> Any:
        """Return one value of such streams, as an app says it to a device."""

    def totals(
        self, streams: NDArray[Any], seen: Callable[[Bits], Bits] = lambda bits: bits
    ) -> NDArray[np.int64]:
        """Return of each period and entry how many of some devices have it.

        Parameters
        ----------
        streams
            What each device (rows) holds in each period (columns), in codes.
        seen
            What is left of the entries of some devices, if not all of them count.

        """
        total = np.zeros((streams.shape[1], self.width), dtype=np.int64)
        step = max(1, CHUNK_BYTES // total.size)
        for start in range(0, len(streams), step):
            bits = self.encode_streams(streams[start : start + step])
            total += seen(bits).sum(axis=0, dtype=np.int64)
        return total

    @abstractmethod
    def changes(self, most: int, differences: int, *, anchored: bool) -> int:
        """Return how many entries can change in so many differences of one thread.

        ``most`` bounds a whole stream, from the empty state on; an anchored thread does not send
        its first value, only what comes after.
        """

    @abstractmethod
    def snapshot(self, epsilon: float, block: int, look: Look | None = None) -> Snapshot:
        """Return the best single look at a block, or the one that was chosen before."""

    def describe(self) -> dict[str, Any]:
        """Return the kind as plain data, as in a task file."""
        return {"kind": self.kind}


def judged_codes(streams: Any, least: int, most: int, *parts: int) -> NDArray[Any]:
    """Return whole streams of codes, of so many parts each; raise InputError on a wrong one."""
    codes = np.asarray(streams)
    if codes.ndim != 2 + len(parts) or codes.shape[2:] != parts:
        expected = ", ".join(["devices", "periods", *map(str, parts)])
        raise InputError(f"streams have shape {codes.shape}; ({expected}) is expected.")
    if codes.dtype.kind not in "iub":
        raise InputError(
            f"streams have dtype {codes.dtype}; whole numbers {least}..{most} are expected."
        )
    if codes.size and (int(codes.min()) < least or int(codes.max()) > most):
        place = tuple(int(at) for at in np.argwhere((codes < least) | (codes > most))[0])
        raise InputError(
            f"streams has {codes[place]} for device {place[0]} in period {place[1] + 1}; "
            f"whole numbers {least}..{most} are expected."
        )
    return codes
