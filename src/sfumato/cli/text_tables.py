"""Answers as tables with aligned numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from sfumato.core.answers import Answers
from sfumato.core.domain import printable as label

__all__ = ["answers_table", "facts", "label", "table"]


def table(**options: Any) -> Table:
    """Return a table without rules, to which columns are added."""
    return Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim", **options)


def facts(pairs: dict[str, str]) -> Table:
    """Return names and values in two columns."""
    shown = table(show_header=False)
    shown.add_column(style="dim")
    shown.add_column(overflow="fold")
    for name, value in pairs.items():
        shown.add_row(name, Text(value))
    return shown


def answers_table(answers: Answers, truth: NDArray[np.float64] | None = None) -> Table:
    """Return labels, `value ± reach` and intervals; with the truth, also whether it is inside."""
    shown = table()
    shown.add_column(answers.what, overflow="fold")
    shown.add_column("value", justify="right")
    shown.add_column(f"{answers.percent} interval")
    if truth is not None:
        shown.add_column("truth", justify="right")
        shown.add_column("inside?")
    places = answers.decimals
    for index, (item, row) in enumerate(zip(answers.labels, answers.printed(), strict=True)):
        cells: list[str | Text] = [
            Text(label(item)),
            f"{row.value} ± {row.reach}" if row.reach else row.value,
            f"{row.low} to {row.high}" if row.high.strip() else "",
        ]
        if truth is not None:
            inside = answers.low[index] <= truth[index] <= answers.high[index]
            cells.append(answers.quantity.text(truth[index], places))
            cells.append("yes" if inside else Text("no", style="bold yellow"))
        shown.add_row(*cells)
    return shown
