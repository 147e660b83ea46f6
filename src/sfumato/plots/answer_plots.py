"""Answers as a picture: dots in soft intervals, and the truth where a simulation knows it."""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from sfumato.arrays import Floats
from sfumato.core.answers import Answers
from sfumato.core.domain import printable
from sfumato.plots import style

__all__ = ["dots"]

_BLUR: Final = LinearSegmentedColormap.from_list(
    "sfumato", [f"{style.ACCENT}12", f"{style.ACCENT}a8"]
)
_ROW, _TOP, _SUBTITLE, _BOTTOM = 0.33, 1.03, 0.27, 1.1  # inches
_HALF: Final = 0.26  # of a row: half the height of an interval


def dots(
    answers: Answers,
    *,
    title: str,
    note: str,
    subtitle: str = "",
    truth: Floats | None = None,
) -> Figure:
    """Return a picture of answers, the first one at the top.

    Parameters
    ----------
    answers
        The answers, with their labels and intervals.
    title, subtitle, note
        The words above and below them.
    truth
        The true value of each answer, if it is known.

    """
    top = _TOP + _SUBTITLE * bool(subtitle)
    height = top + _ROW * len(answers) + _BOTTOM
    figure = style.page(height, title, subtitle)
    longest = max(len(printable(item)) for item in answers.labels)
    left = min(0.4, 0.05 + 0.0112 * longest)
    inside = _ROW * len(answers) / height
    axes = figure.add_axes((left, _BOTTOM / height, 0.965 - left, inside))
    _draw(axes, answers, truth)
    _frame(axes, answers, truth)
    _label(axes, answers)
    dot = Line2D([], [], marker="o", markersize=6, linestyle="")
    tick = Line2D([], [], marker="|", markersize=11, markeredgewidth=2.2, linestyle="")
    figure.legend(
        handles=style.estimate_keys(answers.percent, dot, None if truth is None else tick),
        loc="upper left",
        bbox_to_anchor=(0.018, 1 - (top - 0.5) / height),
        ncols=3,
        fontsize=10,
        handletextpad=0.4,
        columnspacing=1.6,
        **style.LEGEND,
    )
    style.annotate(figure, note)
    return figure


def _draw(axes: Axes, answers: Answers, truth: Floats | None) -> None:
    indices = np.arange(len(answers))
    for index, low, value, high in zip(
        indices.tolist(), answers.low, answers.values, answers.high, strict=True
    ):
        _fade(axes, index, low, value)
        _fade(axes, index, high, value)
    axes.scatter(
        answers.values,
        indices,
        s=42,
        color=style.ACCENT,
        edgecolors="white",
        linewidths=1,
        zorder=4,
    )
    if truth is not None:
        ends = indices - _HALF - 0.05, indices + _HALF + 0.05
        axes.vlines(truth, *ends, color=style.TRUTH, linewidth=2.2, zorder=5)


def _fade(axes: Axes, row: float, end: float, value: float) -> None:
    """Blur from the estimate to the end of its interval, like the noise itself: the sfumato."""
    if end == value:  # an estimate at the end of what is possible
        return
    distance = np.linspace(2, 0, 200)
    axes.imshow(
        np.exp(-(distance**2) / 2)[None, :],
        cmap=_BLUR,
        vmin=0,
        vmax=1,
        extent=(end, value, row + _HALF, row - _HALF),
        aspect="auto",
        interpolation="bilinear",
        zorder=3,
    )


def _frame(axes: Axes, answers: Answers, truth: Floats | None) -> None:
    """Let everything be seen and, where it belongs, the zero."""
    ends = np.concatenate([answers.low, answers.high, answers.low if truth is None else truth])
    low, high = min(0.0, ends.min()) if answers.quantity.from_zero else ends.min(), ends.max()
    margin = 0.02 * (high - low)
    axes.set_xlim(low - margin, high + margin)
    axes.set_ylim(len(answers) - 0.5, -0.5)
    if answers.quantity.from_zero:
        axes.axvline(0, color=style.QUIET, linewidth=0.9, zorder=1)


def _label(axes: Axes, answers: Answers) -> None:
    """Write what each answer is about, and what the numbers are."""
    style.quiet(axes)
    names = [printable(item) for item in answers.labels]
    axes.set_yticks(range(len(answers)), names, size=10.5, color=style.INK)
    axes.tick_params(axis="y", pad=7)
    axes.grid(visible=False, axis="y")
    quantity = answers.quantity
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{quantity.scale * value:.6g}{quantity.unit}")
    )
    if quantity.kind != "amount":
        style.name_across(axes, quantity.noun.lower())
