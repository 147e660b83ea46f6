"""What a device observes in each period, as a vector of zeros and ones: four kinds of values.

A kind says how wide the vector is and what its entries are called, how many of its entries can
change between the looks of a thread, and through which one-shot oracle a snapshot is sent.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sfumato.core.domain import Domain, Label
from sfumato.errors import ConfigurationError, InputError
from sfumato.streams.weave import snapshots
from sfumato.streams.weave.snapshots import Snapshot

__all__ = ["Attributes", "Binary", "Category", "Items", "Values"]

Bits = NDArray[np.int8]


class Values(ABC):
    """One kind of value.

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

    @abstractmethod
    def encode(self, value: Any) -> Bits:
        """Return the entries of one value; raise InputError on a bad one."""

    @abstractmethod
    def encode_streams(self, streams: NDArray[Any]) -> Bits:
        """Return the entries of whole streams, (devices, periods, width), for simulation."""

    @abstractmethod
    def changes(self, most: int, differences: int, *, anchored: bool) -> int:
        """Return how many entries can change in so many differences of one thread.

        ``most`` bounds a whole stream, from the empty state on; an anchored thread does not send
        its first value, only what comes after.
        """

    @abstractmethod
    def snapshot(self, epsilon: float, block: int) -> Snapshot:
        """Return the best single look at a block."""

    def describe(self) -> dict[str, Any]:
        """Return the kind as plain data, as in a task file."""
        return {"kind": self.kind}


@dataclass(frozen=True)
class Binary(Values):
    """A thing that is on or off.

    Examples
    --------
    >>> Binary().encode(1).tolist()
    [1]

    """

    label: Label = "on"
    kind: ClassVar[str] = "binary"

    @property
    def labels(self) -> tuple[Label, ...]:
        """The one entry."""
        return (self.label,)

    def encode(self, value: Any) -> Bits:
        """Return the bit."""
        if value not in (0, 1):
            raise InputError(f"value is {value!r}; 0 or 1 is expected.")
        return np.array([int(value)], dtype=np.int8)

    def encode_streams(self, streams: NDArray[Any]) -> Bits:
        """Return the bits."""
        return np.asarray(streams, dtype=np.int8)[:, :, None]

    def changes(self, most: int, differences: int, *, anchored: bool) -> int:
        """One for each difference."""
        del anchored
        return min(most, differences)

    def snapshot(self, epsilon: float, block: int) -> Snapshot:
        """Randomized response."""
        del block
        return snapshots.of_bit(epsilon)

    def describe(self) -> dict[str, Any]:
        """Return the kind and its label."""
        return {"kind": self.kind, "items": [self.label]}


@dataclass(frozen=True)
class Category(Values):
    """One of several items: a place, a state, an app in use.

    Examples
    --------
    >>> Category(("home", "work", "road")).encode("work").tolist()
    [0, 1, 0]

    """

    items: int | tuple[Label, ...]
    kind: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        """Refuse fewer than two items."""
        object.__setattr__(self, "items", Domain.of(self.items).items)

    @cached_property
    def domain(self) -> Domain:
        """The items, in order."""
        return Domain(self.items)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The items."""
        return tuple(self.domain.labels)

    @property
    def always_there(self) -> bool:
        """There is an item from the first period on."""
        return True

    def encode(self, value: Any) -> Bits:
        """Return a one where the item is."""
        bits = np.zeros(self.width, dtype=np.int8)
        bits[_code(self.domain, value)] = 1
        return bits

    def encode_streams(self, streams: NDArray[Any]) -> Bits:
        """Return a one where the item is; code -1 is the empty value."""
        codes = np.asarray(streams)
        there: Bits = (codes[:, :, None] == np.arange(self.width)).astype(np.int8)
        return there

    def changes(self, most: int, differences: int, *, anchored: bool) -> int:
        """Two for each difference, but the first value only appears."""
        if anchored:
            return max(1, min(most - 1, 2 * differences))
        return min(most, 2 * differences - 1)

    def snapshot(self, epsilon: float, block: int) -> Snapshot:
        """Subset selection."""
        del block
        return snapshots.of_category(epsilon, self.width)

    def describe(self) -> dict[str, Any]:
        """Return the kind and the items."""
        return {"kind": self.kind, "items": _plain(self.items)}


@dataclass(frozen=True)
class Items(Values):
    """Any set of several items: features in use, channels subscribed.

    Parameters
    ----------
    items
        What can be in a set.
    most
        How many a set holds at once, at most (all, by default); of a larger one the first in the
        order of the items are kept.

    Examples
    --------
    >>> Items(("a", "b", "c")).encode({"c", "a"}).tolist()
    [1, 0, 1]

    """

    items: int | tuple[Label, ...]
    most: int | None = None
    kind: ClassVar[str] = "set"

    def __post_init__(self) -> None:
        """Check how many a set can hold."""
        object.__setattr__(self, "items", Domain.of(self.items).items)
        if self.most is not None and not 1 <= self.most <= self.width:
            raise ConfigurationError(
                f"most is {self.most!r}; a set holds between 1 and {self.width} items."
            )

    @cached_property
    def domain(self) -> Domain:
        """The items, in order."""
        return Domain(self.items)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The items."""
        return tuple(self.domain.labels)

    @property
    def largest(self) -> int:
        """How many items a set holds, at most."""
        return self.width if self.most is None else self.most

    def encode(self, value: Any) -> Bits:
        """Return a one for each item that is in."""
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise InputError(f"value is {value!r}; a set of items is expected.")
        bits = np.zeros(self.width, dtype=np.int8)
        bits[[_code(self.domain, item) for item in value]] = 1
        return self._capped(bits)

    def encode_streams(self, streams: NDArray[Any]) -> Bits:
        """Return a one for each item that is in."""
        return self._capped(np.asarray(streams, dtype=np.int8))

    def _capped(self, bits: Bits) -> Bits:
        if self.largest == self.width:
            return bits
        return np.where(np.cumsum(bits, axis=-1) <= self.largest, bits, 0).astype(np.int8)

    def changes(self, most: int, differences: int, *, anchored: bool) -> int:
        """As many as there are items, for each difference."""
        del anchored
        return min(most, self.width * differences)

    def snapshot(self, epsilon: float, block: int) -> Snapshot:
        """Subsets that meet the set, or signs of all items."""
        del block
        return snapshots.of_set(epsilon, self.width, self.largest)

    def describe(self) -> dict[str, Any]:
        """Return the kind, the items and the largest set."""
        return {"kind": self.kind, "items": _plain(self.items), "most": self.largest}


@dataclass(frozen=True)
class Attributes(Values):
    """Several categories at once; a snapshot speaks of one of them, drawn before.

    Examples
    --------
    >>> both = Attributes({"place": ("in", "out"), "app": ("mail", "maps", "music")})
    >>> both.encode({"place": "out", "app": "mail"}).tolist()
    [0, 1, 1, 0, 0]

    """

    attributes: Any
    kind: ClassVar[str] = "attributes"

    def __post_init__(self) -> None:
        """Keep the attributes as pairs of a name and a category."""
        given = dict(self.attributes)
        if not given:
            raise ConfigurationError("attributes is empty; at least one attribute is expected.")
        pairs = tuple(
            (name, items if isinstance(items, Category) else Category(items))
            for name, items in given.items()
        )
        object.__setattr__(self, "attributes", pairs)

    @property
    def categories(self) -> Sequence[tuple[str, Category]]:
        """Each attribute's name and items."""
        return self.attributes  # type: ignore[no-any-return]

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """Each item with its attribute."""
        return tuple(f"{name}={item}" for name, items in self.categories for item in items.labels)

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """One for each attribute."""
        ends = np.cumsum([items.width for _, items in self.categories]).tolist()
        return tuple(slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True))

    @property
    def least_changes(self) -> int:
        """All attributes appear at once."""
        return len(self.categories)

    @property
    def always_there(self) -> bool:
        """There is an item from the first period on."""
        return True

    def encode(self, value: Any) -> Bits:
        """Return a one for each attribute's item."""
        return np.concatenate(
            [items.encode(self._part(value, name)) for name, items in self.categories]
        )

    def _part(self, value: Any, name: str) -> Any:
        try:
            return value[name]
        except (KeyError, TypeError, IndexError):
            raise InputError(f"value is {value!r}; an item for {name!r} is expected.") from None

    def encode_streams(self, streams: NDArray[Any]) -> Bits:
        """Return a one for each attribute's item, from (devices, periods, attributes)."""
        codes = np.asarray(streams)
        parts = [
            items.encode_streams(codes[:, :, place])
            for place, (_, items) in enumerate(self.categories)
        ]
        return np.concatenate(parts, axis=2)

    def changes(self, most: int, differences: int, *, anchored: bool) -> int:
        """Two for each difference and attribute, but the first values only appear."""
        count = len(self.categories)
        if anchored:
            return max(1, min(most - count, 2 * count * differences))
        return min(most, count * (2 * differences - 1))

    def snapshot(self, epsilon: float, block: int) -> Snapshot:
        """Subset selection on one attribute."""
        return self.categories[block][1].snapshot(epsilon, 0)

    def describe(self) -> dict[str, Any]:
        """Return the kind and each attribute's items."""
        plain = {name: _plain(items.items) for name, items in self.categories}
        return {"kind": self.kind, "attributes": plain}


def _plain(items: int | tuple[Label, ...]) -> Any:
    return items if isinstance(items, int) else list(items)


def _code(domain: Domain, value: Any) -> int:
    return int(domain.encode([value])[0])
