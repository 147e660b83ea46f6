"""The observations of simulated devices of a task, made up or read from a table.

A task observes values that stay until the next one (``Held``), numbers in an interval
(``Numbers``), or rises and falls of one period each (``Moves``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfumato import frames
from sfumato.arrays import Array, Floats
from sfumato.core.domain import Label
from sfumato.core.fleet import Population
from sfumato.errors import InputError
from sfumato.simulation.drifting import DRIFT, TIDE, Drifting, DriftingLevels
from sfumato.simulation.made_up_lives import Life, Moving, Synthetic
from sfumato.simulation.populations import Recorded
from sfumato.simulation.recorded_streams import read_devices, read_periods, read_streams
from sfumato.streams.kinds import Attributes, Binary, Category, Items, Values, values_of
from sfumato.wire.values import TaskValues

__all__ = ["Course", "Held", "Moves", "Numbers", "Observed", "observed_by"]

SOMETIMES: Final = 8
"""The mean number of periods between changes of a made-up device, if the task has no limit."""


class Course(NamedTuple):
    """How the values of made-up devices change."""

    life: Life = "moving"
    """The way in which values that stay until the next one change."""
    changes: int | None = None
    """The largest number of changed entries; None for as many as the task allows."""
    pace: float = 1.0
    """The speed at which shares or levels drift, relative to the usual one."""


USUAL_COURSE: Final = Course()


class Observed(ABC):
    """The observations of the devices of one task, period by period.

    Streams are arrays with one row for each device and one column for each period.
    """

    periods: int
    """The number of periods of the task."""
    lasts: ClassVar[bool] = True
    """Whether a value stays until the next one."""

    @property
    @abstractmethod
    def columns(self) -> Mapping[str, bool]:
        """The columns of a table beside device and period, and whether their cells are text."""

    @abstractmethod
    def made_up(self, devices: int, seed: int, course: Course = USUAL_COURSE) -> Population:
        """Return made-up devices, which are the same for the same seed."""

    def recorded(self, table: Any, devices: int | None = None, seed: int = 1) -> Population:
        """Return the devices of a table, each once, or drawn at random; InputError if it is bad."""
        return Recorded(self.read(table), devices, seed, kind=self)

    @abstractmethod
    def read(self, table: Any) -> Array:
        """Return the streams of a table; raise InputError if it is bad."""

    @abstractmethod
    def said(self, cell: Any) -> Any:
        """Return a cell of a stream in the form in which an app passes it to a device."""


@dataclass(frozen=True)
class Held(Observed):
    """Values that a device holds until the next one: an item, a category, a set, attributes.

    Examples
    --------
    >>> Held(Category(("home", "work")), periods=4, changes=3).said(np.int64(1))
    'work'
    """

    values: Values
    """The kind of the values."""
    periods: int
    """The number of periods of the task."""
    changes: int | None = None
    """The largest number of changed entries in a made-up stream; None if the task has no limit."""

    @property
    def columns(self) -> Mapping[str, bool]:
        """The columns of a table: one, or one for each attribute."""
        if isinstance(self.values, Attributes):
            return {name: _has_words(items.labels) for name, items in self.values.categories}
        name = "item" if isinstance(self.values, Items) else "value"
        words = _has_words(self.values.labels) and not isinstance(self.values, Binary)
        return {name: words}

    def made_up(self, devices: int, seed: int, course: Course = USUAL_COURSE) -> Population:
        """Return devices whose values change now and then; in an endless task shares drift."""
        changes = course.changes or self.changes
        if changes is None and isinstance(self.values, Category):
            return Drifting(self.values.labels, devices, self.periods, seed, DRIFT * course.pace)
        often = changes or 1 + 2 * max(1, self.periods // SOMETIMES)
        return Synthetic(self.values, self.periods, often, devices, course.life, seed)

    def read(self, table: Any) -> Array:
        """Return the streams of a table with one row for each value."""
        return read_streams(self.values, self.periods, table)

    def said(self, cell: Any) -> Any:
        """Return the item, the items, or the item of each attribute; None if there is none."""
        return self.values.said(cell)


@dataclass(frozen=True)
class Numbers(Observed):
    """Numbers in an interval.

    Examples
    --------
    >>> made = Numbers(0.0, 10.0, clip=False, periods=3).made_up(devices=1000, seed=1)
    >>> made.streams().mean(axis=0).round().tolist()
    [5.0, 5.0, 5.0]
    """

    low: float
    high: float
    """The ends of the interval."""
    clip: bool
    """Whether other numbers in a table are clipped to the interval."""
    periods: int
    """The number of periods of the task."""

    @property
    def columns(self) -> Mapping[str, bool]:
        """The columns of a table: one, with numbers."""
        return {"value": False}

    def made_up(self, devices: int, seed: int, course: Course = USUAL_COURSE) -> Population:
        """Return devices whose numbers lie around a level that drifts."""
        tide = TIDE * course.pace
        return DriftingLevels((self.low, self.high), devices, self.periods, seed, tide)

    def read(self, table: Any) -> Floats:
        """Return the streams of a table; a period without a number repeats the one before."""
        cells = frames.picked(table, ["device", "period", "value"])
        period = read_periods(cells["period"], self.periods)
        device, names = read_devices(cells["device"], period)
        streams = np.full((len(names), self.periods), np.nan)
        streams[device, period - 1] = [
            self._number(value, row) for row, value in enumerate(cells["value"].tolist(), 1)
        ]
        for column in range(1, self.periods):
            missing = np.isnan(streams[:, column])
            streams[missing, column] = streams[missing, column - 1]
        late = np.isnan(streams[:, 0])
        if late.any():
            name = names[int(late.argmax())]
            raise InputError(f"device {name!r} has no value in period 1; its first is expected.")
        return streams

    def _number(self, value: Any, row: int) -> float:
        """Return a cell as a number in the interval; raise InputError if it is not."""
        number = float(value) if isinstance(value, (int, float)) else np.nan
        if self.clip and not np.isnan(number):
            number = min(max(number, self.low), self.high)
        if not self.low <= number <= self.high:
            raise InputError(
                f"value is {value!r} in row {row}; a number in [{self.low:g}, {self.high:g}] is "
                "expected, or clip = true to cut others to it."
            )
        return number

    def said(self, cell: Any) -> float:
        """Return the number."""
        return float(cell)


@dataclass(frozen=True)
class Moves(Observed):
    """Rises and falls of some items, each in one period.

    Examples
    --------
    >>> Moves(("bread", "milk"), periods=5, changes=3).said(np.array([1, 0]))
    [1, 0]
    """

    labels: tuple[Label, ...]
    """The items."""
    periods: int
    """The number of periods of the task."""
    changes: int
    """The largest number of moves of a made-up device."""
    lasts: ClassVar[bool] = False

    @property
    def columns(self) -> Mapping[str, bool]:
        """The columns of a table: an item, and whether it rose (1) or fell (-1)."""
        return {"item": _has_words(self.labels), "move": False}

    def made_up(self, devices: int, seed: int, course: Course = USUAL_COURSE) -> Population:
        """Return devices whose items rise and fall in waves."""
        often = course.changes or self.changes
        return Moving(len(self.labels), self.periods, often, devices, seed, kind=self)

    def read(self, table: Any) -> NDArray[np.int8]:
        """Return the streams of a table with one row for each rise or fall."""
        cells = frames.picked(table, ["device", "period", "item", "move"])
        period = read_periods(cells["period"], self.periods)
        device, names = read_devices(cells["device"], period, again=True)
        indices = {label: index for index, label in enumerate(self.labels)}
        streams = np.zeros((len(names), self.periods, len(self.labels)), dtype=np.int8)
        rows = zip(device, period - 1, cells["item"].tolist(), cells["move"].tolist(), strict=True)
        for row, (who, when, item, move) in enumerate(rows, 1):
            if frames.absent(item):  # a device that sees no move is still counted
                continue
            if item not in indices:
                known = ", ".join(map(repr, self.labels[:8]))
                raise InputError(f"item is {item!r} in row {row}; one of {known} is expected.")
            if move not in (-1, 1):
                raise InputError(
                    f"move is {move!r} in row {row}; 1 for a rise or -1 for a fall is expected."
                )
            if streams[who, when, indices[item]]:
                raise InputError(f"item is {item!r} again in row {row}; once a period is expected.")
            streams[who, when, indices[item]] = move
        return streams

    def said(self, cell: Any) -> list[int]:
        """Return the move of each item."""
        return [int(move) for move in cell]


def observed_by(task: Mapping[str, Any]) -> Observed:
    """Return the observations of a task, which is given as plain data."""
    values, periods = TaskValues.of_spec(task), int(task["periods"])
    changes = int(task["changes"]) if "changes" in task else None
    if values.kind == "number":
        return Numbers(float(values.low or 0.0), float(values.high or 0.0), values.clip, periods)
    if values.kind == "moves":
        items = values.items
        labels = items if isinstance(items, tuple) else tuple(range(items or 0))
        return Moves(labels, periods, changes or periods)
    return Held(values_of(values), periods, changes)


def _has_words(labels: tuple[Label, ...]) -> bool:
    return any(isinstance(label, str) for label in labels)
