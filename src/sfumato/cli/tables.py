"""Rows as tables with aligned numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from sfumato.cli.rows import Rows
from sfumato.core.quantity import decimals, fixed

__all__ = ["facts", "label", "rows_table", "table"]


def label(item: Any) -> str:
    r"""Return an item for a terminal, whatever characters somebody put into it.

    Examples
    --------
    >>> label("cat"), label("\x1b[31m")
    ('cat', "'\\x1b[31m'")

    """
    text = str(item)
    return text if text.isprintable() and text else repr(text)


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


def rows_table(rows: Rows, level: float, truth: NDArray[np.float64] | None = None) -> Table:
    """Return items, `estimate ± reach` and intervals; with the truth, also whether it is inside."""
    places = decimals(float(np.median(rows.reach)))
    wide = places + 3
    shown = table()
    shown.add_column("item", overflow="fold")
    shown.add_column("estimate", justify="right")
    shown.add_column(f"{100 * level:.10g}% interval")
    if truth is not None:
        shown.add_column("truth", justify="right")
        shown.add_column("inside?")
    for index, item in enumerate(rows.items):
        low, high = rows.low[index], rows.high[index]
        cells: list[str | Text] = [
            Text(label(item)),
            f"{fixed(rows.values[index], places)} ± {fixed(rows.reach[index], places)}",
            f"{fixed(low, places):>{wide}} to {fixed(high, places):>{wide}}",
        ]
        if truth is not None:
            inside = low <= truth[index] <= high
            cells.append(fixed(truth[index], places))
            cells.append("yes" if inside else Text("no", style="bold yellow"))
        shown.add_row(*cells)
    return shown
