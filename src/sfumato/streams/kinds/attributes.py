"""Values that are several categories at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

import numpy as np

from sfumato.arrays import Array
from sfumato.core.domain import Label
from sfumato.errors import ConfigurationError, InputError
from sfumato.streams.kinds.listed import Category
from sfumato.streams.kinds.value_kind import Bits, Values, judged_codes
from sfumato.streams.snapshots import Look, Snapshot

__all__ = ["Attributes"]


@dataclass(frozen=True)
class Attributes(Values):
    """Several categories at once; a snapshot shows one of them, which is drawn beforehand.

    Examples
    --------
    >>> both = Attributes({"place": ("in", "out"), "app": ("mail", "maps", "music")})
    >>> both.encode({"place": "out", "app": "mail"}).tolist()
    [0, 1, 1, 0, 0]

    """

    attributes: Any
    kind: ClassVar[str] = "attributes"

    def __post_init__(self) -> None:
        """Store the attributes as pairs of a name and a category."""
        named = dict(self.attributes)
        if not named:
            raise ConfigurationError("attributes is empty; at least one attribute is expected.")
        pairs = tuple(
            (name, items if isinstance(items, Category) else Category(items))
            for name, items in named.items()
        )
        object.__setattr__(self, "attributes", pairs)

    @property
    def categories(self) -> Sequence[tuple[str, Category]]:
        """The name and category of each attribute."""
        return self.attributes  # type: ignore[no-any-return]

    @cached_property
    def labels(self) -> tuple[Label, ...]:
        """The names of the entries: each item with its attribute."""
        return tuple(f"{name}={item}" for name, items in self.categories for item in items.labels)

    @cached_property
    def blocks(self) -> tuple[slice, ...]:
        """The entries of each attribute, as slices."""
        ends = np.cumsum([items.width for _, items in self.categories]).tolist()
        return tuple(slice(a, b) for a, b in zip([0, *ends[:-1]], ends, strict=True))

    def inputs(self) -> Sequence[Any]:
        """Return every combination of items."""
        names = [name for name, _ in self.categories]
        every = product(*(items.inputs() for _, items in self.categories))
        return [dict(zip(names, held, strict=True)) for held in every]

    @property
    def least_changes(self) -> int:
        """The smallest number of changes: all required attributes appear at once."""
        return max(1, self._required)

    @property
    def _required(self) -> int:
        return sum(not items.optional for _, items in self.categories)

    @property
    def always_there(self) -> bool:
        """Whether some attribute has an item from the first period on."""
        return self._required > 0

    @property
    def default(self) -> Any:
        """The default item of each attribute."""
        return {name: items.default for name, items in self.categories}

    def encode(self, value: Any) -> Bits:
        """Return a vector with a one for each attribute's item."""
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

    def encode_streams(self, streams: Array) -> Bits:
        """Return vectors with a one for each attribute's item, of whole streams."""
        widest = max(items.width for _, items in self.categories)
        codes = judged_codes(streams, -1, widest - 1, len(self.categories))
        parts = [
            items.encode_streams(codes[:, :, index])
            for index, (_, items) in enumerate(self.categories)
        ]
        return np.concatenate(parts, axis=2)

    def said(self, cell: Any) -> dict[str, Label | None]:
        """Return the item of each attribute; None if there is none."""
        pairs = zip(self.categories, cell, strict=True)
        return {name: items.said(index) for (name, items), index in pairs}

    def changes(self, most: int, differences: int, *, anchored: bool) -> int:
        """Return two changes for each difference and attribute; first values are one change."""
        count = len(self.categories)
        later = most - self._required
        moves = 2 * (later // 2) if self._required == count else later
        if anchored:
            return max(1, min(moves, 2 * count * differences))
        return min(self._required + moves, count * (2 * differences - 1))

    def snapshot(self, epsilon: float, block: int, look: Look | None = None) -> Snapshot:
        """Return the subset selection oracle of one attribute."""
        return self.categories[block][1].snapshot(epsilon, 0, look)

    def describe(self) -> dict[str, Any]:
        """Return the kind, each attribute's items, and the optional attributes, as plain data."""
        return {
            "kind": self.kind,
            "attributes": [[name, items.plain_items] for name, items in self.categories],
            "optional": [name for name, items in self.categories if items.optional],
        }
