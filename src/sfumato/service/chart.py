"""The chart of the page without scripts: lines with their bands, as SVG."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

from sfumato.core.quantity import Quantity
from sfumato.service.view import View

__all__ = ["COLOURS", "chart", "ticks"]

COLOURS: Final = (
    "#1f8ac9",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#a88600",
    "#8a7bd8",
    "#808080",
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


def chart(view: View, rows: Sequence[int], periods: int, nothing: str) -> str:
    """Return the chart of some rows of a view as SVG, or a sentence if there is nothing to draw."""
    known = [
        one[side][row]
        for one in view.history
        for row in rows
        for side in ("low", "high")
        if one[side][row] is not None
    ]
    if not known:
        return f'<p class="nothing">{nothing}</p>'
    zero = [0.0] if view.quantity.from_zero else []
    low, high = min(known + zero), max(known + zero)
    if low == high:
        low, high = low - 1.0, high + 1.0
    span = high - low

    def point(period: int, value: float) -> str:
        x = LEFT + (WIDTH - LEFT - RIGHT) * (period - 1) / max(periods - 1, 1)
        y = 8 + (HEIGHT - BELOW - 8) * (high - value) / span
        return f"{x:.1f},{y:.1f}"

    drawn = [_axis(low, high, point, periods, view.quantity)]
    ends: list[tuple[float, float, str]] = []
    for turn, row in enumerate(rows):
        seen = [one for one in view.history if one["value"][row] is not None]
        if not seen:
            continue
        colour = COLOURS[turn % len(COLOURS)]
        above = [point(one["period"], one["high"][row]) for one in seen]
        below = [point(one["period"], one["low"][row]) for one in reversed(seen)]
        points = [point(one["period"], _inside(one, row)) for one in seen]
        line, (x, y) = " ".join(points), points[-1].split(",")
        ends.append((float(y), float(x), view.labels[row]))
        drawn.append(
            f'<polygon points="{" ".join(above + below)}" fill="{colour}" fill-opacity="0.16" '
            f'stroke="{colour}" stroke-opacity="0.16"/><circle cx="{x}" cy="{y}" r="4" '
            f'fill="{colour}"/>'
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
    drawn.append(_names(ends))
    names = escape(", ".join(view.labels[row] for row in rows))
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{view.quantity.noun} over '
        f'time, estimated, with intervals: {names}">{"".join(drawn)}</svg>'
    )


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


def _inside(one: Mapping[str, Any], row: int) -> float:
    """Return the value of a row, or the nearest end of its interval if noise has moved it out."""
    return float(min(max(one["value"][row], one["low"][row]), one["high"][row]))


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


def _axis(low: float, high: float, point: Any, periods: int, quantity: Quantity) -> str:
    """Return the lines and labels of the axes as SVG."""
    drawn = []
    for scaled, places in ticks(low * quantity.scale, high * quantity.scale):
        tick = scaled / quantity.scale
        y = point(1, tick).split(",")[1]
        drawn.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}" class="grid"/>'
            f'<text x="{LEFT - 8}" y="{y}" class="tick" text-anchor="end" '
            f'dominant-baseline="middle">{escape(quantity.text(tick, places))}</text>'
        )
    for period in sorted({1, (periods + 1) // 2, periods}):
        x = point(period, low).split(",")[0]
        anchor = "end" if period == periods else "middle"
        drawn.append(
            f'<text x="{x}" y="{HEIGHT - 6}" class="tick" text-anchor="{anchor}">period {period}'
            "</text>"
        )
    return "".join(drawn)
