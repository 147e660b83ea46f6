"""What can be seen of an output, as columns of whole numbers, and features made of columns.

Any function of the output will do: it can cost an audit power, but never make it wrong.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ABSENT",
    "HASHED",
    "Binned",
    "Column",
    "Feature",
    "Score",
    "Single",
    "Table",
    "TwoFeatures",
    "column_of",
    "joined",
]

MOST_BINS: Final = 64
"""The number of ranges that ordered values are grouped into."""
LISTED: Final = 3
"""The number of chosen values that a description names."""
HASHED: Final = 1 << 40
"""Codes from here on, and below its negative, stand for something else than a whole number."""
ABSENT: Final = -(1 << 62)
"""The code of a part that an output does not have."""


@dataclass(frozen=True)
class Column:
    """One property of each output of a batch.

    Parameters
    ----------
    codes
        A whole number for each output; equal ones mean the same.
    ordered
        The same as numbers in their order, if they have one.

    """

    codes: NDArray[np.int64]
    ordered: NDArray[np.float64] | None = None


Table = dict[str, Column]
"""The columns of a batch of outputs, by their names."""


class Feature(ABC):
    """A property of an output with finitely many values: 0 to ``size`` - 1, or ``size`` if new."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of values that were seen when the feature was made."""

    @abstractmethod
    def index(self, table: Table) -> NDArray[np.int64]:
        """Return the value of each output of a batch."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The name of the feature, as people read it."""

    @abstractmethod
    def shown(self, index: int, text: Callable[[str], str]) -> str:
        """Return a value of the feature as people read it.

        Parameters
        ----------
        index
            The value.
        text
            A function that returns a column of an output that has this value, as text.

        """

    def words(self, chosen: NDArray[np.bool_], text: Callable[[int, str], str]) -> str:
        """Return a description of the event that the feature has a chosen value.

        Parameters
        ----------
        chosen
            Which values are chosen.
        text
            A function that returns, for a value of the feature, a column of an output that has it.

        """
        every = np.flatnonzero(chosen).tolist()
        parts = [self.shown(index, partial(text, index)) for index in every[:LISTED]]
        more = [f"{len(every) - LISTED} more"] if len(every) > LISTED else []
        return f"{self.title} is {' or '.join([*parts, *more])}"


@dataclass(frozen=True, eq=False)
class Single(Feature):
    """A feature that is one column, unchanged."""

    name: str
    symbols: NDArray[np.int64]

    @property
    def size(self) -> int:
        """The number of known symbols."""
        return len(self.symbols)

    def index(self, table: Table) -> NDArray[np.int64]:
        """Return the index of each symbol among the known ones."""
        codes = column_of(table, self.name).codes
        indices = np.searchsorted(self.symbols, codes)
        known = self.symbols[np.minimum(indices, self.size - 1)] == codes
        return np.where(known, indices, self.size)

    @property
    def title(self) -> str:
        """The name of the column."""
        return self.name

    def shown(self, index: int, text: Callable[[str], str]) -> str:
        """Return the symbol."""
        del index
        return text(self.name)


@dataclass(frozen=True, eq=False)
class Ranges(Feature):
    """A number, grouped into ranges of about equal share."""

    edges: NDArray[np.float64]

    @property
    def size(self) -> int:
        """The number of ranges; what is no number is in the last."""
        return len(self.edges) + 1

    def shown(self, index: int, text: Callable[[str], str]) -> str:
        """Return the range."""
        del text
        return _ranges(self.edges, np.arange(self.size) == index)

    def words(self, chosen: NDArray[np.bool_], text: Callable[[int, str], str]) -> str:
        """Return the chosen ranges, neighbours joined."""
        del text
        return f"{self.title} is {_ranges(self.edges, chosen)}"


@dataclass(frozen=True, eq=False)
class Binned(Ranges):
    """A column of numbers, grouped into ranges."""

    name: str

    @classmethod
    def of(cls, name: str, columns: Sequence[Column]) -> Binned:
        """Return the feature of a column, from batches of it."""
        return cls(_edges(np.concatenate([_ordered(column) for column in columns])), name)

    def index(self, table: Table) -> NDArray[np.int64]:
        """Return the range of each number."""
        return np.searchsorted(self.edges, _ordered(column_of(table, self.name)), side="right")

    @property
    def title(self) -> str:
        """The name of the column."""
        return self.name


@dataclass(frozen=True, eq=False)
class TwoFeatures(Feature):
    """Two features at once."""

    first: Feature
    second: Feature

    @property
    def size(self) -> int:
        """The number of pairs, those with a new half included."""
        return (self.first.size + 1) * (self.second.size + 1)

    def index(self, table: Table) -> NDArray[np.int64]:
        """Return the pair of each output."""
        return self.first.index(table) * (self.second.size + 1) + self.second.index(table)

    @property
    def title(self) -> str:
        """The names of both features."""
        return f"({self.first.title}; {self.second.title})"

    def shown(self, index: int, text: Callable[[str], str]) -> str:
        """Return the pair."""
        first, second = divmod(index, self.second.size + 1)
        return f"({self.first.shown(first, text)}; {self.second.shown(second, text)})"


@dataclass(frozen=True, eq=False)
class Score(Ranges):
    """The sum over features of a weight for each value, grouped into ranges."""

    features: tuple[Feature, ...]
    weights: tuple[NDArray[np.float64], ...]

    @classmethod
    def of(
        cls,
        features: Sequence[Feature],
        weights: Sequence[NDArray[np.float64]],
        indices: Sequence[NDArray[np.int64]],
    ) -> Score:
        """Return the feature of weights, and of the values of some outputs."""
        sums = sum((own[index] for own, index in zip(weights, indices, strict=True)), np.zeros(1))
        return cls(_edges(sums), tuple(features), tuple(weights))

    @property
    def title(self) -> str:
        """What is added up."""
        return f"the sum of the log ratios of {len(self.features)} parts"

    def index(self, table: Table) -> NDArray[np.int64]:
        """Return the range of each sum."""
        return self.index_of([feature.index(table) for feature in self.features])

    def index_of(self, indices: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
        """Return the range of each sum, from the values of the features."""
        pairs = zip(self.weights, indices, strict=True)
        sums = sum((own[index] for own, index in pairs), np.zeros(1))
        return np.searchsorted(self.edges, sums, side="right")


def column_of(table: Table, name: str) -> Column:
    """Return a column of a batch; if no output of the batch has it, all are marked as absent."""
    return table.get(name) or Column(np.full(len(next(iter(table.values())).codes), ABSENT))


def joined(tables: Sequence[Table]) -> Table:
    """Return the batches one after the other."""
    names = dict.fromkeys(name for table in tables for name in table)
    return {
        name: _one_after_the_other([column_of(table, name) for table in tables]) for name in names
    }


def _one_after_the_other(columns: Sequence[Column]) -> Column:
    codes = np.concatenate([column.codes for column in columns])
    if all(column.ordered is None for column in columns):
        return Column(codes)
    return Column(codes, np.concatenate([_ordered(column) for column in columns]))


def _ordered(column: Column) -> NDArray[np.float64]:
    """Return a column as numbers; what is no number, or absent, comes after all others."""
    if column.ordered is not None:
        return column.ordered
    return np.where(np.abs(column.codes) < HASHED, column.codes.astype(np.float64), np.inf)


def _edges(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the ends of ranges that hold about equal shares of the numbers."""
    known = numbers[np.isfinite(numbers)]
    if not len(known):
        return np.zeros(0)
    return np.unique(np.quantile(known, np.arange(1, MOST_BINS) / MOST_BINS, method="nearest"))


def _ranges(edges: NDArray[np.float64], chosen: NDArray[np.bool_]) -> str:
    """Return the chosen ranges between edges as text, neighbours joined."""
    inside = np.concatenate([[False], chosen[: len(edges) + 1], [False]]).astype(int)
    starts, ends = np.flatnonzero(np.diff(inside) == 1), np.flatnonzero(np.diff(inside) == -1)
    parts = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        low = f"at least {edges[start - 1]:.6g}" if start else ""
        high = f"below {edges[end - 1]:.6g}" if end <= len(edges) else ""
        parts.append(" and ".join(filter(None, (low, high))) or "anything")
    more = [f"in {len(parts) - 3} more ranges"] if len(parts) > 3 else []
    return " or ".join([*parts[:3], *more])
