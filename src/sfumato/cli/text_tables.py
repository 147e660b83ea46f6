"""Answers as tables with aligned numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table
from rich.text import Text

from sfumato.arrays import Floats
from sfumato.core.answers import Answers
from sfumato.core.domain import printable as label

__all__ = ["answers_table", "facts", "grid", "label", "listing", "table"]


def table(**options: Any) -> Table:
    """Return a table without rules, to which columns are added."""
    return Table(box=None, pad_edge=False, padding=(0, 3, 0, 0), header_style="dim", **options)


def grid(headings: Iterable[str], rows: Iterable[Iterable[Any]]) -> Table:
    """Return a table of rows; a heading that begins with > stands over numbers, aligned right.

    Cells are shown as they are, whatever somebody's labels look like.
    """
    shown = table()
    for heading in headings:
        words = heading.removeprefix(">")
        shown.add_column(
            Text(words), overflow="fold", justify="right" if words != heading else "left"
        )
    for row in rows:
        shown.add_row(*(Text(cell) if isinstance(cell, str) else cell for cell in row))
    return shown


def listing(
    records: Sequence[Any], columns: Mapping[str, str | Callable[[Any], str]], best: Any = None
) -> Table:
    """Return a table with a row for each record, and the best one's name in bold.

    Parameters
    ----------
    records
        Mappings, or objects with attributes.
    columns
        For each heading what is written below it: a format such as "{mse:.3g}", which is filled in
        from the record, or a function of the record.
    best
        One of the records.

    """
    rows = []
    for record in records:
        known = record if isinstance(record, Mapping) else vars(record)
        cells = [
            cell.format_map(known) if isinstance(cell, str) else cell(record)
            for cell in columns.values()
        ]
        name = Text(cells[0], style="bold" if best is not None and record is best else "")
        rows.append((name, *cells[1:]))
    return grid(columns, rows)


def facts(pairs: dict[str, str]) -> Table:
    """Return names and values in two columns."""
    shown = table(show_header=False)
    shown.add_column(style="dim")
    shown.add_column(overflow="fold")
    for name, value in pairs.items():
        shown.add_row(name, Text(value))
    return shown


def answers_table(
    answers: Answers,
    truth: Floats | None = None,
    further: Mapping[str, Sequence[str]] | None = None,
) -> Table:
    """Return labels, `value ± reach` and intervals; with the truth, also whether it is inside.

    ``further`` are columns of text that stand behind these, by heading.
    """
    shown = table()
    shown.add_column(answers.what, overflow="fold")
    shown.add_column("value", justify="right")
    shown.add_column(f"{answers.percent} interval")
    if truth is not None:
        shown.add_column("truth", justify="right")
        shown.add_column("inside?")
        held = answers.holds(truth)
    others = {} if further is None else further
    for heading in others:
        shown.add_column(Text(heading))
    digits = answers.decimals
    for index, (item, row) in enumerate(zip(answers.labels, answers.printed(), strict=True)):
        cells: list[str | Text] = [
            Text(label(item)),
            f"{row.value} ± {row.reach}" if row.reach else row.value,
            (f"{row.low} to {row.high}" if row.high.strip() else "")
            + (f" (raw {row.raw})" if row.raw else ""),
        ]
        if truth is not None:
            cells.append(answers.quantity.text(truth[index], digits))
            cells.append("yes" if held[index] else Text("no", style="bold yellow"))
        cells += [Text(column[index]) for column in others.values()]
        shown.add_row(*cells)
    return shown
