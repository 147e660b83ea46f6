"""What a visitor of a page has chosen, as the query of its address says it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, Self
from urllib.parse import urlencode

from sfumato.core.field_checks import check_one_of
from sfumato.errors import ConfigurationError

__all__ = ["FIELDS", "LONGEST_SEARCH", "MOST_SHOWN", "ROWS", "SORTS", "SPANS", "Wanted"]

MOST_SHOWN: Final = 8
"""The largest number of items in a chart that can be told apart."""

ROWS: Final = 12
"""The number of rows of one page of a table."""

SORTS: Final = {
    "value": "largest value",
    "change": "largest change",
    "name": "name",
    "least": "smallest value",
}
"""The orders of items."""

SPANS: Final = {
    "minute": 60,
    "hour": 3600,
    "day": 86_400,
    "week": 604_800,
    "month": 2_592_000,
}
"""The stretches of time, in seconds, that end with the last closed period."""

LONGEST_SEARCH: Final = 100
_DECIMAL: Final = re.compile(r"-?[0-9]{1,12}(\.[0-9]{1,12})?", re.ASCII)
_WHOLE: Final = ("first", "last", "page")
FIELDS: Final = (
    *("decoder", "projection", "items", "search", "sort"),
    *("page", "span", "first", "last", "above"),
)
"""The fields of an address."""


@dataclass(frozen=True)
class Wanted:
    """What a visitor wants to see; everything has a default."""

    decoder: str | None = None
    projection: str | None = None
    items: tuple[int | None, ...] | None = None
    """The items in the chart by their colour, None where one is free; None for the largest."""
    search: str = ""
    sort: str = "value"
    page: int = 1
    span: str = ""
    first: int | None = None
    last: int | None = None
    above: float | None = None
    """A threshold in printed units, or None."""

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> Self:
        """Return what an address asks for; raise ConfigurationError if it makes no sense."""
        fields: dict[str, Any] = {}
        items: list[str] = []
        for name, text in pairs:
            if name not in FIELDS:
                raise ConfigurationError(
                    f"{name[:40]!r} is no field of a page; it has {', '.join(FIELDS)}."
                )
            if name == "items":
                items += text.split(",")
            elif name in fields:
                raise ConfigurationError(f"{name} is there twice; it may be there once.")
            else:
                fields[name] = text
        fields = {name: _read(name, text) for name, text in fields.items() if text != ""}
        if items:
            fields["items"] = _items(items)
        wanted = cls(**fields)
        check_one_of("sort", wanted.sort, SORTS)
        if wanted.span:
            check_one_of("span", wanted.span, SPANS)
        if wanted.first and wanted.last and wanted.first > wanted.last:
            wanted = replace(wanted, first=wanted.last, last=wanted.first)
        return wanted

    def check(self, items: int) -> None:
        """Raise ConfigurationError if an item is chosen that a subject does not have."""
        for item in self.items or ():
            if item is not None and item >= items:
                raise ConfigurationError(f"items has {item}; the items are 0..{items - 1}.")

    @property
    def fields(self) -> dict[str, str]:
        """What is not as it is by default, as the fields of an address."""
        items = self.items
        shown = None if items is None else ",".join("" if i is None else str(i) for i in items)
        above = None if self.above is None else f"{self.above:.12g}"
        fields = {
            "decoder": self.decoder,
            "projection": self.projection,
            "items": shown,
            "search": self.search,
            "sort": None if self.sort == "value" else self.sort,
            "page": None if self.page == 1 else str(self.page),
            "span": self.span,
            "first": None if self.first is None else str(self.first),
            "last": None if self.last is None else str(self.last),
            "above": above,
        }
        return {name: text for name, text in fields.items() if text}

    def but(self, **changes: Any) -> str:
        """Return the address of the same with some changes."""
        return "?" + urlencode(replace(self, **changes).fields)

    def window(self, closed: int, step: int) -> tuple[int, int] | None:
        """Return the first and last period that is asked about; None if it is all of them."""
        if not closed:
            return None
        if self.first is not None or self.last is not None:
            first = min(max(self.first or 1, 1), closed)
            return first, min(max(self.last or closed, first), closed)
        if not self.span:
            return None
        return max(1, closed + 1 - max(1, SPANS[self.span] // step)), closed


def _read(name: str, text: str) -> Any:
    if name in _WHOLE:
        if not (text.isascii() and text.isdigit() and 0 < len(text) < 10 and int(text)):
            raise ConfigurationError(f"{name} is {text[:40]!r}; a whole number from 1 is expected.")
        return int(text)
    if name == "above":
        if not _DECIMAL.fullmatch(text):
            raise ConfigurationError(f"above is {text[:40]!r}; a number is expected.")
        return float(text)
    if name == "search" and len(text) > LONGEST_SEARCH:
        raise ConfigurationError(
            f"search has {len(text):,} characters; up to {LONGEST_SEARCH} are expected."
        )
    return text


def _items(texts: list[str]) -> tuple[int | None, ...]:
    """Return the chosen items by their colour."""
    items: list[int | None] = []
    for text in texts:
        if text and not (text.isascii() and text.isdigit() and len(text) < 10):
            raise ConfigurationError(f"items has {text[:40]!r}; whole numbers are expected.")
        items.append(int(text) if text else None)
    if len(items) > MOST_SHOWN:
        items = [item for item in items if item is not None]
    chosen = [item for item in items if item is not None]
    if len(chosen) > MOST_SHOWN:
        raise ConfigurationError(
            f"items has {len(chosen)} items; up to {MOST_SHOWN} can be told apart at once."
        )
    if len(set(chosen)) < len(chosen):
        raise ConfigurationError("items has an item twice; each may be there once.")
    return tuple(items)
