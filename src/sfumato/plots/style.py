"""What all pictures share: colours, a page, quiet axes, soft bands, and names that stay apart."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from sfumato.arrays import Array, Floats

__all__ = [
    "ACCENT",
    "GRID",
    "INK",
    "LEGEND",
    "QUIET",
    "SEQUENCE",
    "TRUTH",
    "annotate",
    "apart",
    "estimate_keys",
    "name_across",
    "name_lines",
    "page",
    "quiet",
    "soft_band",
]


# Okabe and Ito's colours, which every kind of eye tells apart, for up to eight lines.
SEQUENCE: Final = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7"),
    *("#E69F00", "#56B4E9", "#6b6b00", "#000000"),
)
ACCENT, TRUTH = SEQUENCE[:2]
INK: Final = "#1f2328"
QUIET: Final = "#59636e"
GRID: Final = "#e9ebee"
LEGEND: Final[dict[str, Any]] = {"frameon": False, "labelcolor": QUIET}
"""How every legend looks."""
_WIDTH: Final = 8.6  # inches
_FITTING: Final = 62  # letters of a title in its full size


def page(height: float, title: str, subtitle: str = "", *, dpi: int = 200) -> Figure:
    """Return an empty page of a height in inches, with its title."""
    figure = Figure(figsize=(_WIDTH, height), dpi=dpi, facecolor="white")
    size = min(16.0, 16.0 * _FITTING / len(title))
    figure.text(0.03, 1 - 0.41 / height, title, size=size, weight="bold", color=INK)
    figure.text(0.03, 1 - 0.69 / height, subtitle, size=11.5, color=INK)
    return figure


def annotate(figure: Figure, note: str) -> None:
    """Write a note at the foot of a page."""
    below = 0.14 / figure.get_figheight()
    figure.text(0.03, below, textwrap.fill(note, 132), size=8.8, color=QUIET, linespacing=1.5)


def quiet(axes: Axes, *, size: float = 9.5, pad: float = 5) -> None:
    """Leave of axes no more than numbers of a size and a light grid."""
    axes.tick_params(which="both", length=0, labelcolor=QUIET, labelsize=size, pad=pad)
    axes.grid(color=GRID, linewidth=0.9)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)


def name_across(axes: Axes, name: str) -> None:
    """Say what the horizontal axis shows."""
    axes.set_xlabel(name, color=QUIET, size=9.5, labelpad=4)


def soft_band(axes: Axes, across: Array, values: Floats, low: Floats, high: Floats) -> None:
    """Draw values inside of their intervals, densest at the values: the sfumato."""
    for part in np.linspace(1, 0.05, 20):
        axes.fill_between(
            across,
            values - part * (values - low),
            values + part * (high - values),
            color=ACCENT,
            alpha=0.035,
            linewidth=0,
        )
    axes.plot(across, values, color=ACCENT, linewidth=1.5)


def estimate_keys(percent: str, estimate: Line2D, truth: Line2D | None) -> list[Line2D | Patch]:
    """Return what a legend shows of estimates, their intervals and, if it is known, the truth."""
    estimate.set(color=ACCENT, label="estimate")
    blur = Patch(facecolor=f"{ACCENT}60", edgecolor="none", label=f"{percent} interval")
    if truth is None:
        return [estimate, blur]
    truth.set(color=TRUTH, label="truth")
    return [estimate, blur, truth]


def name_lines(axes: Axes, colors: Mapping[str, str], heights: Floats, size: float) -> None:
    """Write the names of lines beside their ends, whose heights are shares of the axes."""
    for (name, color), height in zip(colors.items(), apart(heights), strict=True):
        axes.annotate(
            name.replace("_", " "),
            (1.02, height),
            xycoords="axes fraction",
            color=color,
            size=size,
            va="center",
        )


def apart(wanted: Floats) -> list[float]:
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
