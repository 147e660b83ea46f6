"""A chart in the terminal that sharpens while reports arrive."""

from __future__ import annotations

from typing import Final, Self

import numpy as np
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sfumato.arrays import Floats
from sfumato.cli import console, text_tables
from sfumato.core.answers import Answers
from sfumato.core.estimate import Estimate

__all__ = ["Sharpening", "Unfolding"]

_WIDTH: Final = 44
_MOST: Final = 10


class _Watched:
    """A display that is redrawn in place while it lasts, if the output is a terminal."""

    _live: Live
    _shown: bool

    def __enter__(self) -> Self:
        if self._shown:
            self._live.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._live.stop()


class Sharpening(_Watched):
    """A progress bar above one bar for each item: solid up to its interval, soft inside of it."""

    def __init__(self, description: str, total: int) -> None:
        target = console.err()
        self._bars = console.bars(target)
        self._task = self._bars.add_task(description, total=total)
        self._shown = target.is_terminal
        self._live = Live(console=target, transient=True, refresh_per_second=12)

    def update(self, estimate: Estimate) -> None:
        """Show what is known now."""
        self._bars.update(self._task, completed=estimate.n)
        if self._shown:
            self._live.update(Group(self._bars, "", _compared(estimate.answers(0.95))))


class Unfolding(_Watched):
    """A progress bar above one bar for each of the largest items, with the truth in it.

    Where nobody watches, a line for each period instead.
    """

    def __init__(self, description: str, periods: int, *, silent: bool) -> None:
        target = console.err()
        self._bars = console.bars(target)
        self._task = self._bars.add_task(description, total=periods, count=0)
        self._shown = target.is_terminal and not silent
        self._in_lines = not target.is_terminal and not silent
        self._reports = 0
        self._live = Live(self._bars, console=target, transient=True, refresh_per_second=8)

    def note(self, words: str) -> None:
        """Say something once, above the chart."""
        if self._shown:
            self._live.console.print(words)
        if self._in_lines:
            console.say(words)

    def update(self, answers: Answers, truth: Floats, period: int, reports: int) -> None:
        """Show what a period has released, and what is true."""
        self._reports += reports
        self._bars.update(self._task, completed=period, count=self._reports)
        order = np.argsort(-truth, kind="stable")[:_MOST]
        answers, truth = answers.pick(order), truth[order]
        if self._shown:
            note = Text("█ at least   ░ within the 95% interval   │ the truth", style="dim")
            self._live.update(Group(self._bars, "", _compared(answers, truth), "", note))
        if self._in_lines:
            largest = ", ".join(
                f"{text_tables.label(item)} {_in_words(value, reach)} (truth {true:.3f})"
                for item, value, reach, true in zip(
                    answers.labels[:3], answers.values, answers.reach, truth, strict=False
                )
            )
            console.say(f"Period {period}: {reports:,} reports; {largest}")


def _in_words(value: float, reach: float) -> str:
    known = np.isfinite([value, reach]).all()
    return f"{value:z.3f} ± {reach:.3f}" if known else "not known yet"


def _compared(answers: Answers, truth: Floats | None = None) -> Table:
    """Return a bar for each item: solid up to its interval, soft inside of it, a mark for truth."""
    full = max(0.3, float(np.nanmax(answers.high, initial=0.0)))
    if truth is not None:
        full = max(full, float(truth.max()))
    table = text_tables.table(show_header=False)
    table.add_column(justify="right")
    for index, item in enumerate(answers.labels):
        known = np.isfinite([answers.low[index], answers.high[index]]).all()
        ends = [answers.low[index], answers.high[index]] if known else [0.0, full]
        low, high = np.clip(np.round(_WIDTH * np.array(ends) / full), 0, _WIDTH).astype(int)
        cells = ["█"] * low + ["░"] * (high - low) + [" "] * (_WIDTH - high)
        if truth is not None:
            cells[min(int(_WIDTH * truth[index] / full), _WIDTH - 1)] = "│"
        bar = Text.assemble(*((cell, "bold yellow" if cell == "│" else "blue") for cell in cells))
        value = _in_words(answers.values[index], answers.reach[index])
        table.add_row(Text(text_tables.label(item)), bar, value)
    return table
