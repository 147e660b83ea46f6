"""Answers as a table: a label, a value and an interval for each, and what is printed with them.

Estimates, questions, post-processing, the command line, HTTP and the page all use this table, so
that a column has one name everywhere: ``item``, ``period`` or ``key``, then ``value``, ``low`` and
``high``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Self

import numpy as np

from sfumato import frames
from sfumato.arrays import Bools, Floats, Ints
from sfumato.core.answer import Answer, Printed
from sfumato.core.domain import Label, shortened
from sfumato.core.guarantee import Guarantee
from sfumato.core.quantity import AMOUNT, Quantity
from sfumato.errors import ConfigurationError

__all__ = ["REMARKS", "SIDES", "Answer", "Answers", "Printed", "columns_of", "plain_of"]


SIDES: Final = ("value", "low", "high")
"""The columns that every table of answers has beside its labels."""

REMARKS: Final = {
    "interpolated": "interpolated",
    "incomplete": "may lack reports, as the collector was brought back from a backup",
    "flagged": "not what honest devices send",
}
"""What has to be said of some periods, by the field that names them."""

FEW: Final = 12
"""How many rows an interactive session prints."""


@dataclass(frozen=True, eq=False, repr=False)
class Answers:
    """Values with their intervals, item by item (or period by period, or key by key).

    Parameters
    ----------
    labels, values, low, high
        The name of each answer, its value, and the two ends of its interval.
    n
        How many reports the answers are computed from.
    guarantee
        What was promised to whom, as an object or, if it came from a collector, as a sentence.
    level
        The probability that an interval contains the truth.
    quantity
        What the values are, and how they are printed.
    what
        What a label names: ``item``, ``period`` or ``key``.
    question
        What was asked, in words.
    method
        How it was answered: the decoder, and any post-processing by its name.
    as_of
        The last period whose reports were used; None if there are no periods.
    band
        Whether ``level`` holds for all intervals at once instead of for each on its own.
    interpolated
        The periods of a sum without reports: their part of the value is interpolated between the
        periods beside them, and the interval allows for all possible values of them.
    incomplete
        The periods that may lack reports which were acknowledged, as the collector was brought back
        from a backup.
    flagged
        The periods of which something was released that is not what honest devices send.
    beside
        Further columns that say what a row is about, by name: the ``item`` of each row if these are
        the curves of several, the ``time`` at which its period begins.

    Examples
    --------
    >>> from sfumato.core.quantity import SHARE
    >>> promise = Guarantee("local", "each report", 1.0)
    >>> sides = np.array([[0.2, 0.8], [0.1, 0.7], [0.3, 0.9]])
    >>> pets = Answers(("cat", "dog"), *sides, n=500, guarantee=promise, quantity=SHARE)
    >>> print(pets.largest()["dog"])
    dog: 80% ± 10%
    >>> pets.largest().columns()["item"]
    ['dog', 'cat']

    """

    labels: tuple[Label, ...]
    values: Floats
    low: Floats
    high: Floats
    n: int
    guarantee: Guarantee | str
    level: float = 0.95
    quantity: Quantity = AMOUNT
    what: str = "item"
    question: str = ""
    method: str = ""
    as_of: int | None = None
    band: bool = False
    interpolated: tuple[int, ...] = ()
    incomplete: tuple[int, ...] = ()
    flagged: tuple[int, ...] = ()
    beside: Mapping[str, tuple[Label, ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, label: Label) -> Answer:
        if label not in self.labels:
            raise ConfigurationError(
                f"{self.what} is {label!r}; there are {shortened(self.labels)}."
            )
        index = self.labels.index(label)
        value, low, high = (float(side[index]) for side in (self.values, self.low, self.high))
        return Answer(label, value, low, high, self.quantity, self.as_of, self.guarantee)

    # ---- selecting rows ----------------------------------------------------------------------

    def pick(self, indices: Sequence[int] | Ints | slice) -> Self:
        """Return the rows with these indices, in this order."""
        chosen = np.arange(len(self))[indices]
        labels = tuple(self.labels[index] for index in chosen)
        sides = (self.values[chosen], self.low[chosen], self.high[chosen])
        beside = {
            name: tuple(cells[index] for index in chosen) for name, cells in self.beside.items()
        }
        return replace(
            self, labels=labels, values=sides[0], low=sides[1], high=sides[2], beside=beside
        )

    def where(self, **cells: Label) -> Self:
        """Return the rows that have these labels, as in ``where(item="home")``."""
        columns = {self.what: self.labels, **self.beside}
        rows = np.ones(len(self), dtype=bool)
        for name, label in cells.items():
            column = columns.get(name, ())
            if label not in column:
                known = shortened(tuple(dict.fromkeys(column))) or "no such column"
                raise ConfigurationError(f"{name} is {label!r}; there are {known}.")
            rows &= np.array([cell == label for cell in column])
        return self.pick(np.flatnonzero(rows))

    def largest(self) -> Self:
        """Return all rows, sorted by falling value; rows without a known value come last."""
        known = self._told[:, 0]
        return self.pick(np.argsort(np.where(known, -self.values, np.inf), kind="stable"))

    def holds(self, truth: Floats) -> Bools:
        """Return which intervals hold the true value."""
        return np.asarray((self.low <= truth) & (truth <= self.high))

    def rounded(self, digits: int) -> Self:
        """Return the same answers with all numbers rounded to ``digits`` decimals."""
        sides = (side.round(digits) for side in (self.values, self.low, self.high))
        values, low, high = sides
        return replace(self, values=values, low=low, high=high)

    # ---- for people --------------------------------------------------------------------------

    @property
    def reach(self) -> Floats:
        """The distance from each value, as printed, to the farther end of its interval.

        If there is no value, this is half the width of the interval.
        """
        inside = np.clip(self.values, self.low, self.high)
        farther = np.maximum(inside - self.low, self.high - inside)
        return np.fmax(farther, (self.high - self.low) / 2)

    @property
    def typical(self) -> float:
        """The median reach of the intervals that are known; 0 if none is."""
        reach = np.sort(self.reach[np.isfinite(self.reach)])
        return float(reach[reach.size // 2]) if reach.size else 0.0

    @property
    def decimals(self) -> int:
        """How many decimals the values are printed with; it depends on their uncertainty."""
        return self.quantity.decimals(self.typical)

    @property
    def percent(self) -> str:
        """The level as a percentage, such as ``95%``."""
        return f"{100 * self.level:.10g}%"

    def printed(self) -> list[Printed]:
        """Return the rows as text, with the ends of the intervals padded to one width."""
        decimals, reaches = self.decimals, self.reach.tolist()
        text = self.quantity.text
        rows = []
        for (value, low, high), reach in zip(self.known(), reaches, strict=True):
            row = Printed("unknown", "", "", "", "")
            if low is not None and high is not None:
                row = row._replace(low=text(low, decimals), high=text(high, decimals))
                if value is not None:
                    nearest, raw = text(min(max(value, low), high), decimals), text(value, decimals)
                    row = row._replace(value=nearest, reach=text(reach, decimals))
                    row = row._replace(raw="" if raw == nearest else raw)
            rows.append(row)
        wide = max((len(end) for row in rows for end in (row.low, row.high)), default=0)
        return [row._replace(low=row.low.rjust(wide), high=row.high.rjust(wide)) for row in rows]

    def sentence(self) -> str:
        """Return what is printed below the numbers: date, method, level, n and guarantee."""
        dated = "" if self.as_of is None else f"As of period {self.as_of}"
        shape = f"{self.percent} {'band' if self.band else 'intervals'}"
        words = ", ".join(
            filter(None, (dated, self.method, *self._remarks, shape, f"n = {self.n:,}"))
        )
        return f"{words}. {self.guarantee}"

    @property
    def _remarks(self) -> list[str]:
        """What has to be said of some of the periods, in words."""
        return [
            f"{_listed(getattr(self, name))} {words}"
            for name, words in REMARKS.items()
            if getattr(self, name)
        ]

    def __repr__(self) -> str:
        rows = self.pick(slice(FEW)).printed()
        wide = max((len(row.value) for row in rows), default=0)
        lines = [
            f"{label!s:>12}  {row.value:>{wide}}"
            + (f"  [{row.low}, {row.high}]" * bool(row.high))
            + (f"  (raw {row.raw})" * bool(row.raw))
            for label, row in zip(self._names(), rows, strict=False)
        ]
        more = len(self) - FEW
        lines += [f"{'...':>12}  ({more:,} more)"] if more > 0 else []
        return "\n".join([*filter(None, [self.question]), *lines, self.sentence()])

    def _names(self) -> list[str]:
        """The name of each row: its label, and the item if there are several."""
        items = self.beside.get("item", ("",) * len(self))
        several = len(set(items)) > 1
        return [
            f"{item}, {label}" if several else str(label)
            for item, label in zip(items, self.labels, strict=True)
        ]

    def _repr_html_(self) -> str:
        from html import escape  # noqa: PLC0415 -- for notebooks, not for devices

        rows = "".join(
            f"<tr><td>{escape(label)}</td>"
            f"<td>{row.value}{row.raw and f' (raw {row.raw})'}</td>"
            f"<td>{f'{row.low} &ndash; {row.high}' if row.high.strip() else ''}</td></tr>"
            for label, row in zip(self._names(), self.printed(), strict=True)
        )
        return (
            f"<table><caption>{escape(self.question)}</caption><thead><tr><th>{self.what}</th>"
            f"<th>value</th><th>{self.percent} interval</th></tr></thead>"
            f"<tbody>{rows}</tbody></table><p>{escape(self.sentence())}</p>"
        )

    # ---- for machines ------------------------------------------------------------------------

    def columns(self) -> dict[str, Any]:
        """Return labels, values and intervals as plain columns; unknown numbers are nan."""
        sides = zip(SIDES, (self.values, self.low, self.high), strict=True)
        names = {self.what: list(self.labels)}
        names |= {name: list(cells) for name, cells in self.beside.items()}
        return names | {name: side.tolist() for name, side in sides}

    def to_frame(self, backend: str = "pandas") -> Any:
        """Return the answers as a pandas, polars or pyarrow table; times become real ones."""
        columns = self.columns()
        if "time" in self.beside:
            columns["time"] = [datetime.fromisoformat(str(cell)) for cell in columns["time"]]
        return frames.table(columns, backend)

    def known(self) -> list[list[float | None]]:
        """Return value, low and high of each row; numbers that are not known are None.

        A value without a finite interval counts as not known.
        """
        cells = np.column_stack((self.values, self.low, self.high)).astype(object)
        cells[~self._told] = None
        listed: list[list[float | None]] = cells.tolist()
        return listed

    @property
    def _told(self) -> Bools:
        """A mask of the numbers (value, low, high) of each row that are shown."""
        finite = np.isfinite(np.column_stack((self.values, self.low, self.high)))
        return np.asarray(finite & finite[:, 1:].all(axis=1, keepdims=True))

    def records(self) -> list[dict[str, Any]]:
        """Return one dictionary for each row; numbers that are not known are None."""
        columns = (self.what, *self.beside, *SIDES)
        names = zip(self.labels, *self.beside.values(), strict=True)
        return [
            dict(zip(columns, (*named, *row), strict=True))
            for named, row in zip(names, self.known(), strict=True)
        ]

    def plain(self) -> dict[str, Any]:
        """Return the answers with their level, method and guarantee as plain data."""
        asked = {"question": self.question} if self.question else {}
        return asked | {"answers": self.records()} | self.about()

    def about(self) -> dict[str, Any]:
        """Return the level, method, date, guarantee and quantity of the answers as plain data."""
        dated = {} if self.as_of is None else {"as_of": self.as_of}
        method = {"method": self.method} if self.method else {}
        remarks = {name: list(getattr(self, name)) for name in REMARKS if getattr(self, name)}
        return {
            "level": self.level,
            "band": self.band,
            **dated,
            **method,
            **remarks,
            "n": self.n,
            "guarantee": str(self.guarantee),
            "quantity": self.quantity.plain(),
        }

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Return the answers that :meth:`plain` has written."""
        rows = plain["answers"]
        what = next((name for row in rows for name in row if name not in SIDES), "item")
        values, low, high = (np.array([row[name] for row in rows], dtype=float) for name in SIDES)
        others = [name for name in (rows[0] if rows else ()) if name not in (what, *SIDES)]
        remarks: Any = {name: tuple(plain.get(name, ())) for name in REMARKS}
        rest = ("level", "band", "as_of", "method", "n", "guarantee", "question")
        return cls(
            tuple(row[what] for row in rows),
            values,
            low,
            high,
            what=what,
            quantity=Quantity(**plain["quantity"]),
            **remarks,
            beside={name: tuple(row[name] for row in rows) for name in others},
            **{name: plain[name] for name in rest if name in plain},
        )


def _listed(periods: Sequence[int]) -> str:
    """Return some periods in words."""
    *others, last = map(str, periods)
    return f"periods {', '.join(others)} and {last}" if others else f"period {last}"


# ---- several answers for each label --------------------------------------------------------------


def columns_of(named: Mapping[str, Answers]) -> dict[str, list[Any]]:
    """Return several tables of answers with the same labels, by name, as plain columns."""
    first = next(iter(named.values()))
    if len(named) == 1:
        return first.columns()
    table: dict[str, list[Any]] = {first.what: list(first.labels)}
    for name, answers in named.items():
        columns = answers.columns()
        table |= {name if side == "value" else f"{name}_{side}": columns[side] for side in SIDES}
    return table


def plain_of(named: Mapping[str, Answers]) -> dict[str, Any]:
    """Return several tables of answers with the same labels, by name, as plain data."""
    first = next(iter(named.values()))
    if len(named) == 1:
        return first.plain()
    rows = {name: answers.known() for name, answers in named.items()}
    records = [
        {first.what: label}
        | {name: dict(zip(SIDES, known[index], strict=True)) for name, known in rows.items()}
        for index, label in enumerate(first.labels)
    ]
    quantities = {name: answers.quantity.plain() for name, answers in named.items()}
    return {"answers": records} | first.about() | {"quantity": quantities}
