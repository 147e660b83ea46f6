"""Bounds of the shuffle model as lines, with what can really happen below them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from sfumato.plots.answer_plots import GRID, INK, QUIET, SEQUENCE, apart

__all__ = ["bounds_over"]

_STYLES = {"rigorous": "-", "published": (0, (5, 2)), "printed": (0, (1, 2))}


def bounds_over(
    places: NDArray[np.float64],
    lines: Mapping[str, list[float]],
    lower: NDArray[np.float64],
    status: Mapping[str, str],
    *,
    title: str,
    subtitle: str,
    across: str,
) -> Figure:
    """Return all bounds over a number of people or an epsilon, both axes in decades."""
    figure = Figure(figsize=(8.6, 5.4), dpi=200, facecolor="white")
    axes = figure.add_axes((0.085, 0.165, 0.655, 0.645))
    kept = {name: np.asarray(line) for name, line in lines.items() if np.isfinite(line).any()}
    ends = {name: line[np.isfinite(line)][-1] for name, line in kept.items()}
    sound = [name for name in kept if status.get(name) != "printed"]
    colors = dict.fromkeys(kept, QUIET) | dict(zip(sound, cycle(SEQUENCE), strict=False))
    known = np.isfinite(lower) & (lower > 0)
    bottom = min(float(np.nanmin(line)) for line in kept.values())
    bottom = min(bottom, float(lower[known].min()) if known.any() else bottom) / 1.5
    top = max(float(np.nanmax(line)) for line in kept.values()) * 1.5
    if known.any():
        axes.fill_between(
            places[known], bottom, lower[known], color=GRID, linewidth=0, zorder=0, alpha=0.8
        )
    for name, line in kept.items():
        style = _STYLES[status.get(name, "rigorous")]
        axes.plot(places, line, color=colors[name], linestyle=style, linewidth=2)
    axes.set(xscale="log", yscale="log", xlim=(places[0], places[-1]), ylim=(bottom, top))
    span = np.log(top / bottom)
    wanted = np.array([np.log(end / bottom) / span for end in ends.values()])
    for name, height in zip(kept, apart(wanted), strict=True):
        axes.annotate(
            name.replace("_", " "),
            (1.02, height),
            xycoords="axes fraction",
            color=colors[name],
            size=9.5,
            va="center",
        )
    axes.set_xlabel(across, color=QUIET, size=9.5, labelpad=4)
    axes.tick_params(which="both", length=0, labelcolor=QUIET, labelsize=9.5, pad=5)
    axes.grid(color=GRID, linewidth=0.9)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
    figure.text(0.03, 0.93, title, size=16, weight="bold", color=INK)
    figure.text(0.03, 0.875, subtitle, size=11.5, color=INK)
    figure.text(
        0.03,
        0.03,
        "Solid: proven. Dashed: published theorems. Dotted: as printed, no guarantee. "
        "Grey: not possible, some people's reports reach it.",
        size=8.8,
        color=QUIET,
    )
    return figure
