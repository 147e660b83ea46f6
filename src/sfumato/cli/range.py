"""`sfumato range`: the sum or mean of any range of a released stream."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato import files
from sfumato.cli import console
from sfumato.cli.options import Json
from sfumato.core.quantity import decimals

__all__ = ["range_"]


def range_(
    source: Annotated[
        Path,
        typer.Argument(metavar="RELEASED", help="What release has written.", show_default=False),
    ],
    first: Annotated[int, typer.Argument(help="The first place, from 1.", show_default=False)],
    last: Annotated[int, typer.Argument(help="The last place.", show_default=False)],
    *,
    level: Annotated[float, typer.Option(help="How often intervals cover.")] = 0.95,
    as_json: Json = False,
) -> None:
    """Say the sum and the mean of the values from one place to another.

    Any number of questions costs no privacy. The file may still be growing.

    Example:  sfumato range fares.csv 100001 200000
    """
    stream = files.read_released(source)
    answer = stream.sum(first, last, level)
    mean = answer.mean
    cuts = sorted({cut * stream.unit for cut, _ in stream.cuts(first, last)})
    if as_json:
        console.print_json(
            {
                "first": first,
                "last": last,
                "sum": {"value": answer.value, "low": answer.low, "high": answer.high},
                "mean": {"value": mean.value, "low": mean.low, "high": mean.high},
                "level": level,
                "cut_to": cuts[-1] if len(cuts) == 1 else cuts,
                "cut_off_at_most": answer.cut_off,
                "as_of": answer.as_of,
                "guarantee": str(answer.guarantee),
            }
        )
        return
    percent = f"{100 * level:.10g}%"
    count = last - first + 1
    console.say(f"{count:,} values, from place {first:,} to {last:,} of {answer.as_of:,}:\n")
    for name, found in (("sum", answer), ("mean", mean)):
        reach = (found.high - found.low) / 2
        places = decimals(reach)
        value, more, low, high = (
            f"{number:z,.{places}f}" for number in (found.value, reach, found.low, found.high)
        )
        console.say(f"{name:>6}  {value} ± {more}   ({percent}: {low} to {high})")
    shown = " to ".join(f"{cut:,.10g}" for cut in dict.fromkeys((cuts[0], cuts[-1])))
    console.say(
        f"\nOf values cut to {shown}; what was cut off makes the "
        f"true sum larger by {answer.cut_off:,.6g} at the very most."
    )
    console.say(f"{answer.guarantee}")
