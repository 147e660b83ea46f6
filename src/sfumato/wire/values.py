"""The values that a task observes, as plain data: the table ``values`` of a task file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from sfumato.core.domain import Label
from sfumato.core.exact import is_finite_number
from sfumato.wire import fields
from sfumato.wire.fields import Path, Problem

__all__ = ["VALUES", "TaskValues"]

VALUES: Final[Mapping[str, tuple[str, ...]]] = {
    "binary": ("items",),
    "category": ("items", "optional"),
    "set": ("items", "most"),
    "attributes": ("attributes",),
    "moves": ("items",),
    "number": ("low", "high", "clip", "unit"),
}
"""The kinds of values, each with its fields."""

LONGEST_UNIT: Final = 12
"""The largest number of characters of a unit, which is printed beside each number."""

_WORDS: Final = "binary (on or off), category (one of the items), set, attributes, moves or number"


@dataclass(frozen=True)
class TaskValues:
    """The kind of value that a device observes in each period.

    Parameters
    ----------
    kind
        ``binary`` (on or off), ``category`` (one of the items), ``set`` (any of the items),
        ``attributes`` (several categories), ``moves`` (each item rises, falls or does neither) or
        ``number`` (in an interval).
    items
        The number of items or their labels; for a binary value, its one label.
    most
        For a set, the largest number of items in it.
    optional
        For a category over a horizon, whether a device may hold no item, for devices that join
        late.
    attributes
        For attributes, the name and items of each, in order.
    low, high, clip
        For a number, its interval, and whether numbers outside are clipped to it.
    unit
        For a number, the text that is printed after it, such as "°C".

    """

    kind: str
    items: int | tuple[Label, ...] | None = None
    most: int | None = None
    attributes: tuple[tuple[str, int | tuple[Label, ...]], ...] = ()
    low: float | None = None
    high: float | None = None
    clip: bool = False
    optional: bool = False
    unit: str = ""

    @property
    def width(self) -> int:
        """The number of entries of a value."""
        if self.kind == "attributes":
            return sum(_count(items) for _, items in self.attributes)
        return 1 if self.kind == "number" else _count(self.items)

    @property
    def least_changes(self) -> int:
        """The smallest number of entries that change when the first value appears."""
        return max(1, len(self.attributes))

    def plain(self) -> dict[str, Any]:
        """Return the values as plain data, without the fields that do not apply."""
        plain: dict[str, Any] = {"kind": self.kind}
        if self.items is not None:
            plain["items"] = _plain(self.items)
        if self.most is not None:
            plain["most"] = self.most
        if self.optional:
            plain["optional"] = True
        if self.attributes:  # a list, because their order is the order of the entries
            plain["attributes"] = [[name, _plain(items)] for name, items in self.attributes]
        if self.kind == "number":
            plain |= {"low": self.low, "high": self.high, "clip": self.clip}
            plain |= {"unit": self.unit} if self.unit else {}
        return plain

    @classmethod
    def of_spec(cls, spec: Mapping[str, Any]) -> TaskValues:
        """Return the values of a published task."""
        plain = dict(spec["values"])
        if "attributes" in plain:  # a list of pairs, because JSON does not keep the order of names
            plain["attributes"] = dict(plain["attributes"])
        return cls.of(plain)

    @classmethod
    def of(cls, given: Any) -> TaskValues:
        """Return the values that a task file's table describes; raise Problem if it is wrong."""
        at = ("values",)
        if not isinstance(given, Mapping):
            raise Problem(at, f"values is {fields.shown(given)}; a table with a kind is expected.")
        if "kind" not in given:
            raise Problem(at, f"values.kind is missing; {_WORDS} is expected.")
        kind = fields.choice(given["kind"], (*at, "kind"), tuple(VALUES), _WORDS)
        fields.refuse_unknown(given, ("kind", *VALUES[kind]), at, f"values of kind {kind!r} have")
        needed = VALUES[kind][0]
        if needed not in given and kind != "binary":
            raise Problem(at, f"values.{needed} is missing; {kind} values have them.")
        if kind == "attributes":
            return cls(kind, attributes=_attributes(given[needed], (*at, needed)))
        if kind == "number":
            return cls(kind, **_interval(given, at))
        if kind == "binary":
            return cls(kind, items=_only(given.get("items", ["on"]), (*at, "items")))
        if kind == "moves" and isinstance(given["items"], list) and len(given["items"]) == 1:
            return cls(kind, items=(fields.label(given["items"][0], (*at, "items")),))
        items = fields.items(given["items"], (*at, "items"))
        most = given.get("most")
        if most is not None:
            fields.in_range(most, (*at, "most"), 1, _count(items))
        optional = _truth(given.get("optional", False), (*at, "optional"))
        return cls(kind, items=items, most=most, optional=optional)


def _attributes(given: Any, at: Path) -> tuple[tuple[str, int | tuple[Label, ...]], ...]:
    if not isinstance(given, Mapping) or not given:
        raise Problem(
            at,
            f"values.attributes is {fields.shown(given)}; a table of names and their items is "
            "expected.",
        )
    return tuple(
        (fields.text(name, at), fields.items(items, (*at, name))) for name, items in given.items()
    )


def _interval(given: Mapping[str, Any], at: Path) -> dict[str, Any]:
    ends = [given.get("low"), given.get("high")]
    if not all(map(is_finite_number, ends)) or not ends[0] < ends[1]:  # type: ignore[operator]
        raise Problem(
            at,
            f"values.low is {fields.shown(ends[0])} and values.high is {fields.shown(ends[1])}; "
            "two numbers, the first below the second, are expected.",
        )
    clip = _truth(given.get("clip", False), (*at, "clip"))
    unit = _unit(given["unit"], (*at, "unit")) if "unit" in given else ""
    return {"low": float(ends[0]), "high": float(ends[1]), "clip": clip, "unit": unit}  # type: ignore[arg-type]


def _unit(given: Any, at: Path) -> str:
    if not isinstance(given, str) or not given.isprintable() or not 0 < len(given) <= LONGEST_UNIT:
        raise Problem(
            at,
            f"values.unit is {fields.shown(given)}; a text of 1 to {LONGEST_UNIT} characters is "
            'expected, as in "°C".',
        )
    return given


def _truth(given: Any, at: Path) -> bool:
    if not isinstance(given, bool):
        name = ".".join(map(str, at))
        raise Problem(at, f"{name} is {fields.shown(given)}; true or false is expected.")
    return given


def _only(given: Any, at: Path) -> tuple[Label, ...]:
    if not isinstance(given, (list, tuple)) or len(given) != 1:
        raise Problem(
            at,
            f'values.items is {fields.shown(given)}; one label is expected, as in ["on"]: a '
            "binary value is on or off.",
        )
    return (fields.label(given[0], at),)


def _count(items: int | tuple[Label, ...] | None) -> int:
    return len(items) if isinstance(items, tuple) else int(items or 0)


def _plain(items: int | tuple[Label, ...]) -> Any:
    return items if isinstance(items, int) else list(items)
