"""The numbers that the papers print, read from the tables beside the experiments."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from sfumato.lab.experiment import Cell

__all__ = ["PrintedNumber", "printed_numbers"]


@dataclass(frozen=True)
class PrintedNumber:
    """One number of a printed table: the fields of its cell, its metric, and its digits.

    Examples
    --------
    >>> number = PrintedNumber({"epsilon": 0.001}, "TVE", "4.0e+3")
    >>> number.value, number.half_unit
    (4000.0, 50.0)

    """

    cell: Cell
    metric: str
    digits: str

    @property
    def readable(self) -> bool:
        """Whether our copy of the paper shows it."""
        return self.digits != "?"

    @property
    def value(self) -> float:
        """The number."""
        return float(self.digits)

    @property
    def half_unit(self) -> float:
        """Half a unit of its last digit: how far rounding can have moved it."""
        mantissa, _, power = self.digits.partition("e")
        decimals = len(mantissa.partition(".")[2])
        return 0.5 * 10.0 ** (int(power or 0) - decimals)


@cache
def _tables(paper: str) -> Mapping[str, Any]:
    folder = files("sfumato.lab.papers") / "numbers"
    file = folder / f"{paper}.toml"
    return tomllib.loads(file.read_text("utf-8")) if file.is_file() else {}


def printed_numbers(name: str) -> list[PrintedNumber]:
    """Return all numbers of a table; none for a figure, whose numbers only its picture shows."""
    paper, _, table = name.partition("/")
    return [*_numbers(_tables(paper).get(table, {}))]


def _numbers(table: Mapping[str, Any]) -> Iterator[PrintedNumber]:
    for row in table.get("rows", ()):
        words = (*table["metrics"], "at")
        fields = {key: value for key, value in row.items() if key not in words}
        for metric in table["metrics"]:
            printed = row.get(metric, "").split()
            for index, digits in zip(row.get("at", table["at"]), printed, strict=bool(printed)):
                yield PrintedNumber(fields | {table["across"]: index}, metric, digits)
