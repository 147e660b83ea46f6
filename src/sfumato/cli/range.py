"""`sfumato range`: the sum or mean of any range of a released stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sfumato import files, plots
from sfumato.cli.command import Parts, Picture, Result
from sfumato.core.duration import length
from sfumato.core.quantity import decimals
from sfumato.errors import InputError
from sfumato.streams.published import Released, ReleasedByTime

if TYPE_CHECKING:
    from sfumato.streams.published import RangeAnswer

__all__ = ["range_"]


@dataclass(frozen=True)
class RangeOptions:
    """A range of a released stream."""

    source: Annotated[Path, typer.Argument(metavar="RELEASED")]
    """The file that `sfumato release` has written."""
    first: Annotated[str, typer.Argument()]
    """The position of the first value, counted from 1; of a stream that was published by time, a
    year (2026), month (2026-03), day (2026-03-01), or a time (2026-03-01T12:00), which stands for
    the period that it lies in."""
    last: Annotated[str | None, typer.Argument()] = None
    """The position of the last value, or the last year, month, day or time, to its end; that of the
    first by default."""
    level: float = 0.95
    order: Literal["steady", "any"] = "steady"
    """The order of values within a block: steady, in which parts of blocks differ by as much as
    blocks show that values move, or any, which may be a cycle shorter than a block. A range of
    whole periods is the same in any order."""
    plot: Picture | None = None
    """Also draw the range, to this file."""
    force: bool = False


@dataclass(frozen=True)
class RangeQuestion:
    """A range as it was asked for: its ends in plain data and in words, and its answer."""

    ends: dict[str, Any]
    words: str
    answer: RangeAnswer
    cuts: list[float]
    picture: Callable[[], Any]


def range_(asked: RangeOptions) -> Result:
    """Say the sum and the mean of the values from one position or time to another.

    Any number of questions costs no privacy. The file may still be growing.

    Example:  sfumato range fares.csv 100001 200000
              sfumato range hours.csv 2026-03-01 2026-03-07
    """
    stream = files.read_stream(asked.source)
    end = asked.first if asked.last is None else asked.last
    if isinstance(stream, ReleasedByTime):
        question = _by_time(stream, asked, end)
    else:
        question = _by_place(stream, asked, end)
    answer = question.answer
    sides = {"sum": answer} | ({"mean": answer.mean} if answer.count else {})
    record = {
        **question.ends,
        **{
            name: {"value": side.value, "low": side.low, "high": side.high}
            for name, side in sides.items()
        },
        "level": asked.level,
        "order": asked.order,
        "cut_to": question.cuts[-1] if len(question.cuts) == 1 else question.cuts,
        "cut_off_at_most": answer.cut_off,
        "as_of": answer.as_of,
        "guarantee": str(answer.guarantee),
    }
    return Result(record, _text(asked, question, sides), picture=question.picture)


def _by_place(stream: Released, asked: RangeOptions, end: str) -> RangeQuestion:
    """Return a range of positions."""
    first, last = (
        _place(asked, name, text) for name, text in (("first", asked.first), ("last", end))
    )
    answer = stream.sum(first, last, asked.level, asked.order)
    return RangeQuestion(
        {"first": first, "last": last},
        f"{answer.count:,} values, from position {first:,} to {last:,} of {answer.as_of:,}:\n",
        answer,
        sorted({cut * stream.unit for cut, _ in stream.cuts(first, last)}),
        lambda: plots.means(stream, first, last),
    )


def _place(asked: RangeOptions, name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InputError(
            f"{name} is {text!r}; {asked.source} has no time axis, so a position such as 1000 is "
            "expected."
        ) from None


def _by_time(stream: ReleasedByTime, asked: RangeOptions, end: str) -> RangeQuestion:
    """Return a range of time, its last day or time included to the end."""
    answer = stream.between(asked.first, end, asked.level)
    start, until = (
        stream.grid.clock.text(int(stream.grid.edges[position]))
        for position in (answer.first - 1, answer.last)
    )
    ends: dict[str, Any] = {
        "from": start,
        "until": until,
        "periods": answer.last - answer.first + 1,
    }
    values = ""
    if answer.count is not None:
        ends["count"] = answer.count
        values = f"{answer.count:,} values in "
    many = "1 period" if ends["periods"] == 1 else f"{ends['periods']:,} periods"
    return RangeQuestion(
        ends,
        f"{values}{many} of {length(stream.grid.every)}, from {start} up to {until}, which is the "
        f"end of {end}:\n",
        answer,
        [stream.stream.threshold * stream.stream.unit],
        lambda: plots.timeline(stream, answer.first, answer.last),
    )


def _text(asked: RangeOptions, question: RangeQuestion, sides: dict[str, RangeAnswer]) -> Parts:
    yield question.words
    for name, side in sides.items():
        reach = (side.high - side.low) / 2
        digits = decimals(reach)
        value, more, low, high = (
            f"{number:z,.{digits}f}" for number in (side.value, reach, side.low, side.high)
        )
        about = f" ± {more}" if asked.order == "steady" else ""
        yield f"{name:>6}  {value}{about}   ({100 * asked.level:.10g}%: {low} to {high})"
    ends = " to ".join(
        f"{cut:,.10g}" for cut in dict.fromkeys((question.cuts[0], question.cuts[-1]))
    )
    yield (
        f"\nOf values cut to {ends}; what was cut off makes the "
        f"true sum larger by {question.answer.cut_off:,.6g} at the very most."
    )
    yield f"{question.answer.guarantee}"
