"""Estimates as rows: what tables, pictures, files and JSON are all made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.domain import Label
from sfumato.core.estimate import Estimate

__all__ = ["Rows"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Items with their estimates and the two ends of their intervals."""

    items: tuple[Label, ...]
    values: Floats
    low: Floats
    high: Floats

    @classmethod
    def of(cls, estimate: Estimate, level: float, *, band: bool = False) -> Rows:
        """Return the rows of an estimate, largest first; ``band`` intervals hold all at once."""
        low, high = estimate.band(level) if band else estimate.interval(level)
        rows = cls(tuple(estimate.labels), estimate.values, low, high)
        return rows.pick(np.argsort(-estimate.values, kind="stable"))

    def __len__(self) -> int:
        return len(self.items)

    def pick(self, order: NDArray[np.int64] | slice) -> Rows:
        """Return some of the rows, in this order."""
        chosen = np.arange(len(self))[order]
        items = tuple(self.items[index] for index in chosen)
        return Rows(items, self.values[order], self.low[order], self.high[order])

    @property
    def reach(self) -> Floats:
        """How far each interval goes from its estimate, to the farther side.

        Half of its width where nothing is estimated.
        """
        farther = np.maximum(self.values - self.low, self.high - self.values)
        return np.fmax(farther, (self.high - self.low) / 2)

    def columns(self) -> dict[str, list[Any]]:
        """Return the rows as plain columns."""
        return {
            "item": list(self.items),
            "estimate": self.values.tolist(),
            "low": self.low.tolist(),
            "high": self.high.tolist(),
        }

    def records(self) -> list[dict[str, Any]]:
        """Return the rows as plain records."""
        columns = self.columns()
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
