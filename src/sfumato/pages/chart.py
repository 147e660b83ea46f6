"""The chart of a page without scripts, and as a picture to take away: lines with bands, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

import numpy as np

from sfumato.arrays import Ints
from sfumato.core.quantity import Quantity
from sfumato.pages.moments import moment
from sfumato.pages.subject import Axis, Columns

__all__ = ["COLOURS", "Chart", "ItemCurve", "ticks"]

COLOURS: Final = (
    *("#1f8ac9", "#d55e00", "#009e73", "#cc79a7"),
    *("#56b4e9", "#a88600", "#8a7bd8", "#808080"),
)
"""Colours that colour-blind people can tell apart, on a light and on a dark background."""

WIDTH: Final = 960
HEIGHT: Final = 320
LEFT: Final = 64
RIGHT: Final = 132
"""The room for the items' names behind the ends of their lines."""
BELOW: Final = 28
LINE: Final = 15
"""The least distance of two names."""
LONGEST_NAME: Final = 16
MOST_POINTS: Final = 300
"""The largest number of periods that are drawn; of more, some are left out."""


@dataclass(frozen=True)
class ItemCurve:
    """An item in a chart: its name, the index of its colour, and its column."""

    name: str
    turn: int
    column: int


@dataclass(frozen=True)
class Chart:
    """Some items over a range of periods."""

    curves: Sequence[ItemCurve]
    columns: Columns
    axis: Axis
    quantity: Quantity
    first: int
    last: int
    above: float | None = None

    def svg(self, nothing: str) -> str:
        """Return the chart as SVG, or a sentence if there is nothing to draw."""
        low, high = (
            side[self.first - 1 : self.last] for side in (self.columns.low, self.columns.high)
        )
        known = np.isfinite(low) & np.isfinite(high)
        if not known.any():
            return f'<p class="nothing">{nothing}</p>'
        ends = [float(low[known].min()), float(high[known].max())]
        ends += [0.0] * self.quantity.from_zero
        ends += [] if self.above is None else [self.above]
        bottom, top = min(ends), max(ends)
        if bottom == top:
            bottom, top = bottom - 1.0, top + 1.0
        frame = _Frame(self.first, self.last, bottom, top)
        names: list[tuple[float, float, str]] = []
        drawn = [frame.axes(self.quantity, self.axis)]
        drawn += [self._curve(curve, frame, names) for curve in self.curves]
        if self.above is not None:
            y = frame.y(self.above)
            drawn.append(
                f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" class="above"/>'
            )
        drawn.append(_names(names))
        listed = escape(", ".join(curve.name for curve in self.curves))
        return (
            f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{self.quantity.noun} over '
            f'time, estimated, with intervals: {listed}">{"".join(drawn)}</svg>'
        )

    def _curve(self, curve: ItemCurve, frame: _Frame, names: list[tuple[float, float, str]]) -> str:
        """Return the line and the bands of an item as SVG, a stretch of known periods at a time."""
        colour = COLOURS[curve.turn % len(COLOURS)]
        values, low, high = (side[:, curve.column] for side in self.columns)
        rows = _rows(self.first - 1, min(self.last, len(values)))
        known = np.isfinite(values[rows]) & np.isfinite(low[rows]) & np.isfinite(high[rows])
        drawn, end = [], None
        for stretch in np.split(rows, np.flatnonzero(np.diff(known.astype(np.int8))) + 1):
            if not stretch.size or not known[np.searchsorted(rows, stretch[0])]:
                continue
            inside = np.clip(values, low, high)
            above = [frame.point(row + 1, high[row]) for row in stretch.tolist()]
            below = [frame.point(row + 1, low[row]) for row in reversed(stretch.tolist())]
            points = [frame.point(row + 1, inside[row]) for row in stretch.tolist()]
            drawn.append(
                f'<polygon points="{" ".join(above + below)}" fill="{colour}" fill-opacity="0.16" '
                f'stroke="{colour}" stroke-opacity="0.16"/>'
                f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" '
                'stroke-width="2"/>'
            )
            end = points[-1]
        if end is None:
            return ""
        x, y = end.split(",")
        names.append((float(y), float(x), curve.name))
        return "".join(drawn) + f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>'


def _rows(start: int, end: int) -> Ints:
    """Return the indices of the periods that are drawn; the last is always one of them."""
    step = max(1, -(-(end - start) // MOST_POINTS))
    return np.unique(np.append(np.arange(start, end, step), end - 1))


@dataclass(frozen=True)
class _Frame:
    """The place of periods and values in a chart."""

    first: int
    last: int
    low: float
    high: float

    def x(self, period: float) -> float:
        across = (period - self.first) / max(self.last - self.first, 1)
        return LEFT + (WIDTH - LEFT - RIGHT) * across

    def y(self, value: float) -> float:
        return 8 + (HEIGHT - BELOW - 8) * (self.high - value) / (self.high - self.low)

    def point(self, period: int, value: float) -> str:
        return f"{self.x(period):.1f},{self.y(value):.1f}"

    def axes(self, quantity: Quantity, axis: Axis) -> str:
        """Return the lines and labels of the axes as SVG."""
        drawn = []
        for scaled, places in ticks(self.low * quantity.scale, self.high * quantity.scale):
            tick = scaled / quantity.scale
            y = f"{self.y(tick):.1f}"
            drawn.append(
                f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" class="grid"/>'
                f'<text x="{LEFT - 8}" y="{y}" class="tick" text-anchor="end" '
                f'dominant-baseline="middle">{escape(quantity.text(tick, places))}</text>'
            )
        for period in sorted({self.first, (self.first + self.last) // 2, self.last}):
            anchor = "start" if period == self.first else "middle"
            drawn.append(
                f'<text x="{self.x(period):.1f}" y="{HEIGHT - 6}" class="tick" '
                f'text-anchor="{anchor}">{escape(moment(axis, axis.end(period)))}</text>'
            )
        return "".join(drawn)


def _names(ends: Sequence[tuple[float, float, str]]) -> str:
    """Return the items' names behind the ends of their lines, none upon another, as SVG."""
    room = HEIGHT - BELOW - LINE * (len(ends) - 1)
    drawn, free = [], 0.0
    for turn, (y, x, name) in enumerate(sorted(ends)):
        free = max(min(y, room + LINE * turn), free)
        short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
        drawn.append(
            f'<text x="{x + 9:.1f}" y="{free:.1f}" class="name" dominant-baseline="middle">'
            f"{escape(short)}</text>"
        )
        free += LINE
    return "".join(drawn)


def ticks(low: float, high: float, most: int = 7) -> Iterator[tuple[float, int]]:
    """Yield up to ``most`` round numbers from low to high, each with its number of decimals.

    Examples
    --------
    >>> list(ticks(-0.3, 1.2))
    [(0.0, 1), (0.5, 1), (1.0, 1)]
    >>> [tick for tick, _ in ticks(5100.0, 5900.0)]
    [5200.0, 5400.0, 5600.0, 5800.0]

    """
    power = math.floor(math.log10((high - low) / most))
    steps = ((factor, up) for up in (power, power + 1) for factor in (1, 2, 5))
    factor, up = next(
        (factor, up) for factor, up in steps if (high - low) / (factor * 10.0**up) <= most
    )
    step = factor * 10.0**up
    for count in range(math.ceil(low / step), math.floor(high / step) + 1):
        yield count * step, max(0, -up)
