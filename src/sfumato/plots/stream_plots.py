"""Curves of a simulated stream: the estimate in its soft band, and the truth."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from sfumato.core.domain import printable
from sfumato.plots.answer_plots import ACCENT, GRID, INK, QUIET, TRUTH

if TYPE_CHECKING:
    from sfumato.core.quantity import Quantity
    from sfumato.simulation import Simulation

__all__ = ["bands"]

Floats = NDArray[np.float64]

_WIDTH, _PANEL, _TOP, _BOTTOM, _GAP = 8.6, 2.2, 1.5, 1.05, 0.66  # inches
_UNITS: Final = (
    (604_800, "week"),
    (86_400, "day"),
    (3600, "hour"),
    (60, "minute"),
    (1, "second"),
)


@dataclass(frozen=True, eq=False)
class _Curves:
    """What a picture of curves shows: one row for each period, one column for each item."""

    labels: tuple[Any, ...]
    values: Floats
    low: Floats
    high: Floats
    truth: Floats
    subtitle: str
    note: str
    quantity: Quantity


def bands(
    outcome: Simulation, decoder: str, *, title: str, unit: int, most: int, level: float = 0.95
) -> Figure:
    """Return the largest items' curves of simulated devices, one panel each, on one scale."""
    quantity = outcome.stream.quantity
    bias = float(np.nanmax(np.abs(outcome.clipping(decoder)), initial=0.0))
    clipped = (
        f" What devices may not tell biases the curves by up to {quantity.scale * bias:.2g}"
        f"{' points' * (quantity.unit == '%')}, which no interval shows."
        if bias > 1e-9
        else ""
    )
    values = outcome.estimates(decoder)[0]
    ends = outcome.interval(decoder, level)
    low, high = (np.where(np.isfinite(end), end, values) for end in ends)
    curves = _Curves(
        tuple(outcome.stream.labels),
        values,
        low,
        high,
        outcome.truth,
        f"{quantity.noun}, {outcome.devices:,} simulated devices, {decoder}",
        f"{outcome.stream.guarantee}{clipped}",
        quantity,
    )
    width = curves.truth.shape[1]
    order = np.argsort(-np.nanmean(curves.values, axis=0), kind="stable")
    places = order[:most].tolist()
    columns = 1 if len(places) == 1 else 2
    rows = -(-len(places) // columns)
    panel = _PANEL if columns == 2 else 3.2
    height = _TOP + rows * panel + (rows - 1) * _GAP + _BOTTOM
    figure = Figure(figsize=(_WIDTH, height), dpi=200, facecolor="white")
    side = 0.915 if columns == 1 else 0.42
    first: Axes | None = None
    for index, place in enumerate(places):
        row, column = divmod(index, columns)
        bottom = _BOTTOM + (rows - 1 - row) * (panel + _GAP)
        box = (0.07 + column * 0.495, bottom / height, side, panel / height)
        axes: Axes = figure.add_axes(box, sharey=first)
        first = first or axes
        _curve(axes, curves, place)
        if width > 1:
            axes.set_title(printable(curves.labels[place]), loc="left", size=11.5)
        if row == rows - 1 or index + columns >= len(places):
            axes.set_xlabel(_period(unit), color=QUIET, size=9.5, labelpad=4)
    _words(figure, curves, title, height, len(places), level)
    return figure


def _period(seconds: int) -> str:
    for size, name in _UNITS:
        if seconds % size == 0:
            count = seconds // size
            return name if count == 1 else f"period of {count} {name}s"
    return "period"


def _curve(axes: Axes, curves: _Curves, place: int) -> None:
    values, low, high = (each[:, place] for each in (curves.values, curves.low, curves.high))
    periods = np.arange(1, len(values) + 1)
    for part in np.linspace(1, 0.05, 20):  # the sfumato: densest at the estimate
        axes.fill_between(
            periods,
            values - part * (values - low),
            values + part * (high - values),
            color=ACCENT,
            alpha=0.035,
            linewidth=0,
        )
    axes.plot(periods, curves.truth[:, place], color=TRUTH, linewidth=1.3)
    axes.plot(periods, values, color=ACCENT, linewidth=1.5)
    axes.axhline(0, color=QUIET, linewidth=0.8)
    axes.set_xlim(1, len(values))
    axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
    scale, mark = curves.quantity.scale, curves.quantity.unit
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{scale * value:.6g}{mark}"))
    axes.tick_params(length=0, labelcolor=QUIET, labelsize=9.5, pad=5)
    axes.grid(color=GRID, linewidth=0.9)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)


def _words(
    figure: Figure, curves: _Curves, title: str, height: float, shown: int, level: float
) -> None:
    figure.text(0.03, 1 - 0.42 / height, title, size=16, weight="bold", color=INK)
    width = curves.truth.shape[1]
    which = "" if shown == width else f", the {shown} largest of {width} items"
    subtitle = f"{curves.subtitle}{which}"
    figure.text(0.03, 1 - 0.7 / height, subtitle, size=11.5, color=INK)
    handles: list[Any] = [
        Line2D([], [], color=ACCENT, linewidth=1.5, label="estimate"),
        Patch(facecolor=f"{ACCENT}60", edgecolor="none", label=f"{100 * level:.10g}% interval"),
        Line2D([], [], color=TRUTH, linewidth=1.3, label="truth"),
    ]
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(0.018, 1 - 0.78 / height),
        ncols=3,
        frameon=False,
        fontsize=10,
        labelcolor=QUIET,
        handletextpad=0.5,
        columnspacing=1.6,
    )
    note = textwrap.fill(curves.note, 126)
    figure.text(0.03, 0.12 / height, note, size=8.8, color=QUIET, linespacing=1.5)
