"""The items of a table: those that a search finds, in an order, a page at a time."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from sfumato.arrays import Ints
from sfumato.pages.subject import LastKnown, PageSubject
from sfumato.pages.wanted import ROWS, Wanted

__all__ = ["FEW", "Listing", "shown_items"]

FEW: Final = 4
"""The number of items in the chart at first."""


@dataclass(frozen=True)
class Listing:
    """One page of the items of a subject."""

    items: tuple[int, ...]
    """The items on this page."""
    matching: int
    """The number of items that the search finds."""
    page: int
    pages: int

    @classmethod
    def of(cls, subject: PageSubject, known: LastKnown, wanted: Wanted) -> Self:
        """Return the items that a visitor wants to see in the table."""
        order = _order(subject, known, wanted)
        if wanted.search:
            words = _plain(wanted.search).split()
            names = [_plain(label) for label in subject.labels]
            order = order[[all(word in names[item] for word in words) for item in order.tolist()]]
        pages = max(1, -(-order.size // ROWS))
        page = min(wanted.page, pages)
        return cls(
            tuple(order[(page - 1) * ROWS : page * ROWS].tolist()), int(order.size), page, pages
        )


def _plain(text: str) -> str:
    """Return text without case and accents, as people search for it."""
    apart = unicodedata.normalize("NFKD", text.casefold())
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


def _order(subject: PageSubject, known: LastKnown, wanted: Wanted) -> Ints:
    """Return all items in the order that is wanted; those of which nothing is known come last."""
    if wanted.sort == "name":
        order = sorted(range(len(subject.labels)), key=lambda item: _plain(subject.labels[item]))
        return np.array(order, dtype=np.int64)
    size = known.answers.values
    if wanted.sort == "change" and subject.closed:
        first, last = wanted.window(subject.closed, subject.axis.step) or (1, subject.closed)
        rows = [first - 1, last - 1]
        ends = [
            subject.columns(range(len(subject.labels)), slice(row, row + 1)).values for row in rows
        ]
        size = np.abs(ends[1] - ends[0])[0]
    size = -size if wanted.sort == "least" else size
    return np.argsort(np.where(np.isfinite(size), -size, np.inf), kind="stable")


def shown_items(known: LastKnown, wanted: Wanted) -> dict[int, int]:
    """Return the items in the chart, each with the index of its colour; by default the largest."""
    if wanted.items is not None:
        return {item: turn for turn, item in enumerate(wanted.items) if item is not None}
    values = known.answers.values
    order = np.argsort(np.where(known.periods > 0, -values, np.inf), kind="stable")
    return {item: turn for turn, item in enumerate(order[:FEW].tolist())}
