"""What a page shows of a task: its items that fit, what each period said, and what is known now."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.core.quantity import Quantity
from sfumato.service.desk import Desk
from sfumato.service.events import plain, sides
from sfumato.store import Release

__all__ = ["Latest", "View"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_ITEMS: Final = 200
"""Rows that a person may look through; whoever wants more asks for the data."""

FEWEST_ITEMS: Final = 8
MOST_POINTS: Final = 1 << 17
"""Items times periods on one page; a browser draws so many without a pause."""


@dataclass(frozen=True)
class Latest:
    """The last value that is known of an item, its interval, and the period it is from."""

    value: float
    low: float
    high: float
    period: int


@dataclass(frozen=True)
class View:
    """A task as a page shows it.

    Parameters
    ----------
    quantity
        What the values are.
    items
        How many items the task has.
    places
        Those that are shown, the largest of their last known values first.
    labels
        What these are called.
    history
        What each period has released of them.
    latest
        What was last known of each of them; None where nothing ever was.
    decimals
        How many decimals the values have, by their uncertainty.

    """

    quantity: Quantity
    items: int
    places: tuple[int, ...]
    labels: tuple[str, ...]
    history: tuple[dict[str, Any], ...]
    latest: tuple[Latest | None, ...]
    decimals: int

    @classmethod
    def of(cls, desk: Desk) -> View:
        """Return what is shown of a task now; its cost grows with what is shown, not with more."""
        releases = desk.releases[: desk.closed]
        quantity = desk.protocol.quantity
        fitting = max(FEWEST_ITEMS, min(MOST_ITEMS, MOST_POINTS // max(len(releases), 1)))
        values, variances, periods = _last_known(releases, len(desk.labels))
        order = np.argsort(np.where(periods > 0, -values, np.inf), kind="stable")
        places = order[:fitting]
        columns = sides(values[places], variances[places])
        rows = zip(*(column.tolist() for column in (*columns, periods[places])), strict=True)
        latest = tuple(Latest(*row) if row[3] else None for row in rows)
        reach = np.sort(columns[2] - columns[0])[: np.count_nonzero(periods[places])]
        decimals = quantity.decimals(float(reach[len(reach) // 2]) if len(reach) else 0.0)
        digits = decimals + math.ceil(math.log10(quantity.scale)) + 2
        reports = desk.participation()
        history = []
        for one in releases:
            entries = sides(one.values[places], one.variances[places])
            short = (entries[0].round(digits), entries[1].round(digits), entries[2].round(digits))
            history.append(plain(one, reports.get(one.period, 0), short))
        return cls(
            quantity,
            len(desk.labels),
            tuple(places.tolist()),
            tuple(str(desk.labels[place]) for place in places),
            tuple(history),
            latest,
            decimals,
        )

    def text(self, value: float) -> str:
        """Return a value as it is printed on this page."""
        return self.quantity.text(value, self.decimals)


def _last_known(releases: Sequence[Release], items: int) -> tuple[Floats, Floats, Ints]:
    """Return the last known value of each item, its variance and its period; 0 if none ever was."""
    values, variances = np.full((2, items), np.nan)
    periods = np.zeros(items, dtype=np.int64)
    for release in reversed(releases):
        finite = np.isfinite(release.values) & np.isfinite(release.variances)
        new = np.flatnonzero(finite & (periods == 0))
        values[new], variances[new] = release.values[new], release.variances[new]
        periods[new] = release.period
        if periods.all():
            break
    return values, variances, periods
