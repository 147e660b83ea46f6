"""Released streams as pictures: their running mean, and how far methods are off."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, pairwise
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from sfumato.core.duration import length
from sfumato.lab.published_accuracy import MethodErrors
from sfumato.plots import style
from sfumato.streams.published import Released, ReleasedByTime
from sfumato.streams.published.local_time import DAY
from sfumato.streams.published.time_grid import TimeGrid

__all__ = ["errors", "means", "timeline"]

_MOST_SHOWN: Final = 200  # sums in a picture

_METRICS: Final = {
    "mse": "squared error of sums",
    "mae": "error of sums",
    "mmse": "squared error of means",
    "mmae": "error of means",
}


def means(stream: Released, first: int | None = None, last: int | None = None) -> Figure:
    """Return the running mean of a released stream, or of a range, soft where it is uncertain."""
    first, last = first or stream.first, last or stream.last
    count = last - first + 1
    shown = min(100, max(1, count // stream.release.block))
    cuts = sorted({at * stream.unit for at, _ in stream.cuts(first, last)})
    span = " to ".join(f"{at:,.10g}" for at in dict.fromkeys((cuts[0], cuts[-1])))
    figure = style.page(
        4.6,
        f"Mean of each {count // shown:,} values, as published",
        f"of values cut to {span}, with 95% intervals",
    )
    axes = figure.add_axes((0.085, 0.2, 0.865, 0.6))
    ends = np.linspace(first - 1, last, shown + 1).round().astype(int)
    answers = [stream.sum(int(start) + 1, int(end)).mean for start, end in pairwise(ends)]
    low, values, high = np.array([(each.low, each.value, each.high) for each in answers]).T
    style.soft_band(axes, (ends[:-1] + ends[1:]) / 2, values, low, high)
    axes.axhline(0, color=style.QUIET, linewidth=0.9)
    axes.set_xlim(ends[0], ends[-1])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda position, _: f"{position:,.0f}"))
    style.name_across(axes, "position in the stream")
    style.quiet(axes)
    style.annotate(figure, str(stream.guarantee))
    return figure


def timeline(stream: ReleasedByTime, first: int = 1, last: int | None = None) -> Figure:
    """Return the sums of a stream that was published by time, from one period to another."""
    last = last or stream.grid.periods
    ends, each = _stretches(stream.grid, first, last)
    figure = style.page(
        4.6,
        f"Sum of each {each}, as published",
        f"of values cut to {stream.stream.threshold * stream.stream.unit:,.10g}, "
        "with 95% intervals",
    )
    axes = figure.add_axes((0.085, 0.2, 0.865, 0.6))
    answers = [stream.sum(start + 1, end) for start, end in pairwise(ends)]
    low, values, high = np.array([(each.low, each.value, each.high) for each in answers]).T
    edges = stream.grid.edges[ends] / DAY
    steps = np.repeat(edges, 2)[1:-1]  # a sum holds for all of its periods
    style.soft_band(axes, steps, *(np.repeat(each, 2) for each in (values, low, high)))
    axes.axhline(0, color=style.QUIET, linewidth=0.9)
    axes.set_xlim(edges[0], edges[-1])
    zone = stream.grid.clock.zone
    marks = AutoDateLocator(tz=zone)  # type: ignore[no-untyped-call]
    words = ConciseDateFormatter(marks, tz=zone)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(marks)
    axes.xaxis.set_major_formatter(words)
    style.name_across(axes, f"time ({stream.grid.zone})")
    style.quiet(axes)
    style.annotate(figure, str(stream.stream.guarantee))
    return figure


def _stretches(grid: TimeGrid, first: int, last: int) -> tuple[list[int], str]:
    """Return the ends of the sums to draw, and what each is of: a period, or days if many."""
    if last - first < _MOST_SHOWN:
        return [*range(first - 1, last + 1)], length(grid.every).removeprefix("1 ")
    days = np.unique(grid.clock.walls(grid.edges[first - 1 : last]) // DAY, return_index=True)[1]
    many = -(-days.size // _MOST_SHOWN)
    return [*(days[::many] + first - 1).tolist(), last], "day" if many == 1 else f"{many:,} days"


def errors(rows: Sequence[MethodErrors]) -> Figure:
    """Return the errors of each method against epsilon: a row for each kind, a panel per stream."""
    names = list(dict.fromkeys(row.stream for row in rows))
    figure = style.page(10.2, "Errors of random ranges", dpi=160)
    width, height = 0.93 / len(names), 0.21
    for across, name in enumerate(names):
        own = [row for row in rows if row.stream == name]
        for down, metric in enumerate(_METRICS):
            left, bottom = 0.085 + across * width, 0.69 - down * (height + 0.005)
            axes = figure.add_axes((left, bottom, width - 0.075, height - 0.022))
            _draw_errors(axes, own, metric)
            if not across:
                axes.set_ylabel(_METRICS[metric], color=style.QUIET, size=9)
            if not down:
                axes.set_title(name, color=style.INK, size=11, loc="left")
            if down < len(_METRICS) - 1:
                axes.tick_params(which="both", labelbottom=False)
            else:
                axes.set_xlabel("epsilon", color=style.QUIET, size=9, labelpad=3)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(0.02, 0.955),
        ncols=len(labels),
        columnspacing=1.2,
        handlelength=1.2,
        fontsize=8.5,
        **style.LEGEND,
    )
    return figure


def _draw_errors(axes: Axes, rows: Sequence[MethodErrors], metric: str) -> None:
    """Draw one kind of errors on one stream, a line for each method."""
    methods = dict.fromkeys(row.method for row in rows)
    for color, method in zip(cycle(style.SEQUENCE), methods, strict=False):
        own = [row for row in rows if row.method == method]
        heights = [getattr(row, metric) for row in own]
        axes.plot([row.epsilon for row in own], heights, "o-", color=color, ms=3, label=method)
    axes.set(xscale="log", yscale="log")
    axes.xaxis.set_minor_locator(NullLocator())
    epsilons = sorted({row.epsilon for row in rows})
    axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    style.quiet(axes, size=8, pad=3)
