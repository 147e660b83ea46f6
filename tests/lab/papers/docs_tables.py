"""The tables and sentences of README and the docs, with the numbers in them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

TOP: Final = Path(__file__).parents[3]
DOCS: Final = TOP / "docs"
NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
Row = Mapping[str, str]
Cell = Mapping[str, Any]


@dataclass(frozen=True)
class Table:
    """A table of a page: its rows by their headings, and the line of text before it."""

    page: str
    headings: tuple[str, ...]
    rows: tuple[Row, ...]
    before: str

    @property
    def numbers(self) -> int:
        """How many numbers stand in it."""
        return sum(len(numbers(cell)) for row in self.rows for cell in row.values())


def numbers(cell: str) -> list[str]:
    """Return the digits of each number in a cell: of powers of ten, the power."""
    plain = re.sub(r"`[^`]*`|\[[^]]*\]\([^)]*\)", "", cell).replace("10^", "")
    return NUMBER.findall(re.sub(r"(?<=\d),(?=\d{3})", "", plain))


def _cells(line: str) -> list[str]:
    return [cell.replace("*", "").strip() for cell in line.strip().strip("|").split("|")]


def tables(path: Path, top: Path = TOP) -> Iterator[Table]:
    """Yield all tables of a page."""
    lines, before = path.read_text("utf-8").splitlines(), ""
    page, index = str(path.relative_to(top)), 0
    while index < len(lines):
        if lines[index].startswith("|") and lines[index + 1].startswith("|--"):
            headings = tuple(_cells(lines[index]))
            index += 2
            rows = []
            while index < len(lines) and lines[index].startswith("|"):
                rows.append(dict(zip(headings, _cells(lines[index]), strict=True)))
                index += 1
            yield Table(page, headings, tuple(rows), before)
            continue
        before = lines[index].strip() or before
        index += 1


Numbers = Iterator[tuple[Cell, str, str]]
"""The cell, the metric and the digits of some numbers."""


@dataclass(frozen=True)
class Shown:
    """A table whose numbers an experiment recomputes.

    Parameters
    ----------
    page, headings
        Where the table stands, and its first headings.
    read
        A function of a row and of the line before the table that yields the row's numbers.

    """

    page: str
    headings: tuple[str, ...]
    read: Callable[[Row, str], Numbers]

    def tables(self) -> Iterator[Table]:
        """Yield the tables of the page that begin with the headings."""
        for table in tables(TOP / self.page):
            if table.headings[: len(self.headings)] == self.headings:
                yield table

    def numbers(self) -> Numbers:
        """Yield all numbers that the experiment recomputes."""
        for table in self.tables():
            for row in table.rows:
                yield from self.read(row, table.before)


@dataclass(frozen=True)
class Said:
    """A sentence whose numbers an experiment recomputes: a pattern, and what its groups are."""

    page: str
    pattern: str
    groups: tuple[tuple[Cell, str], ...]

    def numbers(self) -> Numbers:
        """Yield the numbers of the sentence."""
        text = " ".join((TOP / self.page).read_text("utf-8").split())
        (found,) = re.finditer(self.pattern, text)
        for (cell, metric), digits in zip(self.groups, found.groups(), strict=True):
            yield cell, metric, digits


def columns_of(
    cell: Callable[[Row, str], Cell], columns: Mapping[str, tuple[str, ...]]
) -> Callable[[Row, str], Numbers]:
    """Return a reader of rows: the metrics of the numbers in each column, in order.

    Rows without an epsilon of their own are about all others.
    """

    def read(row: Row, before: str) -> Numbers:
        if row.get("epsilon") == "":
            return
        for heading, metrics in columns.items():
            found = numbers(row[heading])
            for metric, digits in zip(metrics, found, strict=bool(found)):
                yield cell(row, before), metric, digits

    return read
