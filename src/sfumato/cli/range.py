"""`sfumato range`: the sum or mean of any range of a released stream."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sfumato import files
from sfumato.cli.command import Parts, Result
from sfumato.core.quantity import decimals

if TYPE_CHECKING:
    from sfumato.streams.published.ranges import RangeAnswer

__all__ = ["range_"]


@dataclass(frozen=True)
class RangeOptions:
    """A range of a released stream.

    Parameters
    ----------
    source
        The file that `sfumato release` has written.
    first
        The place of the first value, counted from 1.
    last
        The place of the last value.
    order
        The order of values within a block: steady, in which parts of blocks differ by as much as
        blocks show that values move, or any, which may be a cycle shorter than a block.

    """

    source: Annotated[Path, typer.Argument(metavar="RELEASED")]
    first: Annotated[int, typer.Argument()]
    last: Annotated[int, typer.Argument()]
    level: float = 0.95
    order: Literal["steady", "any"] = "steady"


def range_(asked: RangeOptions) -> Result:
    """Say the sum and the mean of the values from one place to another.

    Any number of questions costs no privacy. The file may still be growing.

    Example:  sfumato range fares.csv 100001 200000
    """
    stream = files.read_released(asked.source)
    answer = stream.sum(asked.first, asked.last, asked.level, asked.order)
    cuts = sorted({cut * stream.unit for cut, _ in stream.cuts(asked.first, asked.last)})
    sides = {
        name: {"value": side.value, "low": side.low, "high": side.high}
        for name, side in (("sum", answer), ("mean", answer.mean))
    }
    record = {
        "first": asked.first,
        "last": asked.last,
        **sides,
        "level": asked.level,
        "order": asked.order,
        "cut_to": cuts[-1] if len(cuts) == 1 else cuts,
        "cut_off_at_most": answer.cut_off,
        "as_of": answer.as_of,
        "guarantee": str(answer.guarantee),
    }
    return Result(record, _text(asked, sides, cuts, answer))


def _text(
    asked: RangeOptions, sides: dict[str, dict[str, float]], cuts: list[float], answer: RangeAnswer
) -> Parts:
    count = asked.last - asked.first + 1
    yield f"{count:,} values, from place {asked.first:,} to {asked.last:,} of {answer.as_of:,}:\n"
    for name, side in sides.items():
        reach = (side["high"] - side["low"]) / 2
        places = decimals(reach)
        value, more, low, high = (
            f"{number:z,.{places}f}" for number in (side["value"], reach, side["low"], side["high"])
        )
        about = f" ± {more}" if asked.order == "steady" else ""
        yield f"{name:>6}  {value}{about}   ({100 * asked.level:.10g}%: {low} to {high})"
    ends = " to ".join(f"{cut:,.10g}" for cut in dict.fromkeys((cuts[0], cuts[-1])))
    yield (
        f"\nOf values cut to {ends}; what was cut off makes the "
        f"true sum larger by {answer.cut_off:,.6g} at the very most."
    )
    yield f"{answer.guarantee}"
