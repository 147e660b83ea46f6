"""Lines over an epsilon or a number of people, each named at its end."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import Final

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from sfumato.arrays import Floats
from sfumato.plots import style

__all__ = ["bounds_over", "curves"]


_LOWEST, _HIGHEST = 0.97, 3.0  # multiples of the least error
_STYLES: Final = {"rigorous": "-", "published": (0, (5, 2)), "printed": (0, (1, 2))}


def curves(
    across: Floats,
    values: Mapping[str, list[float]],
    *,
    title: str,
    subtitle: str,
    label_across: str,
) -> Figure:
    """Return each error as a multiple of the least one at the same point.

    Parameters
    ----------
    across
        The points, all above 0, in rising order.
    values
        The errors at these points, by the name of their line.
    title, subtitle, label_across
        The words above the picture and below its axis.

    """
    figure = style.page(5.0, title, subtitle)
    axes = figure.add_axes((0.07, 0.125, 0.66, 0.675))
    least = np.min(list(values.values()), axis=0)
    ratios = {name: np.asarray(line) / least for name, line in values.items()}
    # Lines that coincide stay visible: the thinner lies on the wider.
    widths = np.linspace(4.4, 1.6, len(values))
    colors = dict(zip(ratios, cycle(style.SEQUENCE), strict=False))
    for width, (name, line) in zip(widths, ratios.items(), strict=True):
        axes.plot(across, line, color=colors[name], linewidth=width, solid_capstyle="butt")
    axes.set(xscale="log", xlim=(across[0], across[-1]), ylim=(_LOWEST, _HIGHEST))
    ends = np.array([line[-1] for line in ratios.values()])
    heights = (np.minimum(ends, _HIGHEST) - _LOWEST) / (_HIGHEST - _LOWEST)
    named = {
        name if end <= _HIGHEST else f"{name} (above)": color
        for (name, color), end in zip(colors.items(), ends, strict=True)
    }
    style.name_lines(axes, named, heights, 10.5)
    usual = [tick for tick in (0.1, 0.2, 0.5, 1, 2, 5) if across[0] <= tick <= across[-1]]
    ticks = usual if len(across) > 10 else across.tolist()  # few points are all named
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    style.name_across(axes, label_across)
    style.quiet(axes)
    return figure


def bounds_over(
    points: Floats,
    lines: Mapping[str, list[float]],
    lower: Floats,
    status: Mapping[str, str],
    *,
    title: str,
    subtitle: str,
    across: str,
) -> Figure:
    """Return bounds of the shuffle model, with what can really happen below them.

    Parameters
    ----------
    points
        The numbers of people, or the epsilons, that the bounds are taken at.
    lines
        Each bound at these points, by its name.
    lower
        What some people's reports reach at these points.
    status
        Whether each bound is rigorous, published or printed; rigorous if nothing is said.
    title, subtitle, across
        The words above the picture and below its axis.

    """
    figure = style.page(5.4, title, subtitle)
    axes = figure.add_axes((0.085, 0.165, 0.655, 0.645))
    kept = {name: np.asarray(line) for name, line in lines.items() if np.isfinite(line).any()}
    sound = [name for name in kept if status.get(name) != "printed"]
    colors = dict.fromkeys(kept, style.QUIET) | dict(
        zip(sound, cycle(style.SEQUENCE), strict=False)
    )
    known = np.isfinite(lower) & (lower > 0)
    drawn = np.concatenate([lower[known], *kept.values()])
    bottom, top = float(np.nanmin(drawn)) / 1.5, float(np.nanmax(drawn)) * 1.5
    if known.any():
        axes.fill_between(
            points[known], bottom, lower[known], color=style.GRID, linewidth=0, zorder=0, alpha=0.8
        )
    for name, line in kept.items():
        dashes = _STYLES[status.get(name, "rigorous")]
        axes.plot(points, line, color=colors[name], linestyle=dashes, linewidth=2)
    axes.set(xscale="log", yscale="log", xlim=(points[0], points[-1]), ylim=(bottom, top))
    ends = np.array([line[np.isfinite(line)][-1] for line in kept.values()])
    style.name_lines(axes, colors, np.log(ends / bottom) / np.log(top / bottom), 9.5)
    style.name_across(axes, across)
    style.quiet(axes)
    style.annotate(
        figure,
        "Solid: proven. Dashed: published theorems. Dotted: as printed, no guarantee. "
        "Grey: not possible, some people's reports reach it.",
    )
    return figure
