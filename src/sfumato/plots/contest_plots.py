"""Methods for endless streams as a picture: one curve, everybody's errors, and who finds events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from sfumato.lab.contest import MethodScore, livest
from sfumato.plots import style
from sfumato.plots.style import ACCENT, SEQUENCE

__all__ = ["contest"]

OURS: Final = "filtered"
SHOWN: Final = {"lpa": SEQUENCE[4], "lpu": SEQUENCE[2], "lsp": SEQUENCE[3], "lba": SEQUENCE[5]}
"""Whose ROC curves are drawn beside ours; of them the first that is there also has its curve."""


def contest(scores: Mapping[str, Sequence[MethodScore]], epsilon: float, window: int) -> Figure:
    """Return one picture of all streams: the curve of the first, all errors, and one ROC.

    Parameters
    ----------
    scores
        How each method did, by the name of the stream.
    epsilon, window
        What was promised: so much epsilon in so many periods.

    """
    first, rows = next(iter(scores.items()))
    devices = rows[0].run.devices
    figure = style.page(
        8.4,
        "Endless streams, method by method",
        f"{first}: {devices:,} devices, epsilon {epsilon:g} in any {window} periods",
    )
    _draw_curve(figure.add_axes((0.08, 0.585, 0.89, 0.29)), rows)
    _draw_errors(figure.add_axes((0.14, 0.08, 0.45, 0.4)), scores)
    _draw_events(figure.add_axes((0.68, 0.08, 0.29, 0.4)), rows)
    for axes in figure.axes:
        style.quiet(axes, size=9, pad=4)
    return figure


def _draw_curve(axes: Axes, rows: Sequence[MethodScore]) -> None:
    by_name = {row.method: row for row in rows}
    truth = rows[0].run.truth
    index = int(np.argmax(livest(truth).weights))
    across = np.arange(1, len(truth) + 1)
    rival = next((name for name in SHOWN if name in by_name), None)
    if rival is not None:
        values = by_name[rival].run.values[:, index]
        axes.step(across, values, where="mid", color=SHOWN[rival], linewidth=0.9, label=rival)
    if OURS in by_name:
        run = by_name[OURS].run
        low, high = (end[:, index] for end in run.interval())
        axes.fill_between(across, low, high, color=f"{ACCENT}38", linewidth=0)
        axes.plot(across, run.values[:, index], color=ACCENT, linewidth=1.4, label=OURS)
    shown = truth[:, index]
    axes.plot(across, shown, color=style.TRUTH, linewidth=1.1, label="truth")
    margin = 0.75 * (shown.max() - shown.min())
    axes.set_ylim(shown.min() - margin, shown.max() + margin)
    axes.set_xlim(1, len(truth))
    if rows[0].run.stream.labels != ("mean",):
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.4g}%"))
    style.name_across(axes, "period")
    axes.legend(
        loc="lower left", bbox_to_anchor=(-0.01, 0.98), ncols=3, fontsize=9.5, **style.LEGEND
    )


def _draw_errors(axes: Axes, scores: Mapping[str, Sequence[MethodScore]]) -> None:
    """Draw the errors of all methods on all streams, the best method at the top."""
    names = [row.method for row in next(iter(scores.values()))]
    mean = {
        name: np.mean(
            [np.log(row.mse) for rows in scores.values() for row in rows if row.method == name]
        )
        for name in names
    }
    order = sorted(names, key=lambda name: float(mean[name]))
    for color, (stream, rows) in zip(cycle(SEQUENCE), scores.items(), strict=False):
        errors = {row.method: row.mse for row in rows}
        least = errors.get(OURS, min(errors.values()))
        across = [errors[name] / least for name in order]
        axes.plot(
            across, range(len(order)), "o", color=color, markersize=5, alpha=0.85, label=stream
        )
    axes.axvline(1, color=style.QUIET, linewidth=0.9)
    axes.set_xscale("log")
    axes.set_yticks(range(len(order)), order)
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    style.name_across(axes, "mean squared error, in multiples of ours")
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.02, 0.98),
        ncols=5,
        fontsize=9,
        handletextpad=0.1,
        columnspacing=1.0,
        **style.LEGEND,
    )


def _draw_events(axes: Axes, rows: Sequence[MethodScore]) -> None:
    """Draw how many events each method finds, and with how many false alarms."""
    chosen = [row for row in rows if row.method in (OURS, *SHOWN) and np.isfinite(row.auc)]
    chosen.sort(key=lambda row: -row.auc)
    for row in chosen:
        axes.plot(
            row.curve.false,
            row.curve.true,
            color=SHOWN.get(row.method, ACCENT),
            linewidth=2.0 if row.method == OURS else 1.1,
            label=f"{row.method} {row.auc:.3f}",
        )
    axes.plot([0, 1], [0, 1], color=style.GRID, linewidth=1.2)
    axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
    style.name_across(axes, "false alarms")
    words = "events found, and area under the curve"
    axes.set_title(words, loc="left", size=9.5, color=style.QUIET)
    if chosen:
        axes.legend(loc="lower right", fontsize=9, **style.LEGEND)
