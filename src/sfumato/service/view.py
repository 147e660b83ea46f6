"""The data of a task's page: the items that fit, their history, and their latest values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from sfumato.arrays import Ints
from sfumato.core.answers import Answers
from sfumato.core.quantity import Quantity
from sfumato.service.event_stream import answers, told
from sfumato.service.running_task import RunningTask
from sfumato.store import Release

__all__ = ["View"]


MOST_ITEMS: Final = 200
"""The largest number of rows for people to look through; the API has all of them."""

FEWEST_ITEMS: Final = 8
MOST_POINTS: Final = 1 << 17
"""The largest number of items times periods on one page, which browsers draw at once."""


@dataclass(frozen=True)
class View:
    """The data of a task that its page shows."""

    items: int
    """The number of items of the task."""
    places: tuple[int, ...]
    """The indices of the items that are shown, sorted by falling last known value."""
    latest: Answers
    """The last known value of each shown item."""
    periods: tuple[int, ...]
    """The period of each last known value; 0 if there never was one."""
    history: tuple[dict[str, Any], ...]
    """What each period has released of the shown items."""

    @classmethod
    def of(cls, running: RunningTask, releases: Sequence[Release]) -> View:
        """Return the view of some periods of a task; its cost grows with what is shown only."""
        fitting = max(FEWEST_ITEMS, min(MOST_ITEMS, MOST_POINTS // max(len(releases), 1)))
        known, periods = _last_known(running, releases)
        order = np.argsort(np.where(periods > 0, -known.values, np.inf), kind="stable")
        places = tuple(order[:fitting].tolist())
        latest = known.pick(list(places))
        digits = latest.decimals + math.ceil(math.log10(latest.quantity.scale)) + 2
        reports = running.participation()
        history = (
            told(
                answers(running, release, places).rounded(digits),
                reports.get(release.period, 0),
                is_mixed=running.is_mixed,
            )
            for release in releases
        )
        return cls(
            len(running.labels),
            places,
            latest,
            tuple(periods[list(places)].tolist()),
            tuple(history),
        )

    @property
    def quantity(self) -> Quantity:
        """The quantity of the values."""
        return self.latest.quantity

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the items that are shown."""
        return tuple(str(label) for label in self.latest.labels)


def _last_known(running: RunningTask, releases: Sequence[Release]) -> tuple[Answers, Ints]:
    """Return the last known value of each item, and its period (0 if there never was one)."""
    n, nothing = releases[-1].n if releases else 0, np.full(len(running.labels), np.nan)
    values, low, high = np.full((3, nothing.size), np.nan)
    periods = np.zeros(nothing.size, dtype=np.int64)
    for release in reversed(releases):
        finite = np.isfinite(release.values) & np.isfinite(release.variances)
        new = np.flatnonzero(finite & (periods == 0))
        own = answers(running, release)
        values[new], low[new], high[new] = own.values[new], own.low[new], own.high[new]
        periods[new] = release.period
        if periods.all():
            break
    latest = answers(running, Release(len(releases), n, nothing, nothing))
    return replace(latest, values=values, low=low, high=high), periods
