"""Several answers for each key, as one table: how many hold it, and what its values are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from sfumato.cli import console, text_tables
from sfumato.cli.command import Parts
from sfumato.core.answers import Answers
from sfumato.mechanisms.sparse import KeyValueEstimate

__all__ = ["Named", "answered", "cells", "doubted", "first", "pick", "text"]

Named = dict[str, Answers]
"""Answers for the same keys, each under its name; all in the same order of keys."""


def answered(estimate: KeyValueEstimate, level: float, *, band: bool = False) -> Named:
    """Return all answers, the most frequent keys first."""
    order = np.argsort(-estimate.frequency.values, kind="stable")
    return pick(estimate.answers(level, band=band), order)


def pick(named: Named, order: np.ndarray | slice) -> Named:
    """Return the answers for some of the keys, in this order."""
    return {name: answers.pick(order) for name, answers in named.items()}


def first(named: Named) -> Answers:
    """Return the answer that keys are sorted by."""
    return next(iter(named.values()))


def doubted(named: Named, estimate: KeyValueEstimate) -> Named:
    """Return the same without means of holders whose intervals rule nothing out."""
    span, means = estimate.conditional_mean, named["conditional_mean"]
    nothing = (means.low <= span.low) & (means.high >= span.high)
    known = replace(means, values=np.where(nothing, np.nan, means.values))
    return named | {"conditional_mean": known}


def text(named: Named, estimate: KeyValueEstimate) -> Parts:
    """Yield a table of the answers; a narrow terminal gets it without the value per person."""
    out, shown = console.out(), doubted(named, estimate)
    boundless = out.options.update(max_width=1 << 16)
    if Measurement.get(out, boundless, table(shown)).maximum > out.width:
        del shown["mean"]
    yield table(shown)
    if "mean" not in shown:
        yield "\nThe value per person needs a wider terminal, or --answer mean."
    if np.isnan(shown["conditional_mean"].values).any():
        yield "\n?  too few seem to hold it to say anything of its values."


def cells(answers: Answers) -> list[str]:
    """Return values and intervals as aligned words; a question mark where nothing is known."""
    rows = answers.printed()
    wide = max(len(row.high) for row in rows)
    return [f"{row.value if row.reach else '?':>{wide}} ({row.low} to {row.high})" for row in rows]


def table(named: Named) -> Table:
    """Return keys and, for each answer, a value and its interval."""
    shown = text_tables.table()
    shown.add_column("key", overflow="fold")
    for answers in named.values():
        heading = f"{answers.quantity.noun.lower()}\n({answers.percent} interval)"
        shown.add_column(heading, no_wrap=True)
    for key, *row in zip(first(named).labels, *map(cells, named.values()), strict=True):
        shown.add_row(Text(text_tables.label(key)), *row)
    return shown
