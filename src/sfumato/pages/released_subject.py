"""A released stream as what a page shows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.core.answers import Answers
from sfumato.core.duration import length
from sfumato.core.guarantee import Guarantee
from sfumato.core.quantity import Quantity
from sfumato.files.timed_files import read_stream
from sfumato.pages.promises import learnt
from sfumato.pages.subject import Axis, Columns, LastKnown, PageState, PageSubject, Promise, Range
from sfumato.streams.published import Released, ReleasedByTime
from sfumato.streams.published.ranges import RangeAnswer

__all__ = ["ReleasedSubject", "subject_of"]

STRETCHES: Final = 256
"""The largest number of stretches that a stream is shown in."""

WHOLE: Final = 1000.0
"""Amounts from here on are written without decimals."""


class ReleasedSubject(PageSubject):
    """A released stream: the mean, or the sum, of each of many stretches.

    Parameters
    ----------
    title
        What the stream is called.
    stream
        The stream.

    """

    address = ""
    counted = "values"

    def __init__(self, title: str, stream: Released | ReleasedByTime) -> None:
        self.title = title
        self._stream = stream
        self._ends, self.axis = _stretches(stream)
        self.closed = len(self._ends) - 1
        by_time = isinstance(stream, ReleasedByTime)
        noun = "Sum of values" if by_time else "Mean of values"
        self.quantity = Quantity("amount" if by_time else "mean", noun, from_zero=False)
        self.labels = (noun.lower(),)
        self.asked = "Sums" if by_time else "Averages"
        self._answers = [
            self._answer(int(start) + 1, int(end))
            for start, end in zip(self._ends, self._ends[1:], strict=False)
        ]
        plain = stream.stream if isinstance(stream, ReleasedByTime) else stream
        self.n = stream.rows if isinstance(stream, ReleasedByTime) else plain.last - plain.first + 1
        cuts = [at * plain.unit for at, _ in plain.cuts(plain.first, plain.last)] if self.n else []
        upper = " to ".join(f"{at:,.10g}" for at in dict.fromkeys((min(cuts), max(cuts))))
        each = f"of {length(self.axis.step)}" if by_time else f"of {self.axis.step:,} values"
        self.measured = f"The {noun.lower()}, cut to {upper}, in {self.closed:,} periods {each}."
        self._guarantee: Guarantee = plain.guarantee
        self._answers_as_rows = np.array(
            [(each.value, each.low, each.high) for each in self._answers]
        ).reshape(-1, 3)

    def _answer(self, first: int, last: int) -> RangeAnswer:
        answer = self._stream.sum(first, last, self.level)
        return answer if isinstance(self._stream, ReleasedByTime) else answer.mean

    def _told(self, rows: Floats, as_of: int) -> Answers:
        values, low, high = rows.T
        return Answers(
            self.labels,
            values,
            low,
            high,
            self.n,
            self._guarantee,
            self.level,
            self.quantity,
            as_of=as_of,
        )

    def columns(self, items: Sequence[int], periods: slice = slice(None)) -> Columns:
        """Return the stream in all periods, or in some of these, with its intervals."""
        rows = self._answers_as_rows[periods]
        return Columns(*(np.repeat(side[:, None], len(items), axis=1) for side in rows.T))

    def last_known(self) -> LastKnown:
        """Return the last value."""
        rows = self._answers_as_rows[-1:] if self.closed else np.full((1, 3), np.nan)
        return LastKnown(self._told(rows, self.closed), np.array([self.closed]))

    def between(self, first: int, last: int, items: Sequence[int]) -> Range | str:
        """Return the answer about a range of periods, by the stream's own question."""
        del items
        answer = self._answer(int(self._ends[first - 1]) + 1, int(self._ends[last]))
        rows = np.array([[answer.value, answer.low, answer.high]])
        return Range(self._told(rows, self.closed), None)

    def state(self, now: float) -> PageState:
        """Return the state, which does not change."""
        del now
        if not self.closed:
            return PageState("empty", "Nothing is published in this file yet.")
        return PageState("still", f"{self.n:,} values are published; these numbers are final.")

    @property
    def promises(self) -> tuple[str, ...]:
        """The guarantee in its exact words."""
        return (str(self._guarantee),)

    @property
    def notes(self) -> tuple[str, ...]:
        """What cutting off means."""
        cut_off = max((answer.cut_off for answer in self._answers), default=0.0)
        larger = f"{cut_off:,.0f}" if cut_off >= WHOLE else f"{cut_off:.6g}"
        return (
            (
                "Values above the threshold count as the threshold, so that no single one stands "
                f"out: what was cut off makes a true value here larger by {larger} at the very "
                "most."
            ),
        )

    @property
    def explained(self) -> tuple[Promise, ...]:
        """What the guarantee means, for people."""
        return (
            learnt(self._guarantee, "Whoever sees all of this file"),
            Promise(
                "Who sees what?",
                "The values themselves stayed with whoever published this file, who must be "
                "trusted. Everything here follows from the file: any number of questions costs "
                "nothing more.",
            ),
        )


def _stretches(stream: Released | ReleasedByTime) -> tuple[Ints, Axis]:
    """Return where stretches end, in places of the stream, and the axis that they make up."""
    if isinstance(stream, ReleasedByTime):
        grid = stream.grid
        many = -(-grid.periods // STRETCHES)
        ends = np.unique(np.append(np.arange(0, grid.periods, many), grid.periods))
        edges = tuple(grid.edges[ends].tolist())
        axis = Axis(edges[0], many * grid.every, ends.size - 1, edges=edges, zone=grid.zone)
        return ends, axis
    count = stream.last - stream.first + 1
    many = max(1, min(STRETCHES, count // max(stream.release.block, 1)))
    if count < 1:
        return np.array([0]), Axis(0, 1, 0, in_time=False)
    ends = np.unique(np.linspace(stream.first - 1, stream.last, many + 1).round().astype(np.int64))
    edges = tuple(ends.tolist())
    step = max(1, count // (ends.size - 1))
    return ends, Axis(edges[0], step, ends.size - 1, in_time=False, edges=edges)


def subject_of(path: Path) -> ReleasedSubject:
    """Return what the page of a file shows."""
    return ReleasedSubject(path.name, read_stream(path))
