"""Answers as a picture: dots in soft intervals, and the truth where a simulation knows it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import cycle, pairwise
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, NullLocator
from numpy.typing import NDArray

from sfumato.core.answers import Answers
from sfumato.core.domain import printable
from sfumato.lab.published_accuracy import MethodErrors
from sfumato.streams.published import Released

__all__ = ["apart", "curves", "dots", "errors", "means"]

# Okabe and Ito's blue and vermilion, which every kind of eye tells apart.
ACCENT: Final = "#0072B2"
TRUTH: Final = "#D55E00"
# The rest of Okabe and Ito's sequence, for up to eight lines.
SEQUENCE: Final = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#6b6b00",
    "#000000",
)
INK: Final = "#1f2328"
QUIET: Final = "#59636e"
GRID: Final = "#e9ebee"

_BLUR: Final = LinearSegmentedColormap.from_list("sfumato", [f"{ACCENT}12", f"{ACCENT}a8"])
_WIDTH, _ROW, _TOP, _SUBTITLE, _BOTTOM = 8.6, 0.33, 1.03, 0.27, 1.1  # inches
_HALF: Final = 0.26  # of a row: half the height of an interval


def dots(
    answers: Answers,
    *,
    title: str,
    note: str,
    subtitle: str = "",
    truth: NDArray[np.float64] | None = None,
) -> Figure:
    """Return a picture of answers, the first one at the top."""
    inch = 1 / (_TOP + _SUBTITLE * bool(subtitle) + _ROW * len(answers) + _BOTTOM)
    figure = Figure(figsize=(_WIDTH, 1 / inch), dpi=200, facecolor="white")
    longest = max(len(printable(item)) for item in answers.labels)
    left = min(0.4, 0.05 + 0.0112 * longest)
    axes = figure.add_axes((left, _BOTTOM * inch, 0.965 - left, _ROW * len(answers) * inch))
    _draw(axes, answers, truth)
    _frame(axes, answers, truth)
    _name(axes, answers)
    quantity = answers.quantity
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{quantity.scale * value:.6g}{quantity.unit}")
    )
    if quantity.kind != "amount":
        axes.set_xlabel(quantity.noun.lower(), color=QUIET, size=9.5, labelpad=4)
    figure.text(0.03, 1 - 0.42 * inch, title, size=16, weight="bold", color=INK)
    figure.text(0.03, 1 - 0.7 * inch, subtitle, size=11.5, color=INK)
    figure.legend(
        handles=_legend(answers.percent, with_truth=truth is not None),
        loc="upper left",
        bbox_to_anchor=(0.018, 1 - (0.53 + _SUBTITLE * bool(subtitle)) * inch),
        ncols=3,
        frameon=False,
        fontsize=10,
        labelcolor=QUIET,
        handletextpad=0.4,
        columnspacing=1.6,
    )
    words = textwrap.fill(note, 126)
    figure.text(0.03, 0.14 * inch, words, size=8.8, color=QUIET, linespacing=1.5)
    return figure


def curves(
    across: NDArray[np.float64],
    values: dict[str, list[float]],
    *,
    title: str,
    subtitle: str,
    label_across: str,
) -> Figure:
    """Return each error as a multiple of the least at that place, named at its end."""
    figure = Figure(figsize=(_WIDTH, 5.0), dpi=200, facecolor="white")
    axes = figure.add_axes((0.07, 0.125, 0.66, 0.675))
    least = np.min(list(values.values()), axis=0)
    top = 3.0
    ratios = {name: np.asarray(line) / least for name, line in values.items()}
    # Lines that coincide stay visible: the thinner lies on the wider.
    widths = np.linspace(4.4, 1.6, len(values))
    for color, width, (name, line) in zip(cycle(SEQUENCE), widths, ratios.items(), strict=False):
        axes.plot(across, line, color=color, linewidth=width, label=name, solid_capstyle="butt")
    axes.set(xscale="log", xlim=(across[0], across[-1]), ylim=(0.97, top))
    wanted = np.array([min(line[-1], top) for line in ratios.values()])
    for color, name, place in zip(
        cycle(SEQUENCE), ratios, apart((wanted - 0.97) / (top - 0.97)), strict=False
    ):
        beyond = " (above)" if ratios[name][-1] > top else ""
        axes.annotate(
            name.replace("_", " ") + beyond,
            (1.02, place),
            xycoords="axes fraction",
            color=color,
            size=10.5,
            va="center",
        )
    ticks = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5) if across[0] <= tick <= across[-1]]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    axes.set_xlabel(label_across, color=QUIET, size=9.5, labelpad=4)
    axes.tick_params(which="both", length=0, labelcolor=QUIET, labelsize=9.5, pad=5)
    axes.grid(color=GRID, linewidth=0.9)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    figure.text(0.03, 0.925, title, size=16, weight="bold", color=INK)
    figure.text(0.03, 0.865, subtitle, size=11.5, color=INK)
    return figure


def means(stream: Released) -> Figure:
    """Return the running mean of a released stream, soft where it is not certain."""
    figure = Figure(figsize=(_WIDTH, 4.6), dpi=200, facecolor="white")
    axes = figure.add_axes((0.085, 0.2, 0.865, 0.6))
    count = stream.last - stream.first + 1
    shown = min(100, max(1, count // stream.release.block))
    ends = np.linspace(stream.first - 1, stream.last, shown + 1).round().astype(int)
    answers = [stream.sum(int(start) + 1, int(end)).mean for start, end in pairwise(ends)]
    middle = (ends[:-1] + ends[1:]) / 2
    values = np.array([answer.value for answer in answers])
    reach = np.array([answer.high for answer in answers]) - values
    for part in np.linspace(1, 0.05, 20):  # the sfumato: densest at the estimate
        axes.fill_between(
            middle,
            values - part * reach,
            values + part * reach,
            color=ACCENT,
            alpha=0.035,
            linewidth=0,
        )
    axes.plot(middle, values, color=ACCENT, linewidth=1.6)
    axes.axhline(0, color=QUIET, linewidth=0.9)
    axes.set_xlim(ends[0], ends[-1])
    axes.xaxis.set_major_formatter(FuncFormatter(lambda place, _: f"{place:,.0f}"))
    axes.set_xlabel("place in the stream", color=QUIET, size=9.5, labelpad=4)
    axes.tick_params(length=0, labelcolor=QUIET, labelsize=9.5, pad=5)
    axes.grid(color=GRID, linewidth=0.9)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    title = f"Mean of each {count // shown:,} values, as published"
    figure.text(0.03, 0.92, title, size=16, weight="bold", color=INK)
    cuts = sorted({at * stream.unit for at, _ in stream.cuts(stream.first, stream.last)})
    span = " to ".join(f"{at:,.10g}" for at in dict.fromkeys((cuts[0], cuts[-1])))
    cut = f"of values cut to {span}, with 95% intervals"
    figure.text(0.03, 0.85, cut, size=11.5, color=INK)
    note = textwrap.fill(str(stream.release.guarantee), 126)
    figure.text(0.03, 0.03, note, size=8.8, color=QUIET, linespacing=1.5)
    return figure


def errors(rows: Sequence[MethodErrors]) -> Figure:
    """Return the errors of each method against epsilon: a row for each kind, a panel per stream."""
    names = list(dict.fromkeys(row.stream for row in rows))
    methods = list(dict.fromkeys(row.method for row in rows))
    kinds = {
        "mse": "squared error of sums",
        "mae": "error of sums",
        "mmse": "squared error of means",
        "mmae": "error of means",
    }
    figure = Figure(figsize=(_WIDTH, 10.2), dpi=160, facecolor="white")
    epsilons = sorted({row.epsilon for row in rows})
    width, height = 0.93 / len(names), 0.21
    for across, name in enumerate(names):
        for down, (metric, kind) in enumerate(kinds.items()):
            left, bottom = 0.085 + across * width, 0.69 - down * (height + 0.005)
            axes = figure.add_axes((left, bottom, width - 0.075, height - 0.022))
            for color, method in zip(cycle(SEQUENCE), methods, strict=False):
                own = [row for row in rows if (row.stream, row.method) == (name, method)]
                heights = [getattr(row, metric) for row in own]
                axes.plot(
                    [row.epsilon for row in own], heights, "o-", color=color, ms=3, label=method
                )
            axes.set(xscale="log", yscale="log")
            axes.xaxis.set_minor_locator(NullLocator())
            axes.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
            axes.tick_params(which="both", length=0, labelcolor=QUIET, labelsize=8, pad=3)
            axes.grid(color=GRID, linewidth=0.9)
            axes.set_axisbelow(True)
            axes.spines[:].set_visible(False)
            if not across:
                axes.set_ylabel(kind, color=QUIET, size=9)
            if not down:
                axes.set_title(name, color=INK, size=11, loc="left")
            if metric == "mmae":
                axes.set_xlabel("epsilon", color=QUIET, size=9, labelpad=3)
            else:
                axes.tick_params(which="both", labelbottom=False)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="upper left",
        bbox_to_anchor=(0.02, 0.965),
        ncols=len(labels),
        columnspacing=1.2,
        handlelength=1.2,
        frameon=False,
        fontsize=8.5,
        labelcolor=QUIET,
    )
    figure.text(0.03, 0.97, "Errors of random ranges", size=16, weight="bold", color=INK)
    return figure


def apart(wanted: NDArray[np.float64]) -> list[float]:
    """Return heights near the wanted ones at which names do not overlap."""
    gap = 0.055
    order = np.argsort(wanted, kind="stable")
    placed = wanted[order].copy()
    for index in range(1, len(placed)):
        placed[index] = max(placed[index], placed[index - 1] + gap)
    placed -= max(0.0, placed[-1] - 1)
    for index in range(len(placed) - 2, -1, -1):
        placed[index] = min(placed[index], placed[index + 1] - gap)
    heights = dict(zip(order.tolist(), placed.tolist(), strict=True))
    return [heights[index] for index in range(len(placed))]


def _draw(axes: Axes, answers: Answers, truth: NDArray[np.float64] | None) -> None:
    places = np.arange(len(answers))
    for place, low, value, high in zip(
        places.tolist(), answers.low, answers.values, answers.high, strict=True
    ):
        _fade(axes, place, low, value)
        _fade(axes, place, high, value)
    axes.scatter(
        answers.values, places, s=42, color=ACCENT, edgecolors="white", linewidths=1, zorder=4
    )
    if truth is not None:
        reach = _HALF + 0.05
        axes.vlines(truth, places - reach, places + reach, color=TRUTH, linewidth=2.2, zorder=5)


def _frame(axes: Axes, answers: Answers, truth: NDArray[np.float64] | None) -> None:
    """Let everything be seen and, where it belongs, the zero."""
    ends = np.concatenate([answers.low, answers.high, answers.low if truth is None else truth])
    low, high = min(0.0, ends.min()) if answers.quantity.from_zero else ends.min(), ends.max()
    margin = 0.02 * (high - low)
    axes.set_xlim(low - margin, high + margin)
    axes.set_ylim(len(answers) - 0.5, -0.5)
    if answers.quantity.from_zero:
        axes.axvline(0, color=QUIET, linewidth=0.9, zorder=1)


def _fade(axes: Axes, place: float, end: float, value: float) -> None:
    """Blur from the estimate to the end of its interval, like the noise itself: the sfumato."""
    if end == value:  # an estimate at the end of what is possible
        return
    distance = np.linspace(2, 0, 200)
    axes.imshow(
        np.exp(-(distance**2) / 2)[None, :],
        cmap=_BLUR,
        vmin=0,
        vmax=1,
        extent=(end, value, place + _HALF, place - _HALF),
        aspect="auto",
        interpolation="bilinear",
        zorder=3,
    )


def _name(axes: Axes, answers: Answers) -> None:
    axes.set_yticks(
        range(len(answers)), [printable(item) for item in answers.labels], size=10.5, color=INK
    )
    axes.tick_params(length=0, pad=7)
    axes.tick_params(axis="x", labelcolor=QUIET, labelsize=9.5, pad=5)
    axes.grid(axis="x", color=GRID, linewidth=0.9)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)


def _legend(percent: str, *, with_truth: bool) -> list[Line2D | Patch]:
    dot = Line2D([], [], color=ACCENT, marker="o", markersize=6, linestyle="", label="estimate")
    blur = Patch(facecolor=f"{ACCENT}60", edgecolor="none", label=f"{percent} interval")
    truth = Line2D([], [], color=TRUTH, marker="|", markersize=11, markeredgewidth=2.2)
    truth.set(linestyle="", label="truth")
    return [dot, blur, truth] if with_truth else [dot, blur]
