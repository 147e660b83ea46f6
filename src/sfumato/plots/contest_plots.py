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
from sfumato.plots.answer_plots import ACCENT, GRID, INK, QUIET, SEQUENCE, TRUTH

__all__ = ["contest"]

OURS: Final = "filtered"
SHOWN: Final = {"lpa": SEQUENCE[4], "lpu": SEQUENCE[2], "lsp": SEQUENCE[3], "lba": SEQUENCE[5]}
"""Whose ROC curves are drawn beside ours; of them the first that is there also has its curve."""


def contest(found: Mapping[str, Sequence[MethodScore]], epsilon: float, window: int) -> Figure:
    """Return one picture of all streams: the first one's curve, all errors, one ROC."""
    first, rows = next(iter(found.items()))
    figure = Figure(figsize=(8.6, 8.4), dpi=200, facecolor="white")
    _curve(figure.add_axes((0.08, 0.585, 0.89, 0.29)), rows)
    _errors(figure.add_axes((0.14, 0.08, 0.45, 0.4)), found)
    _events(figure.add_axes((0.68, 0.08, 0.29, 0.4)), rows)
    figure.text(0.03, 0.955, "Endless streams, method by method", size=16, weight="bold", color=INK)
    devices = rows[0].run.devices
    figure.text(
        0.03,
        0.92,
        f"{first}: {devices:,} devices, epsilon {epsilon:g} in any {window} periods",
        size=11.5,
        color=INK,
    )
    return figure


def _curve(axes: Axes, rows: Sequence[MethodScore]) -> None:
    by_name = {row.method: row for row in rows}
    truth = rows[0].run.truth
    watch = livest(truth)
    place = int(np.argmax(watch.weights))
    across = np.arange(1, len(truth) + 1)
    rival = next((name for name in SHOWN if name in by_name), None)
    if rival is not None:
        axes.step(
            across,
            by_name[rival].run.values[:, place],
            where="mid",
            color=SHOWN[rival],
            linewidth=0.9,
            label=rival,
        )
    if OURS in by_name:
        low, high = by_name[OURS].run.interval()
        axes.fill_between(across, low[:, place], high[:, place], color=f"{ACCENT}38", linewidth=0)
        axes.plot(
            across, by_name[OURS].run.values[:, place], color=ACCENT, linewidth=1.4, label=OURS
        )
    axes.plot(across, truth[:, place], color=TRUTH, linewidth=1.1, label="truth")
    reach = truth[:, place].max() - truth[:, place].min()
    axes.set_ylim(truth[:, place].min() - 0.75 * reach, truth[:, place].max() + 0.75 * reach)
    axes.set_xlim(1, len(truth))
    if rows[0].run.stream.labels != ("mean",):
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.4g}%"))
    axes.set_xlabel("period", color=QUIET, size=9.5, labelpad=3)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.01, 0.98),
        ncols=3,
        frameon=False,
        fontsize=9.5,
        labelcolor=QUIET,
    )
    _quiet(axes)


def _errors(axes: Axes, found: Mapping[str, Sequence[MethodScore]]) -> None:
    names = [row.method for row in next(iter(found.values()))]
    mean = {
        name: np.mean(
            [np.log(row.mse) for rows in found.values() for row in rows if row.method == name]
        )
        for name in names
    }
    order = sorted(names, key=lambda name: float(mean[name]))
    for color, (stream, rows) in zip(cycle(SEQUENCE), found.items(), strict=False):
        errors = {row.method: row.mse for row in rows}
        least = errors.get(OURS, min(errors.values()))
        axes.plot(
            [errors[name] / least for name in order],
            range(len(order)),
            "o",
            color=color,
            markersize=5,
            alpha=0.85,
            label=stream,
        )
    axes.axvline(1, color=QUIET, linewidth=0.9)
    axes.set_xscale("log")
    axes.set_yticks(range(len(order)), order)
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    axes.set_xlabel("mean squared error, in multiples of ours", color=QUIET, size=9.5, labelpad=3)
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.02, 0.98),
        ncols=5,
        frameon=False,
        fontsize=9,
        labelcolor=QUIET,
        handletextpad=0.1,
        columnspacing=1.0,
    )
    _quiet(axes)


def _events(axes: Axes, rows: Sequence[MethodScore]) -> None:
    chosen = [row for row in rows if row.method in (OURS, *SHOWN) and np.isfinite(row.auc)]
    chosen.sort(key=lambda row: -row.auc)
    for row in chosen:
        color = SHOWN.get(row.method, ACCENT)
        axes.plot(
            row.curve.false,
            row.curve.true,
            color=color,
            linewidth=2.0 if row.method == OURS else 1.1,
            label=f"{row.method} {row.auc:.3f}",
        )
    axes.plot([0, 1], [0, 1], color=GRID, linewidth=1.2)
    axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
    axes.set_xlabel("false alarms", color=QUIET, size=9.5, labelpad=3)
    axes.set_title("events found, and area under the curve", loc="left", size=9.5, color=QUIET)
    if chosen:
        axes.legend(loc="lower right", frameon=False, fontsize=9, labelcolor=QUIET)
    _quiet(axes)


def _quiet(axes: Axes) -> None:
    axes.tick_params(which="both", length=0, labelcolor=QUIET, labelsize=9, pad=4)
    axes.grid(color=GRID, linewidth=0.9)
    axes.set_axisbelow(True)
    axes.spines[:].set_visible(False)
