"""Several answers for each key, as one table: how many hold it, and what its values are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from sfumato.cli import tables
from sfumato.cli.rows import Rows
from sfumato.core.quantity import decimals, fixed
from sfumato.mechanisms.sparse import KeyValueEstimate

__all__ = ["Answers"]

_WORDS: Final = {
    "frequency": "share of holders",
    "mean": "value per person",
    "conditional_mean": "mean of holders",
}


@dataclass(frozen=True, eq=False)
class Answers:
    """The rows of each answer, all in the same order of keys."""

    rows: dict[str, Rows]
    least: float
    most: float
    """The range of the values."""

    @classmethod
    def of(cls, found: KeyValueEstimate, level: float, *, band: bool = False) -> Answers:
        """Return the rows of all answers, the most frequent keys first."""
        made = {}
        for name, estimate in found.answers.items():
            low, high = estimate.band(level) if band else estimate.interval(level)
            made[name] = Rows(tuple(estimate.labels), estimate.values, low, high)
        mean = found.conditional_mean
        order = np.argsort(-found.frequency.values, kind="stable")
        return cls(made, mean.low, mean.high).pick(order)

    def __len__(self) -> int:
        return len(self.rows["frequency"])

    def pick(self, order: NDArray[np.int64] | slice) -> Answers:
        """Return some of the keys, in this order."""
        picked = {name: rows.pick(order) for name, rows in self.rows.items()}
        return replace(self, rows=picked)

    @property
    def keys(self) -> tuple[Any, ...]:
        """The keys, in order."""
        return self.rows["frequency"].items

    def columns(self) -> dict[str, list[Any]]:
        """Return the answers as plain columns."""
        shown: dict[str, list[Any]] = {"key": list(self.keys)}
        for name, rows in self.rows.items():
            values = rows.columns()
            shown |= {
                name: values["estimate"],
                f"{name}_low": values["low"],
                f"{name}_high": values["high"],
            }
        return shown

    def records(self) -> list[dict[str, Any]]:
        """Return the answers as plain records, one for each key."""
        made = {name: rows.records() for name, rows in self.rows.items()}
        ends = ("estimate", "low", "high")
        return [
            {"key": key} | {name: {end: made[name][index][end] for end in ends} for name in made}
            for index, key in enumerate(self.keys)
        ]

    def _known(self, name: str) -> Rows:
        """Return the rows of an answer, with NaN where its interval rules nothing out."""
        rows = self.rows[name]
        if name != "conditional_mean":
            return rows
        nothing = (rows.low <= self.least) & (rows.high >= self.most)
        return replace(rows, values=np.where(nothing, np.nan, rows.values))

    @property
    def unknown(self) -> bool:
        """Whether nothing is known of the values of some key."""
        return bool(np.isnan(self._known("conditional_mean").values).any())

    def fitting(self, console: Console, level: float) -> Answers:
        """Return the answers that fit beside each other; the middle one may have to go."""
        boundless = console.options.update(max_width=1 << 16)
        if Measurement.get(console, boundless, self.table(level)).maximum <= console.width:
            return self
        return replace(self, rows={name: x for name, x in self.rows.items() if name != "mean"})

    def cells(self, name: str) -> list[str]:
        """Return an answer's estimates and intervals as aligned words."""
        return _cells(self._known(name))

    def table(self, level: float) -> Table:
        """Return keys and, for each answer, an estimate and its interval."""
        shown = tables.table()
        shown.add_column("key", overflow="fold")
        for name in self.rows:
            shown.add_column(f"{_WORDS[name]}\n({100 * level:.10g}% interval)", no_wrap=True)
        cells = [self.cells(name) for name in self.rows]
        for index, key in enumerate(self.keys):
            shown.add_row(Text(tables.label(key)), *(column[index] for column in cells))
        return shown


def _cells(rows: Rows) -> list[str]:
    places = decimals(float(np.median(rows.reach)))
    wide = max(len(fixed(end, places)) for end in [*rows.low, *rows.high])
    return [
        f"{'?' if np.isnan(value) else fixed(value, places):>{wide}} "
        f"({fixed(low, places):>{wide}} to {fixed(high, places):>{wide}})"
        for value, low, high in zip(rows.values, rows.low, rows.high, strict=True)
    ]
