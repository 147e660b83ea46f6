"""Curves of a simulated stream: the estimate in its soft band, and the truth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from sfumato.arrays import Array, Floats
from sfumato.core.domain import printable
from sfumato.core.duration import length
from sfumato.plots import style

if TYPE_CHECKING:
    from sfumato.core.quantity import Quantity
    from sfumato.simulation import Simulation

__all__ = ["bands"]


_TOP, _BOTTOM, _GAP = 1.5, 1.05, 0.66  # inches


def bands(
    outcome: Simulation, decoder: str, *, title: str, unit: int, most: int, level: float = 0.95
) -> Figure:
    """Return the curves of the largest items of simulated devices, one panel each, on one scale.

    Parameters
    ----------
    outcome
        What the devices held, and what was estimated.
    decoder
        How the curves are made of tallies: online, smoothed or filtered.
    title
        The words above the picture.
    unit
        How many seconds a period has.
    most
        How many items are shown at the most.
    level
        How sure the intervals are.

    """
    values = outcome.estimates(decoder)[0]
    low, high = (
        np.where(np.isfinite(end), end, values) for end in outcome.interval(decoder, level)
    )
    entries = np.argsort(-np.nanmean(values, axis=0), kind="stable")[:most].tolist()
    columns = 1 if len(entries) == 1 else 2
    rows = -(-len(entries) // columns)
    panel, width = (3.2, 0.915) if columns == 1 else (2.2, 0.42)
    height = _TOP + rows * panel + (rows - 1) * _GAP + _BOTTOM
    figure = style.page(height, title, _subtitle(outcome, decoder, len(entries)))
    first: Axes | None = None
    for index, entry in enumerate(entries):
        row, column = divmod(index, columns)
        bottom = _BOTTOM + (rows - 1 - row) * (panel + _GAP)
        box = (0.07 + column * 0.495, bottom / height, width, panel / height)
        axes: Axes = figure.add_axes(box, sharey=first)
        first = first or axes
        lines = (each[:, entry] for each in (values, low, high, outcome.truth))
        _draw_curve(axes, outcome.stream.quantity, *lines)
        if values.shape[1] > 1:
            axes.set_title(printable(outcome.stream.labels[entry]), loc="left", size=11.5)
        if row == rows - 1 or index + columns >= len(entries):
            style.name_across(axes, _period(unit))
    line, truth = Line2D([], [], linewidth=1.5), Line2D([], [], linewidth=1.3)
    figure.legend(
        handles=style.estimate_keys(f"{100 * level:.10g}%", line, truth),
        loc="upper left",
        bbox_to_anchor=(0.018, 1 - 0.78 / height),
        ncols=3,
        fontsize=10,
        handletextpad=0.5,
        columnspacing=1.6,
        **style.LEGEND,
    )
    style.annotate(figure, f"{outcome.stream.guarantee}{_clipped(outcome, decoder)}")
    return figure


def _subtitle(outcome: Simulation, decoder: str, shown: int) -> str:
    width = outcome.truth.shape[1]
    which = "" if shown == width else f", the {shown} largest of {width} items"
    noun = outcome.stream.quantity.noun
    return f"{noun}, {outcome.devices:,} simulated devices, {decoder}{which}"


def _clipped(outcome: Simulation, decoder: str) -> str:
    """Return how far the curves are off because devices may not tell everything, if they are."""
    quantity = outcome.stream.quantity
    bias = float(np.nanmax(np.abs(outcome.clipping(decoder)), initial=0.0))
    if bias <= 1e-9:
        return ""
    return (
        f" What devices may not tell biases the curves by up to {quantity.scale * bias:.2g}"
        f"{' points' * (quantity.unit == '%')}, which no interval shows."
    )


def _period(seconds: int) -> str:
    """Return what a period is called: the name of a unit of time, or how many units it has."""
    words = length(seconds)
    return words.removeprefix("1 ") if words.startswith("1 ") else f"period of {words}"


def _draw_curve(
    axes: Axes, quantity: Quantity, values: Floats, low: Floats, high: Floats, truth: Floats
) -> None:
    periods: Array = np.arange(1, len(values) + 1)
    axes.plot(periods, truth, color=style.TRUTH, linewidth=1.3)
    style.soft_band(axes, periods, values, low, high)
    axes.axhline(0, color=style.QUIET, linewidth=0.8)
    axes.set_xlim(1, len(values))
    axes.xaxis.set_major_locator(MaxNLocator(7, integer=True))
    axes.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{quantity.scale * value:.6g}{quantity.unit}")
    )
    style.quiet(axes)
