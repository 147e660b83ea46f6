"""What a device observes in each period, as a vector of zeros and ones: four kinds of values.

A kind says how wide the vector is and what its entries are called, how many of its entries can
change between the looks of a thread, and through which one-shot oracle a snapshot is sent.
"""

from __future__ import annotations

import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from typing import Any, ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.core.domain import Domain, Label
from sfumato.core.exact import is_finite_number
from sfumato.errors import ConfigurationError, InputError
from sfumato.streams import snapshots
from sfumato.streams.snapshots import Look, Snapshot
from sfumato.wire.values import TaskValues

__all__ = ["Attributes", "Binary", "Category", "Items", "Values", "values_of"]

Bits = NDArray[np.int8]

CHUNK_BYTES: Final = 1 << 25
"""So many entries of whole streams are encoded at a time."""


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

    def inputs(self) -> Sequence[Any]:
        """Off and on."""
        return (0, 1)

    def encode(self, value: Any) -> Bits:
        """Return the bit."""
        number = isinstance(value, (bool, np.bool_)) or is_finite_number(value)
        if not number or value not in (0, 1):
            raise InputError(f"value is {value!r}; 0 or 1 is expected.")
        return np.array([int(value)], dtype=np.int8)

    def encode_streams(self, streams: NDArray[Any]) -> Bits:
        """Return the bits."""
        return _codes(streams, 0, 1).astype(np.int8)[:, :, None]

    def said(self, cell: Any) -> int:
        """Return 0 or 1."""
        return int(cell)

    def changes(self, most: int, differences: int, *, anchored: bool) -> int:
        """One for each difference."""
        del anchored
        return min(most, differences)

    def snapshot(self, epsilon: float, block: int, look: Look | None = None) -> Snapshot:
        """Randomized response."""
        del block, look
        return snapshots.of_bit(epsilon)

    def describe(self) -> dict[str, Any]:
        """Return the kind and its label."""
        return {"kind": self.kind, "items": [self.label]}


@dataclass(frozen=True)
class Category(Values):
    """One of several items: a place, a state, an app in use.

    Parameters
    ----------
    items
        What there is to choose from.
    optional
        Whether a device may hold none of them, as before its first value. A snapshot then needs
        a symbol more; without, a device must have a value in the first period.

    Examples
    --------
    >>> Category(("home", "work", "road")).encode("work").tolist()
    [0, 1, 0]

    """

    items: int | tuple[Label, ...]
    optional: bool = False
    kind: ClassVar[str] = "category"

    def __post_init__(self) -> None:
        """Refuse fewer than two items."""
        object.__setattr__(self, "items", Domain.of(self.items).items)
        if not isinstance(self.optional, bool):
            raise ConfigurationError(f"optional is {self.optional!r}; true or false is expected.")

    @cached_property
    def domain(self) -> Domain:
        """The items, in order."""
        return Domain(self.items)

    @property
    def labels(self) -> tuple[Label, ...]:
        """The items."""
        return tuple(self.domain.labels)

    @property
    def width(self) -> int:
        """How many items there are."""
        return self.domain.size

    def inputs(self) -> Sequence[Any]:
        """Each item."""
        return self.labels

    @property
    def always_there(self) -> bool:
        """There is an item from the first period on, unless it is optional."""
        return not self.optional

    @property
    def default(self) -> Any:
        """The first item, unless there may be none."""
        return None if self.optional else self.labels[0]

    def encode(self, value: Any) -> Bits:
        """Return a one where the item is; None is no item, if that may be."""
        bits = np.zeros(self.width, dtype=np.int8)
        if value is not None or not self.optional:
            bits[_code(self.domain, value)] = 1
        return bits

    def encode_streams(self, streams: NDArray[Any]) -> Bits:
        """Return a one where the item is; code -1 is no item, if that may be."""
        least = -1 if self.optional else 0
        codes = _codes(streams, least, self.width - 1)
        there: Bits = (codes[:, :, None] == np.arange(self.width)).astype(np.int8)
        return there

    def said(self, cell: Any) -> Label | None:
        """Return the item; None if there is none."""
        return None if cell < 0 else self.labels[int(cell)]

    def changes(self, most: int, differences: int, *, anchored: bool) -> int:
        """Two for each difference, but the first value only appears.

        So they come in pairs after the first, and the last one of an even number is never used.
        """
        moves = 2 * ((most - 1) // 2)
        if anchored:
            return max(1, min(moves, 2 * differences))
        return min(most if self.optional else 1 + moves, 2 * differences - 1)

    def snapshot(self, epsilon: float, block: int, look: Look | None = None) -> Snapshot:
        """Subset selection."""
        del block
        return snapshots.of_category(epsilon, self.width, look, optional=self.optional)

    def describe(self) -> dict[str, Any]:
        """Return the kind, the items and whether there may be none."""
        return {"kind": self.kind, "items": _plain(self.items), "optional": self.optional}


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
    def width(self) -> int:
        """How many items there are."""
        return self.domain.size

    def inputs(self) -> Sequence[Any]:
        """Every set."""
        sizes = range(self.largest + 1)
        return [held for size in sizes for held in combinations(self.labels, size)]

    @property
    def largest(self) -> int:
        """How many items a set holds, at most."""
        return self.width if self.most is None else self.most

    def encode(self, value: Any) -> Bits:
        """Return a one for each item that is in."""
        if isinstance(value, (str, bytes, Mapping)) or not isinstance(value, Iterable):
            raise InputError(f"value is {value!r}; a set of items is expected.")
        bits = np.zeros(self.width, dtype=np.int8)
        for item in value:
            bits[_code(self.domain, item)] = 1
        return self._capped(bits)

    def encode_streams(self, streams: NDArray[Any]) -> Bits:
        """Return a one for each item that is in."""
        bits = _codes(streams, 0, 1, self.width)
        return self._capped(bits.astype(np.int8))

    def said(self, cell: Any) -> set[Label]:
        """Return the items that are in."""
        return {label for label, held in zip(self.labels, cell, strict=True) if held}

    def _capped(self, bits: Bits) -> Bits:
        if self.largest == self.width:
            return bits
        return np.where(np.cumsum(bits, axis=-1) <= self.largest, bits, 0).astype(np.int8)

    def changes(self, most: int, differences: int, *, anchored: bool) -> int:
        """As many as there are items, for each difference."""
        del anchored
        return min(most, self.width * differences)

    def snapshot(self, epsilon: float, block: int, look: Look | None = None) -> Snapshot:
        """Subsets that meet the set, or signs of all items."""
        del block
        return snapshots.of_set(epsilon, self.width, self.largest, look)

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

    def inputs(self) -> Sequence[Any]:
        """Every combination of items."""
        names = [name for name, _ in self.categories]
        every = product(*(items.inputs() for _, items in self.categories))
        return [dict(zip(names, held, strict=True)) for held in every]

    @property
    def least_changes(self) -> int:
        """All attributes that must be there appear at once."""
        return max(1, self._required)

    @property
    def _required(self) -> int:
        return sum(not items.optional for _, items in self.categories)

    @property
    def always_there(self) -> bool:
        """Some attribute has an item from the first period on."""
        return self._required > 0

    @property
    def default(self) -> Any:
        """Each attribute's own."""
        return {name: items.default for name, items in self.categories}

    def encode(self, value: Any) -> Bits:
        """Return a one for each attribute's item."""
        return np.concatenate([self._part(value, name, items) for name, items in self.categories])

    def _part(self, value: Any, name: str, items: Category) -> Bits:
        try:
            item = value[name]
        except (KeyError, TypeError, IndexError):
            raise InputError(f"value is {value!r}; an item for {name!r} is expected.") from None
        try:
            return items.encode(item)
        except InputError as error:
            raise InputError(f"{name}: {error}") from None

    def encode_streams(self, streams: NDArray[Any]) -> Bits:
        """Return a one for each attribute's item, from (devices, periods, attributes)."""
        widest = max(items.width for _, items in self.categories)
        codes = _codes(streams, -1, widest - 1, len(self.categories))
        parts = [
            items.encode_streams(codes[:, :, place])
            for place, (_, items) in enumerate(self.categories)
        ]
        return np.concatenate(parts, axis=2)

    def said(self, cell: Any) -> dict[str, Label | None]:
        """Return the item of each attribute; None where there is none."""
        pairs = zip(self.categories, cell, strict=True)
        return {name: items.said(place) for (name, items), place in pairs}

    def changes(self, most: int, differences: int, *, anchored: bool) -> int:
        """Two for each difference and attribute, but the first values only appear."""
        count = len(self.categories)
        later = most - self._required
        moves = 2 * (later // 2) if self._required == count else later
        if anchored:
            return max(1, min(moves, 2 * count * differences))
        return min(self._required + moves, count * (2 * differences - 1))

    def snapshot(self, epsilon: float, block: int, look: Look | None = None) -> Snapshot:
        """Subset selection on one attribute."""
        return self.categories[block][1].snapshot(epsilon, 0, look)

    def describe(self) -> dict[str, Any]:
        """Return the kind, each attribute's items, and which need not be there."""
        return {
            "kind": self.kind,
            "attributes": [[name, _plain(items.items)] for name, items in self.categories],
            "optional": [name for name, items in self.categories if items.optional],
        }


def values_of(given: TaskValues) -> Values:
    """Return what a device observes; moves and numbers belong to other streams.

    Examples
    --------
    >>> values_of(TaskValues("category", ("home", "work"))).labels
    ('home', 'work')

    """
    if given.kind == "binary":
        return Binary(*(given.items or ()))  # type: ignore[misc]
    if given.kind == "attributes":
        return Attributes(given.attributes)
    items: Any = given.items
    if given.kind == "category":
        return Category(items, given.optional)
    return Items(items, given.most)


def _plain(items: int | tuple[Label, ...]) -> Any:
    return items if isinstance(items, int) else list(items)


def _code(domain: Domain, value: Any) -> int:
    """Return the code of one item."""
    code = domain.code(value)
    if code is None:
        raise InputError(
            f"value is {reprlib.repr(value)}; one of the items {domain.shown()} is expected."
        )
    return code


def _codes(streams: Any, least: int, most: int, *parts: int) -> NDArray[Any]:
    """Return whole streams of codes, of so many parts each, if all of them can be some."""
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
