"""Released streams as pictures: their running mean, and how far methods are off."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import cycle, pairwise
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from sfumato.lab.published_accuracy import MethodErrors
from sfumato.plots import style
from sfumato.streams.published import Released

__all__ = ["errors", "means"]

_METRICS: Final = {
    "mse": "squared error of sums",
    "mae": "error of sums",
    "mmse": "squared error of means",
    "mmae": "error of means",
}


def means(stream: Released) -> Figure:
    """Return the running mean of a released stream, soft where it is not certain."""
    count = stream.last - stream.first + 1
    shown = min(100, max(1, count // stream.release.block))
    cuts = sorted({at * stream.unit for at, _ in stream.cuts(stream.first, stream.last)})
    span = " to ".join(f"{at:,.10g}" for at in dict.fromkeys((cuts[0], cuts[-1])))
    figure = style.page(
        4.6,
        f"Mean of each {count // shown:,} values, as published",
        f"of values cut to {span}, with 95% intervals",
    )
    axes = figure.add_axes((0.085, 0.2, 0.865, 0.6))
    ends = np.linspace(stream.first - 1, stream.last, shown + 1).round().astype(int)
    answers = [stream.sum(int(start) + 1, int(end)).mean for start, end in pairwise(ends)]
    low, values, high = np.array([(each.low, each.value, each.high) for each in answers]).T
    style.soft_band(axes, (ends[:-1] + ends[1:]) / 2, values, low, high)
    axes.axhline(0, color=style.QUIET, linewidth=0.9)
    axes.set_xlim(ends[0], ends[-1])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda place, _: f"{place:,.0f}"))
    style.name_across(axes, "place in the stream")
    style.quiet(axes)
    style.annotate(figure, str(stream.release.guarantee))
    return figure


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
