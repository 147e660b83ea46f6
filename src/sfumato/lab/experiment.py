"""One experiment: the cells of a table or figure, what is measured there, and what was printed.

An experiment is one frozen object in one file below ``lab/papers``. Its cells are plain data, so
that a cell can be named, cached and measured in another process. What a paper prints about a cell
stands in a table of numbers beside the experiments; what it says in words about many cells at once
is a :class:`Statement`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

__all__ = [
    "Cell",
    "Drawing",
    "Erratum",
    "Experiment",
    "Measured",
    "Results",
    "Setting",
    "Statement",
    "cell_key",
    "grid",
]

Plain = str | int | float | bool
Cell = Mapping[str, Plain]
"""Where something is measured: the names and values of all that was varied or fixed there."""

SIMULATED: Final = ", simulated"
"""What a metric's name ends with if it was simulated beside an exact one."""


def cell_key(cell: Cell) -> str:
    """Return the text by which a cell is known: its fields in order, as JSON.

    Examples
    --------
    >>> cell_key({"epsilon": 1.0, "devices": 100})
    '{"devices": 100, "epsilon": 1.0}'

    """
    return json.dumps(dict(cell), sort_keys=True)


def grid(**fields: Plain | Iterable[Plain]) -> list[Cell]:
    """Return a cell for each combination of the fields' values.

    Examples
    --------
    >>> [cell_key(cell) for cell in grid(n=10, epsilon=(1.0, 2.0))]
    ['{"epsilon": 1.0, "n": 10}', '{"epsilon": 2.0, "n": 10}']

    """
    cells: list[dict[str, Plain]] = [{}]
    for name, values in fields.items():
        listed = [values] if isinstance(values, (str, int, float)) else [*values]
        cells = [cell | {name: value} for cell in cells for value in listed]
    return [*cells]


@dataclass(frozen=True)
class Measured:
    """A number and its standard error, which is 0 for exact figures."""

    value: float
    error: float = 0.0


@dataclass(frozen=True)
class Setting:
    """How to measure.

    Parameters
    ----------
    quick
        Whether to take fewer cells and repetitions, for all experiments in minutes.
    seed
        The seed of all coins; every cell has its own.
    folder
        The folder with the papers' own files; made-up data that resembles them if there is none.

    """

    quick: bool = True
    seed: int = 1
    folder: str | None = None

    def coins(self, cell: Cell) -> int:
        """Return the seed of a cell's own coins."""
        text = f"{self.seed} {cell_key(cell)}"
        return int.from_bytes(sha256(text.encode()).digest()[:4], "big")


@dataclass(frozen=True)
class Results:
    """What was measured in each cell of an experiment."""

    cells: tuple[tuple[Cell, Mapping[str, Measured]], ...]

    def where(self, **fields: Plain) -> Iterator[tuple[Cell, Mapping[str, Measured]]]:
        """Yield the cells that have these fields."""
        for cell, measured in self.cells:
            if all(name in cell and cell[name] == value for name, value in fields.items()):
                yield cell, measured

    def value(self, metric: str, **fields: Plain) -> float:
        """Return a metric of the only cell that has these fields."""
        (measured,) = (measured for _, measured in self.where(**fields))
        return measured[metric].value

    def series(self, metric: str, across: str, **fields: Plain) -> dict[Any, float]:
        """Return a metric of all cells with these fields, by the value of one more field."""
        return {
            cell[across]: measured[metric].value
            for cell, measured in self.where(**fields)
            if metric in measured
        }

    def ratios(
        self, metric: str, field: str, above: Plain, below: Plain, **fields: Plain
    ) -> dict[str, float]:
        """Return one member's metric over another's, in every cell that both have."""
        pairs: dict[str, dict[Plain, float]] = {}
        for cell, measured in self.where(**fields):
            if cell.get(field) in (above, below) and metric in measured:
                rest = cell_key({name: value for name, value in cell.items() if name != field})
                pairs.setdefault(rest, {})[cell[field]] = measured[metric].value
        return {
            rest: pair[above] / pair[below]
            for rest, pair in pairs.items()
            if above in pair and below in pair
        }

    def choices(self, field: str) -> list[Any]:
        """Return the different values of a field, in order of appearance."""
        return [*dict.fromkeys(cell[field] for cell, _ in self.cells if field in cell)]


@dataclass(frozen=True)
class Erratum:
    """A correction of what a caption says, as other values of a cell's fields.

    A printed number that does not reproduce as its caption says is explained if it does with these
    values: so an explanation predicts the sign and the size of a difference.

    Parameters
    ----------
    why
        The correction in one sentence.
    fields
        The fields that were different, with their values.
    only
        The fields and values of the cells that it is about; all if empty.

    """

    why: str
    fields: Cell
    only: Cell = field(default_factory=dict)

    def applied(self, cell: Cell) -> Cell | None:
        """Return the cell that was really measured; None if this is not about it."""
        if any(cell.get(name) != value for name, value in self.only.items()):
            return None
        return {**cell, **self.fields}


@dataclass(frozen=True)
class Statement:
    """What a paper says in words about the cells of a table or figure.

    Parameters
    ----------
    words
        The statement in our words.
    printed
        The number that it contains, as printed; empty if it only speaks of an order.
    check
        A function of the results that returns whether it holds, and our number in words.
    why
        If it does not hold, the correction that says why; empty if none is known.
    note
        If it does not hold, what is known of the reason that is no correction of the paper.

    """

    words: str
    printed: str
    check: Callable[[Results], tuple[bool, str]]
    why: str = ""
    note: str = ""


@dataclass(frozen=True)
class Drawing:
    """What a figure shows of the cells: the fields across, of each line and of each panel.

    Parameters
    ----------
    x, x_label
        The field on the horizontal axis, and the words below it.
    y_labels
        The words beside the vertical axis for each metric that is drawn.
    series
        The field that tells lines apart.
    panel
        The field that tells panels apart; none if empty.
    log_x, log_y
        Whether the axes are logarithmic.

    """

    x: str
    x_label: str
    y_labels: Mapping[str, str]
    series: str
    panel: str = ""
    log_x: bool = False
    log_y: bool = True


Measure = Callable[[Cell, Setting], Mapping[str, float | Measured]]


@dataclass(frozen=True, eq=False)
class Experiment:
    """A table or a figure of a paper, or a number of our own docs, as something to be repeated.

    Parameters
    ----------
    name
        The paper's number and the table or figure, such as ``000/table-2``.
    title
        What it shows, in one line.
    cells
        A function of the setting that returns all cells as the caption describes them.
    measure
        A function of a cell and a setting that returns the metrics there, exact ones as plain
        numbers. It calls what users call.
    data
        What the data of its rows stand for.
    drawing
        How its figure is drawn.
    statements
        What the paper says in words about it.
    errata
        Corrections of its caption, tried one after the other.
    aliases
        Other names: the same table or figure in another version of the paper.
    spread
        The relative standard error of the printed numbers, by metric.
    stand_ins
        The values of the field ``stream`` whose data only stand for the paper's.
    seconds
        About how many processor seconds a cell takes.
    partly
        Whether quick runs leave cells out: their printed numbers are then not judged.

    """

    name: str
    title: str
    cells: Callable[[Setting], Iterable[Cell]]
    measure: Measure
    data: str
    drawing: Drawing | None = None
    statements: tuple[Statement, ...] = ()
    errata: tuple[Erratum, ...] = ()
    aliases: tuple[str, ...] = ()
    spread: Mapping[str, float] = field(default_factory=dict)
    stand_ins: tuple[str, ...] = ()
    seconds: float = 0.05
    partly: bool = False

    def measured(self, cell: Cell, setting: Setting) -> Mapping[str, Measured]:
        """Return the metrics of a cell, each with its standard error."""
        return {
            metric: number if isinstance(number, Measured) else Measured(number)
            for metric, number in self.measure(cell, setting).items()
        }

    @property
    def paper(self) -> str:
        """The number of the paper."""
        return self.name.partition("/")[0]
