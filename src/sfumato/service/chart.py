"""The chart as it is without script: lines with their bands, as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any, Final

__all__ = ["COLOURS", "chart"]

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
"""A sequence that colour-blind people can tell apart, on light and on dark ground."""

WIDTH: Final = 960
HEIGHT: Final = 320
LEFT: Final = 56
BELOW: Final = 28


def chart(
    history: Sequence[Mapping[str, Any]], places: Sequence[int], data: Mapping[str, Any]
) -> str:
    """Return the chart of some items as SVG; a sentence if there is nothing to draw."""
    known = [
        one[side][place]
        for one in history
        for place in places
        for side in ("low", "high")
        if one[side][place] is not None
    ]
    if not known:
        return '<p class="nothing">The curve appears here when the first period has closed.</p>'
    low, high = min(*known, 0.0), max(*known, 0.0)
    span = (high - low) or 1.0
    periods = max(data["periods"] - 1, 1)

    def point(period: int, value: float) -> str:
        x = LEFT + (WIDTH - LEFT - 12) * (period - 1) / periods
        y = 8 + (HEIGHT - BELOW - 8) * (high - value) / span
        return f"{x:.1f},{y:.1f}"

    drawn = [_axis(low, high, point, data["periods"])]
    for turn, place in enumerate(places):
        rows = [one for one in history if one["values"][place] is not None]
        if not rows:
            continue
        colour = COLOURS[turn % len(COLOURS)]
        above = [point(one["period"], one["high"][place]) for one in rows]
        below = [point(one["period"], one["low"][place]) for one in reversed(rows)]
        line = " ".join(point(one["period"], one["values"][place]) for one in rows)
        x, y = point(rows[-1]["period"], rows[-1]["values"][place]).split(",")
        drawn.append(
            f'<polygon points="{" ".join(above + below)}" fill="{colour}" fill-opacity="0.16" '
            f'stroke="{colour}" stroke-opacity="0.16"/><circle cx="{x}" cy="{y}" r="4" '
            f'fill="{colour}"/>'
            f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
    names = ", ".join(escape(str(data["labels"][place])) for place in places)
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="Estimated shares of {names} '
        f'over time, with their intervals">{"".join(drawn)}</svg>'
    )


def _axis(low: float, high: float, point: Any, periods: int) -> str:
    """Return lines and words of the axes."""
    drawn = []
    step = next(
        (s for s in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5) if (high - low) / s <= 7), 10
    )
    tick = int(low / step) * step
    while tick <= high:
        y = point(1, tick).split(",")[1]
        drawn.append(
            f'<line x1="{LEFT}" x2="{WIDTH - 12}" y1="{y}" y2="{y}" class="grid"/>'
            f'<text x="{LEFT - 8}" y="{y}" class="tick" text-anchor="end" '
            f'dominant-baseline="middle">{100 * tick:.0f}%</text>'
        )
        tick += step
    for period in sorted({1, (periods + 1) // 2, periods}):
        x = point(period, low).split(",")[0]
        anchor = "end" if period == periods else "middle"
        drawn.append(
            f'<text x="{x}" y="{HEIGHT - 6}" class="tick" text-anchor="{anchor}">period {period}'
            "</text>"
        )
    return "".join(drawn)
