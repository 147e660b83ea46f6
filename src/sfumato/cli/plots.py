"""Rows as a picture: dots in soft intervals, and the truth where a simulation knows it."""

from __future__ import annotations

import textwrap
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from sfumato.cli.rows import Rows
from sfumato.cli.tables import label

__all__ = ["dots"]

# Okabe and Ito's blue and vermilion, which every kind of eye tells apart.
ACCENT: Final = "#0072B2"
TRUTH: Final = "#D55E00"
INK: Final = "#1f2328"
QUIET: Final = "#59636e"
GRID: Final = "#e9ebee"

_BLUR: Final = LinearSegmentedColormap.from_list("sfumato", [f"{ACCENT}12", f"{ACCENT}a8"])
_WIDTH, _ROW, _TOP, _SUBTITLE, _BOTTOM = 8.6, 0.33, 1.03, 0.27, 1.1  # inches
_HALF: Final = 0.26  # of a row: half the height of an interval


def dots(
    rows: Rows,
    *,
    title: str,
    note: str,
    level: float,
    shares: bool,
    subtitle: str = "",
    truth: NDArray[np.float64] | None = None,
) -> Figure:
    """Return a picture of the rows, the first one at the top."""
    inch = 1 / (_TOP + _SUBTITLE * bool(subtitle) + _ROW * len(rows) + _BOTTOM)
    figure = Figure(figsize=(_WIDTH, 1 / inch), dpi=200, facecolor="white")
    longest = max(len(label(item)) for item in rows.items)
    left = min(0.4, 0.05 + 0.0112 * longest)
    axes = figure.add_axes((left, _BOTTOM * inch, 0.965 - left, _ROW * len(rows) * inch))
    _draw(axes, rows, truth)
    _frame(axes, rows, truth, shares=shares)
    _name(axes, rows)
    if shares:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.6g}%"))
        axes.set_xlabel("share of devices", color=QUIET, size=9.5, labelpad=4)
    figure.text(0.03, 1 - 0.42 * inch, title, size=16, weight="bold", color=INK)
    figure.text(0.03, 1 - 0.7 * inch, subtitle, size=11.5, color=INK)
    figure.legend(
        handles=_legend(level, with_truth=truth is not None),
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


def _draw(axes: Axes, rows: Rows, truth: NDArray[np.float64] | None) -> None:
    places = np.arange(len(rows))
    for place, low, value, high in zip(
        places.tolist(), rows.low, rows.values, rows.high, strict=True
    ):
        _fade(axes, place, low, value)
        _fade(axes, place, high, value)
    axes.scatter(
        rows.values, places, s=42, color=ACCENT, edgecolors="white", linewidths=1, zorder=4
    )
    if truth is not None:
        reach = _HALF + 0.05
        axes.vlines(truth, places - reach, places + reach, color=TRUTH, linewidth=2.2, zorder=5)


def _frame(axes: Axes, rows: Rows, truth: NDArray[np.float64] | None, *, shares: bool) -> None:
    """Let everything be seen and, of shares, the zero."""
    ends = np.concatenate([rows.low, rows.high, rows.low if truth is None else truth])
    low, high = min(0.0, ends.min()) if shares else ends.min(), ends.max()
    margin = 0.02 * (high - low)
    axes.set_xlim(low - margin, high + margin)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    if shares:
        axes.axvline(0, color=QUIET, linewidth=0.9, zorder=1)


def _fade(axes: Axes, place: float, end: float, value: float) -> None:
    """Blur from the estimate to the end of its interval, like the noise itself: the sfumato."""
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


def _name(axes: Axes, rows: Rows) -> None:
    axes.set_yticks(range(len(rows)), [label(item) for item in rows.items], size=10.5, color=INK)
    axes.tick_params(length=0, pad=7)
    axes.tick_params(axis="x", labelcolor=QUIET, labelsize=9.5, pad=5)
    axes.grid(axis="x", color=GRID, linewidth=0.9)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)


def _legend(level: float, *, with_truth: bool) -> list[Line2D | Patch]:
    dot = Line2D([], [], color=ACCENT, marker="o", markersize=6, linestyle="", label="estimate")
    blur = Patch(facecolor=f"{ACCENT}60", edgecolor="none", label=f"{100 * level:.10g}% interval")
    truth = Line2D([], [], color=TRUTH, marker="|", markersize=11, markeredgewidth=2.2)
    truth.set(linestyle="", label="truth")
    return [dot, blur, truth] if with_truth else [dot, blur]
