"""`sfumato release --time`: what it refuses, does and says where values are published by time."""

from __future__ import annotations

import shlex
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from sfumato import files, plots
from sfumato.cli import console, text_tables
from sfumato.cli.command import Parts, Result
from sfumato.core.duration import length
from sfumato.errors import InputError
from sfumato.files.time_axis import BY_POSITION

if TYPE_CHECKING:
    from sfumato.cli.release import ReleaseOptions
    from sfumato.files import ReleaseLedger
    from sfumato.streams.published import ReleasedByTime
    from sfumato.streams.published.amounts import Amounts

__all__ = ["dwarfed", "published", "refuse"]

_DWARFED: Final = 0.25  # the part of the whole sum that its interval may reach
_REFUSED: Final = {
    "follow": "all rows must be there, as they may come in any order",
    "group": "one stream is published",
    "person": "rows are protected, not people",
    "holdout": "all values choose the threshold and are published, with the share that --reuse has",
    "renew": "one threshold holds for all periods",
    "delta": "noise is laplace",
    "limit": "ranges are as long as the grid",
    "block": "each period is a block, whose length --every has",
    "period": "there are no blocks that could hide a cycle",
}
"""Options that make no sense with a time axis, and why."""


def refuse(asked: ReleaseOptions) -> None:
    """Raise if a time axis and another option exclude each other."""
    axis = asked.axis
    if axis.time is None:
        for field in fields(axis):
            if getattr(axis, field.name) != getattr(BY_POSITION, field.name):
                name = field.name.strip("_").replace("_", "-")
                value = getattr(axis, field.name)
                raise InputError(f"{name} is {value!r}; it needs --time, the column of times.")
        return
    for name, reason in _REFUSED.items():
        value = getattr(asked, name)
        if value is not None and value is not False and value != 0:
            raise InputError(f"{name} is {value!r}; with --time {reason}.")
    if asked.method != "tuned":
        raise InputError(f"method is {asked.method!r}; with --time only tuned is there.")
    if len(asked.columns) > 1:
        raise InputError(f"there are {len(asked.columns)} columns; with --time give one.")
    if asked.threshold is not None and asked.reuse is not None:
        raise InputError(
            f"reuse is {asked.reuse:g}; a threshold that is known takes no share of epsilon."
        )


def published(asked: ReleaseOptions, amounts: Amounts, ledger: ReleaseLedger) -> Result:
    """Publish by time, and return what is said of it."""
    column = asked.columns[0] if asked.columns else None
    cut = asked.threshold
    with console.bar("Reading", 1.0) as update:
        released = files.publish_by_time(
            files.Origin(asked.source, column, dialect=asked.dialect),
            asked.axis,
            asked.output,
            amounts,
            epsilon=asked.epsilon,
            threshold=None if cut is None else max(1, amounts.in_units(cut)),
            reuse=0.2 if asked.reuse is None else asked.reuse,
            force=asked.force,
            ledger=ledger,
            moved=lambda share, count: update(completed=share, count=count),
        )
    return _result(released, asked)


def _result(released: ReleasedByTime, asked: ReleaseOptions) -> Result:
    release, grid, stream = released.stream.release, released.grid, released.stream
    whole = released.sum(1, grid.periods)
    first, last = grid.clock.text(grid.start), grid.clock.text(int(grid.edges[-2]))
    record: dict[str, Any] = {
        "output": str(asked.output),
        "rows": released.rows,
        "times": release.times,
        "periods": grid.periods,
        "every": grid.every,
        "from": first,
        "until": grid.clock.text(grid.end),
        "zone": grid.zone,
        "threshold": stream.threshold * stream.unit,
        "range_error": release.expected_error(stream.threshold, grid.periods) * stream.unit,
        "configuration": release.configuration(),
        "guarantee": str(stream.guarantee),
        "sum": {"value": whole.value, "low": whole.low, "high": whole.high},
    }
    if released.counts is not None:
        record["counted"] = int(released.counts.sum())
        record["empty_periods"] = int((released.counts == 0).sum())
    question = shlex.join(["sfumato", "range", str(asked.output), first[:10], last[:10]])
    return Result(
        record,
        _text(record, length(grid.every)),
        picture=lambda: plots.timeline(released),
        next_command=question,
    )


def _text(record: dict[str, Any], every: str) -> Parts:
    yield f"{record['periods']:,} sums, of {every} each, are in {record['output']}."
    yield f"{record['guarantee']}\n"
    facts = {
        "from": str(record["from"]),
        "until": str(record["until"]),
        "rows": f"{record['rows']:,}",
        "values are cut to": f"{record['threshold']:,.10g}",
        "standard error, random ranges": f"{record['range_error']:,.3g}",
    }
    if "counted" in record:
        facts["rows with a time in the grid"] = f"{record['counted']:,}"
        facts["periods without rows, whose sum is 0"] = f"{record['empty_periods']:,}"
    yield text_tables.facts(facts)
    yield from dwarfed(record["sum"])


def dwarfed(whole: dict[str, float]) -> Parts:
    """Yield a warning if the sum of everything is smaller than its noise."""
    reach = (whole["high"] - whole["low"]) / 2
    if reach > _DWARFED * abs(whole["value"]):
        yield (
            f"\nNoise dwarfs the data: the sum of all of them is {whole['value']:,.3g} ± "
            f"{reach:,.3g}. More values or a larger epsilon would help."
        )
