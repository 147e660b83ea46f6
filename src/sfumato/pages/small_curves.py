"""Small curves with their bands, for rows of tables."""

from __future__ import annotations

from typing import Final

import numpy as np

from sfumato.core.quantity import Quantity
from sfumato.pages.subject import Columns

__all__ = ["sparkline", "thinned"]

WIDTH: Final = 96
HEIGHT: Final = 24
MOST: Final = 48
"""The largest number of points of a small curve."""


def thinned(curve: Columns) -> Columns:
    """Return a curve with as many periods as a small curve can show; the last is one of them."""
    count = len(curve.values)
    if count <= MOST:
        return curve
    rows = np.unique(np.linspace(0, count - 1, MOST).round().astype(np.int64))
    return Columns(*(side[rows] for side in curve))


def sparkline(curve: Columns, turn: int | None, quantity: Quantity) -> str:
    """Return a small curve with its band as SVG; empty if fewer than two periods are known.

    Parameters
    ----------
    curve
        Values and intervals of one item.
    turn
        The index of its colour; None if it is not in the chart.
    quantity
        What the values are.

    """
    rows = np.flatnonzero(np.isfinite(curve.values) & np.isfinite(curve.low + curve.high))
    if rows.size < 2:
        return ""
    low, high = curve.low[rows], curve.high[rows]
    inside = np.clip(curve.values[rows], low, high)
    bottom, top = float(low.min()), float(high.max())
    if quantity.from_zero:
        bottom, top = min(bottom, 0.0), max(top, 0.0)
    x = 1 + (WIDTH - 2) * rows / max(len(curve.values) - 1, 1)

    def points(values: np.ndarray) -> list[str]:
        y = 1 + (HEIGHT - 2) * (top - values) / ((top - bottom) or 1.0)
        return [f"{a:.0f},{b:.1f}" for a, b in zip(x.tolist(), y.tolist(), strict=True)]

    colour = "" if turn is None else f" c{turn}"
    return (
        f'<svg class="sparkline{colour}" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" '
        f'height="{HEIGHT}" aria-hidden="true">'
        f'<polygon points="{" ".join(points(high) + points(low)[::-1])}"/>'
        f'<polyline points="{" ".join(points(inside))}"/></svg>'
    )
