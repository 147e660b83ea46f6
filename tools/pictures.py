"""The pictures of the documentation that explain rather than show a screen.

``python -m tools.pictures docs/images`` draws them, the same ones every time.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
from matplotlib.figure import Figure

from sfumato import catalog
from sfumato.plots.style import ACCENT, GRID, INK, QUIET, SEQUENCE, TRUTH, annotate, page, quiet
from sfumato.queries import History
from sfumato.randomness import seeded
from sfumato.streams.weave.weave_fleet import collect

__all__ = ["blur_and_crowd", "main", "odds"]

DEVICES: Final = 100_000
DAYS: Final = 28
EPSILONS: Final = (0.1, 0.5, 1.0, 2.0, 4.0)


def main(folder: Path) -> None:
    """Draw all pictures into a folder."""
    pictures = {"blur.png": blur_and_crowd, "odds.png": odds}
    for name, draw in pictures.items():
        draw().savefig(folder / name)


def blur_and_crowd() -> Figure:
    """Draw what one device says of itself, and what a hundred thousand of them show."""
    task = catalog.parse(f"""
title = "Dark mode"
epsilon = 1.0
periods = {DAYS}
period = "1 day"
changes = 1
queries = "history"
decoder = "smoothed"
values = {{kind = "binary"}}
""")
    stream: Any = catalog.stream(task)
    rng = np.random.default_rng(3)
    since = rng.permutation(DEVICES) / DEVICES
    days = np.arange(1, DAYS + 1)
    share = 0.08 + 0.62 / (1 + np.exp(-(days - 12) / 2.6))
    lives = (since[:, None] < share[None, :]).astype(int)
    answers = History.of(stream, collect(stream, lives, seeded(2))).curve("on", decoder="smoothed")
    figure = page(4.3, "No device can be believed, and the crowd can")
    one, crowd = figure.add_axes((0.06, 0.19, 0.24, 0.56)), figure.add_axes((0.4, 0.19, 0.57, 0.56))
    figure.text(0.06, 0.79, "One answer each, epsilon 1", size=10.5, color=INK)
    chance = np.e / (1 + np.e)
    holds = np.array([1, 1, 0, 1, 0, 0, 1, 0])
    says = np.where(np.random.default_rng(8).random(8) < chance, holds, 1 - holds)
    for row, (truth, word) in enumerate(zip(holds, says, strict=True)):
        words = ("off", "on")
        one.text(0.0, 7 - row, f"is {words[truth]}", color=QUIET, size=10.5, va="center")
        colour = INK if truth == word else SEQUENCE[1]
        one.text(0.34, 7 - row, f"says “{words[word]}”", color=colour, size=10.5, va="center")
        if truth != word:
            one.text(0.78, 7 - row, "not so", color=colour, size=9, va="center")
    one.set_xlim(0, 1)
    one.set_ylim(-0.7, 7.7)
    one.axis("off")
    figure.text(0.4, 0.79, f"What {DEVICES:,} of them show together", size=10.5, color=INK)
    crowd.fill_between(days, 100 * answers.low, 100 * answers.high, color=ACCENT, alpha=0.22, lw=0)
    crowd.plot(days, 100 * answers.values, color=ACCENT, lw=2)
    crowd.plot(days, 100 * share, color=TRUTH, lw=1.6, ls=(0, (4, 3)))
    crowd.set_ylim(-3, 103)
    crowd.set_xlim(1, DAYS)
    crowd.text(14.5, 84, "estimate and its 95% interval", color=ACCENT, size=10)
    crowd.text(14.8, 44, "the truth, which nobody collected", color=TRUTH, size=10)
    crowd.set_xlabel("day", color=QUIET, size=9.5)
    crowd.yaxis.set_major_formatter(lambda value, _: f"{value:.0f}%")
    quiet(crowd)
    annotate(
        figure,
        "Left: each device tells the truth with probability 73%, so that no answer proves "
        "anything. Right: the share that has dark mode on, from reports that protect the whole 28 "
        "days of a device with epsilon 1.",
    )
    return figure


def odds() -> Figure:
    """Draw how sure somebody can become, by how sure they were, for several epsilons."""
    figure = page(
        4.4, "What epsilon means", "How sure somebody can be after seeing everything a device sent"
    )
    axes = figure.add_axes((0.09, 0.17, 0.6, 0.62))
    before = np.linspace(0.001, 0.999, 500)
    for colour, epsilon in zip(SEQUENCE, EPSILONS, strict=False):
        ratio = before / (1 - before) * np.exp(epsilon)
        axes.plot(100 * before, 100 * ratio / (1 + ratio), color=colour, lw=2)
    axes.plot((0, 100), (0, 100), color=GRID, lw=1.5, zorder=0)
    for row, (colour, epsilon) in enumerate(zip(SEQUENCE, EPSILONS, strict=False)):
        sure = np.ceil(100 * np.exp(epsilon) / (1 + np.exp(epsilon)))
        text = f"epsilon {epsilon:g}: from 50% to {sure:.0f}%"
        figure.text(0.72, 0.33 + 0.08 * row, text, color=colour, size=10.5)
    axes.axvline(50, color=QUIET, lw=0.8, ls=":")
    axes.set_xlabel("how sure before", color=QUIET, size=9.5)
    axes.set_ylabel("how sure after, at most", color=QUIET, size=9.5)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:.0f}%")
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 100)
    quiet(axes)
    annotate(
        figure,
        "Odds change by a factor of e^epsilon at most, whatever else somebody knows, and for ever.",
    )
    return figure


if __name__ == "__main__":
    main(Path(sys.argv[1]))
