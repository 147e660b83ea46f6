"""Tallies: what the server keeps of many reports, a count and sums that add in any order."""

from __future__ import annotations

import math
import struct
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Self, TypeVar

import numpy as np

from sfumato.arrays import Ints
from sfumato.core.exact import is_whole_number
from sfumato.errors import MismatchError

__all__ = ["ENROLMENT", "Place", "Tallies", "Tally"]

VERSION: Final = 1
MAGIC: Final = b"SFT1"
MOST_SIDES: Final = 4
_HEAD: Final = struct.Struct("<BBQ")
_PLACE: Final = struct.Struct("<HIH")

ALONE: Final = 0
"""The span of a report about one period alone."""
ENROLMENT: Final = 0xFFFF
"""The span of what a device says once: that it takes part from a period on."""


class Place(NamedTuple):
    """The place of a report: the key of the tally it is counted in.

    Reports of one place come from one mechanism and are counted together.

    Parameters
    ----------
    span
        How many periods a difference looks back; 0 for a report about one period alone, which is a
        snapshot or an answer; `ENROLMENT` for a device that says that it takes part.
    period
        The period that the report is about.
    part
        Which part of the value a snapshot shows, or which question of the period an answer belongs
        to; 0 for a difference.

    Examples
    --------
    >>> Place.answer(period=7, round=1)
    Place(span=0, period=7, part=1)

    """

    span: int
    period: int
    part: int = 0

    @classmethod
    def answer(cls, period: int, round: int) -> Place:  # noqa: A002 -- the word of all streams
        """Return the place of the answers to one question about a period."""
        return cls(ALONE, period, round)


@dataclass(frozen=True, eq=False)
class Tally:
    """How many reports were counted and what they sum to: a commutative monoid under ``+``.

    Merging shards, resuming after a crash and counting on many machines are all this one sum.

    Parameters
    ----------
    n
        Number of reports.
    sums
        What the reports of the mechanism add up to, as 64-bit integers.

    Examples
    --------
    >>> Tally(2, np.array([1, 1])) + Tally(1, np.array([0, 1]))
    Tally(n=3, sums=[1, 2])

    """

    n: int
    sums: Ints

    def __post_init__(self) -> None:
        """Check the count, and keep the sums as a read-only array of 64-bit integers."""
        if not is_whole_number(self.n) or self.n < 0:
            raise MismatchError(f"n is {self.n!r}; a tally counts 0 or more reports.")
        array = np.asarray(self.sums)
        if array.dtype.kind not in "iu":
            raise MismatchError(f"sums have dtype {array.dtype}; a tally holds integers.")
        if array.dtype == np.uint64 and bool((array > np.iinfo(np.int64).max).any()):
            raise MismatchError("sums have a number above 2^63 - 1; a tally holds 64-bit integers.")
        sums = array.astype(np.int64)
        sums.flags.writeable = False
        object.__setattr__(self, "n", int(self.n))
        object.__setattr__(self, "sums", sums)

    def encode(self) -> bytes:
        """Return the tally as bytes: a version, n, the shape and the sums, all little-endian.

        Examples
        --------
        >>> Tally.decode(Tally(3, np.array([[1, 2]])).encode())
        Tally(n=3, sums=[[1, 2]])

        """
        shape = self.sums.shape
        head = _HEAD.pack(VERSION, len(shape), self.n)
        return head + np.array(shape, "<u4").tobytes() + self.sums.astype("<i8").tobytes()

    @classmethod
    def decode(cls, data: bytes) -> Tally:
        """Return the tally in these bytes; raise MismatchError unless they are exactly one."""
        tally, rest = cls._read(memoryview(data))
        if rest:
            raise MismatchError(f"{len(rest)} bytes follow a tally; nothing is expected there.")
        return tally

    @classmethod
    def _read(cls, data: memoryview) -> tuple[Tally, memoryview]:
        """Return the tally that bytes begin with, and the bytes after it."""
        if len(data) < _HEAD.size:
            raise MismatchError(f"a tally has {len(data)} bytes; its head alone has {_HEAD.size}.")
        version, sides, n = _HEAD.unpack_from(data)
        if version != VERSION or not 1 <= sides <= MOST_SIDES or n >= 1 << 63:
            raise MismatchError(
                f"a tally begins with {data[: _HEAD.size].hex()}; version {VERSION}, "
                f"1..{MOST_SIDES} sides and a count are expected."
            )
        begin = _HEAD.size + 4 * sides
        shape = np.frombuffer(
            bytes(data[_HEAD.size : begin]).ljust(4 * sides, b"\0"), "<u4"
        ).tolist()
        size = 8 * math.prod(shape)
        if len(data) < begin + size:
            raise MismatchError(f"a tally has {len(data)} bytes; {begin + size} are expected.")
        sums = np.frombuffer(data[begin : begin + size], "<i8").reshape(shape)
        return cls(n, sums), data[begin + size :]

    @classmethod
    def zero(cls, shape: int | tuple[int, ...]) -> Self:
        """Return the tally of no reports."""
        return cls(0, np.zeros(shape, dtype=np.int64))

    def __add__(self, other: object) -> Tally:
        if not isinstance(other, Tally):
            return NotImplemented
        if self.sums.shape != other.sums.shape:
            raise MismatchError(
                f"tallies of shapes {self.sums.shape} and {other.sums.shape} cannot be added; "
                "they must come from one mechanism."
            )
        return Tally(self.n + other.n, self.sums + other.sums)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        return self.n == other.n and np.array_equal(self.sums, other.sums)

    def __hash__(self) -> int:
        return hash((self.n, self.sums.tobytes()))

    def __repr__(self) -> str:
        shown = np.array2string(self.sums, separator=", ", threshold=12)
        return f"Tally(n={self.n}, sums={shown})"


K = TypeVar("K", bound=Hashable)


class Tallies(Mapping[K, Tally]):
    """Tallies by key; keys tell apart what must not be added up, such as periods or places.

    Examples
    --------
    >>> monday = Tallies({"mon": Tally(1, np.array([1]))})
    >>> tuesday = Tallies({"mon": Tally(2, np.array([1])), "tue": Tally(1, np.array([0]))})
    >>> dict(monday + tuesday)
    {'mon': Tally(n=3, sums=[2]), 'tue': Tally(n=1, sums=[0])}

    """

    def __init__(self, tallies: Mapping[K, Tally] | None = None) -> None:
        self._tallies: Mapping[K, Tally] = MappingProxyType(dict(tallies or {}))

    def __getitem__(self, key: K) -> Tally:
        return self._tallies[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._tallies)

    def __len__(self) -> int:
        return len(self._tallies)

    def __add__(self, other: object) -> Tallies[Any]:
        if not isinstance(other, Tallies):
            return NotImplemented
        return Tallies.sum((self, other))

    @staticmethod
    def sum(parts: Iterable[Tallies[Any]]) -> Tallies[Any]:
        """Return the sum of many tallies; memory does not grow with their number.

        Examples
        --------
        >>> monday = Tallies({"mon": Tally(1, np.array([1]))})
        >>> dict(Tallies.sum([monday, Tallies(), monday]))
        {'mon': Tally(n=2, sums=[2])}

        """
        merged: dict[Any, Tally] = {}
        for part in parts:
            for key, tally in part.items():
                merged[key] = merged[key] + tally if key in merged else tally
        return Tallies(merged)

    def encode(self) -> bytes:
        """Return tallies that are keyed by place as bytes, sorted by place.

        Examples
        --------
        >>> counted = Tallies({Place(0, 7): Tally(1, np.array([1]))})
        >>> dict(Tallies.decode(counted.encode())) == dict(counted)
        True

        """
        for key in self._tallies:
            if not isinstance(key, Place):
                raise MismatchError(f"a tally's key is {key!r}; only places can be written.")
        ordered = sorted(self._tallies.items(), key=lambda item: item[0])  # type: ignore[arg-type, return-value]
        parts = [_PLACE.pack(*key) + tally.encode() for key, tally in ordered]  # type: ignore[misc]
        return MAGIC + struct.pack("<I", len(parts)) + b"".join(parts)

    @staticmethod
    def decode(data: bytes) -> Tallies[Place]:
        """Return the tallies in these bytes, by place; raise MismatchError if anything is wrong."""
        begin = len(MAGIC) + 4
        if data[: len(MAGIC)] != MAGIC or len(data) < begin:
            raise MismatchError(f"tallies begin with {data[:4]!r}; {MAGIC!r} is expected.")
        (count,) = struct.unpack_from("<I", data, len(MAGIC))
        rest = memoryview(data)[begin:]
        tallies: dict[Place, Tally] = {}
        last: Place | None = None
        for _ in range(count):
            if len(rest) < _PLACE.size:
                raise MismatchError(f"tallies have {len(tallies)} places; {count} are expected.")
            place = Place(*_PLACE.unpack_from(rest))
            if last is not None and place <= last:
                raise MismatchError(f"{place} comes out of order; places are sorted, each once.")
            last = place
            tallies[place], rest = Tally._read(rest[_PLACE.size :])  # noqa: SLF001 -- its own kind
        if rest:
            raise MismatchError(f"{len(rest)} bytes follow the tallies; nothing is expected there.")
        return Tallies(tallies)

    def total(self) -> Tally:
        """Return the sum of all tallies."""
        tallies = list(self._tallies.values())
        if not tallies:
            raise MismatchError("there is no tally to total; give at least one key.")
        total = tallies[0]
        for tally in tallies[1:]:
            total = total + tally
        return total

    def __repr__(self) -> str:
        return f"Tallies({dict(self._tallies)!r})"
