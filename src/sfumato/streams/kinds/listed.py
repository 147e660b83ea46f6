"""Values that are items of a list: exactly one of them, or any set."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from sfumato.arrays import Array
from sfumato.core.domain import Domain, Label
from sfumato.errors import ConfigurationError, InputError
from sfumato.streams import snapshots
from sfumato.streams.kinds.value_kind import Bits, Values, judged_codes
from sfumato.streams.snapshots import Look, Snapshot

__all__ = ["Category", "Items"]


@dataclass(frozen=True)
class Listed(Values):
    """A kind of values whose entries are the items of a list."""

    items: int | tuple[Label, ...]

    def __post_init__(self) -> None:
        """Raise ConfigurationError if there are fewer than two items."""
        object.__setattr__(self, "items", Domain.of(self.items).items)

    @cached_property
    def domain(self) -> Domain:
        """The items, in order."""
        return Domain(self.items)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The names of the items."""
        return tuple(self.domain.labels)

    @property
    def width(self) -> int:
        """The number of items."""
        return self.domain.size

    @property
    def plain_items(self) -> Any:
        """The items as plain data."""
        return self.items if isinstance(self.items, int) else list(self.items)

    def code(self, value: Any) -> int:
        """Return the code of an item; raise InputError if there is no such item."""
        code = self.domain.code(value)
        if code is None:
            shown, items = reprlib.repr(value), self.domain.shown()
            raise InputError(f"value is {shown}; one of the items {items} is expected.")
        return code


@dataclass(frozen=True)
class Category(Listed):
    """One of several items, such as a place, a state or an app in use.

    Parameters
    ----------
    items
        The number of items, or their labels.
    optional
        Whether a device may hold no item, as before its first value; a snapshot then needs one more
        symbol. If not, a device must have a value in the first period.

    Examples
    --------
    >>> Category(("home", "work", "road")).encode("work").tolist()
    [0, 1, 0]

    """

    optional: bool = False
    kind: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless items and ``optional`` are allowed."""
        super().__post_init__()
        if not isinstance(self.optional, bool):
            raise ConfigurationError(f"optional is {self.optional!r}; true or false is expected.")

    def inputs(self) -> Sequence[Any]:
        """Return all items."""
        return self.labels

    @property
    def always_there(self) -> bool:
        """Whether there is an item from the first period on: yes, unless it is optional."""
        return not self.optional

    @property
    def default(self) -> Any:
        """The first item, or None if the category is optional."""
        return None if self.optional else self.labels[0]

    def encode(self, value: Any) -> Bits:
        """Return a vector with a one for the item; None means no item, if that is allowed."""
        bits = np.zeros(self.width, dtype=np.int8)
        if value is not None or not self.optional:
            bits[self.code(value)] = 1
        return bits

    def encode_streams(self, streams: Array) -> Bits:
        """Return vectors with a one for the item; code -1 means no item, if that is allowed."""
        least = -1 if self.optional else 0
        codes = judged_codes(streams, least, self.width - 1)
        there: Bits = (codes[:, :, None] == np.arange(self.width)).astype(np.int8)
        return there

    def said(self, cell: Any) -> Label | None:
        """Return the item of a code; None if there is none."""
        return None if cell < 0 else self.labels[int(cell)]

    def changes(self, most: int, differences: int, *, anchored: bool) -> int:
        """Return two changes for each difference; the first value is one change.

        After the first value changes come in pairs, so the last of an even number is never used.
        """
        moves = 2 * ((most - 1) // 2)
        if anchored:
            return max(1, min(moves, 2 * differences))
        return min(most if self.optional else 1 + moves, 2 * differences - 1)

    def snapshot(self, epsilon: float, block: int, look: Look | None = None) -> Snapshot:
        """Return the oracle of a snapshot: subset selection."""
        del block
        return snapshots.of_category(epsilon, self.width, look, optional=self.optional)

    def describe(self) -> dict[str, Any]:
        """Return the kind, the items and whether there may be none, as plain data."""
        return {"kind": self.kind, "items": self.plain_items, "optional": self.optional}


@dataclass(frozen=True)
class Items(Listed):
    """Any set of several items, such as features in use or subscribed channels.

    Parameters
    ----------
    items
        The number of items, or their labels.
    most
        The largest number of items in a set (all by default); of a larger set the first items in
        order are kept.

    Examples
    --------
    >>> Items(("a", "b", "c")).encode({"c", "a"}).tolist()
    [1, 0, 1]

    """

    most: int | None = None
    kind: ClassVar[str] = "set"

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless items and ``most`` are allowed."""
        super().__post_init__()
        if self.most is not None and not 1 <= self.most <= self.width:
            raise ConfigurationError(
                f"most is {self.most!r}; a set holds between 1 and {self.width} items."
            )

    def inputs(self) -> Sequence[Any]:
        """Return all possible sets."""
        sizes = range(self.largest + 1)
        return [held for size in sizes for held in combinations(self.labels, size)]

    @property
    def largest(self) -> int:
        """The largest number of items in a set."""
        return self.width if self.most is None else self.most

    def encode(self, value: Any) -> Bits:
        """Return a vector with a one for each item in the set."""
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise InputError(f"value is {value!r}; a set of items is expected.")
        bits = np.zeros(self.width, dtype=np.int8)
        for item in value:
            bits[self.code(item)] = 1
        return self._capped(bits)

    def encode_streams(self, streams: Array) -> Bits:
        """Return vectors with a one for each item in the set."""
        bits = judged_codes(streams, 0, 1, self.width)
        return self._capped(bits.astype(np.int8))

    def said(self, cell: Any) -> set[Label]:
        """Return the set of items."""
        return {label for label, held in zip(self.labels, cell, strict=True) if held}

    def _capped(self, bits: Bits) -> Bits:
        if self.largest == self.width:
            return bits
        return np.where(np.cumsum(bits, axis=-1) <= self.largest, bits, 0).astype(np.int8)

    def changes(self, most: int, differences: int, *, anchored: bool) -> int:
        """Return the number of changes: at most one for each item and difference."""
        del anchored
        return min(most, self.width * differences)

    def snapshot(self, epsilon: float, block: int, look: Look | None = None) -> Snapshot:
        """Return the oracle of a snapshot: subsets that hit the set, or signs of all items."""
        del block
        return snapshots.of_set(epsilon, self.width, self.largest, look)

    def describe(self) -> dict[str, Any]:
        """Return the kind, the items and the largest size of a set, as plain data."""
        return {"kind": self.kind, "items": self.plain_items, "most": self.largest}
