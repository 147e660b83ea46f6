"""`sfumato lab accuracy` and `fan-out`: how accurate streams over a horizon are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

import typer

from sfumato.cli import console, text_tables
from sfumato.cli.command import Parts, Result
from sfumato.errors import ConfigurationError

__all__ = ["accuracy", "fan_out"]

_DATA: Final = {"binary": "binary item", "category": "12-way category", "sets": "12-item sets"}
Number = TypeVar("Number", int, float)
_WAYS: Final = ("tree with ExSub", "tree", "snapshots", "online", "smoothed")


@dataclass(frozen=True)
class AccuracyOptions:
    """The streams to compare on."""

    data: str = ",".join(_DATA)
    """A list of binary, category and sets."""
    changes: str = "4,8,20"
    """A list of how many changes a stream has."""
    periods: str = "32,128"
    """A list of horizons; 1024 takes minutes."""
    epsilon: str = "1"
    """A list of the privacy of a device's whole stream."""
    simulated: Annotated[int, typer.Option(min=0)] = 0
    """Also simulate each so often, 20,000 devices at a time."""
    sums: bool = False
    """Sums over prefixes and ranges instead of means."""


def accuracy(asked: AccuracyOptions) -> Result:
    """Compare Weave with the papers' hierarchy, exactly, on three kinds of streams.

    Squared errors of means, as multiples of the papers' configuration
    (ExSub as printed, even levels, one path) on the same streams; of
    uniform, moving and slow ones the largest multiple.

    Example:  sfumato lab accuracy --data category --changes 8 --periods 128
    """
    from sfumato.lab.accuracy import Comparison

    for name in asked.data.split(","):
        if name not in _DATA:
            raise ConfigurationError(f"--data has {name!r}; {', '.join(_DATA)} are there.")
    cells = [
        Comparison(_DATA[name], changes, periods, epsilon)
        for name in asked.data.split(",")
        for changes in _listed("changes", asked.changes, int)
        for periods in _listed("periods", asked.periods, int)
        for epsilon in _listed("epsilon", asked.epsilon, float)
    ]
    records = []
    for cell in console.each(cells, "Counting"):
        if asked.sums:
            records += [cell.of_sums(workload) for workload in ("prefix", "ranges")]
        else:
            records.append(cell.of_means(asked.simulated))
    ways = ("snapshots", "online") if asked.sums else _WAYS
    return Result({"cells": records}, _text(records, ways))


def _listed(name: str, text: str, number: type[Number]) -> list[Number]:
    try:
        return [number(part) for part in text.split(",")]
    except ValueError as error:
        words = "whole numbers such as 4,8" if number is int else "numbers such as 0.3,1"
        raise ConfigurationError(f"--{name} is {text!r}; a list of {words} is expected.") from error


def _text(records: list[dict[str, Any]], ways: tuple[str, ...]) -> Parts:
    from sfumato.lab.accuracy import FULL

    full = [way for way in ways if way not in ("snapshots", "smoothed")]
    columns: dict[str, Any] = {
        "data": "{data}",
        "queries": "{queries}",
        ">s": "{changes}",
        ">T": "{periods}",
        ">epsilon": "{epsilon:g}",
        ">papers' n MSE": lambda record: f"{record['errors'][FULL]['papers']:,.0f}",
        **{f">{way}": f"{{ratios[{way}]:.3f}}" for way in ways},
        **{f">{way}, full": f"{{full[{way}]:.3f}}" for way in full},
        "best": _best,
    }
    yield text_tables.listing(records, columns)
    simulated = [row for record in records for row in _simulated(record)]
    if simulated:
        yield console.bold("\nSimulated n MSE (± standard error) and, in brackets, the exact one")
        headings = ("data", ">s", ">T", "streams", ">papers", ">online", ">smoothed")
        yield text_tables.grid(headings, simulated)
    yield (
        "\nSquared error as a multiple of the papers' configuration on the same streams: the "
        "largest of\nuniform, moving and slow ones, and (full) if every stream makes all its "
        "changes.\nsnapshots: one look of each device and nothing else; what online gains beyond "
        "that is Weave's.\nbest: of the ways with final answers; in brackets how far online is "
        "behind, where it is not the best."
    )


def _best(record: dict[str, Any]) -> str:
    """Return the ways that are best on some kind of streams, and how far online is behind them."""
    behind: dict[str, float] = {}
    for life, way in record["best"].items():
        behind[way] = max(behind.get(way, 1.0), record["behind"][life])
    return ", ".join(
        way if ratio < 1.0005 else f"{way} ({ratio:.2f})" for way, ratio in sorted(behind.items())
    )


def _simulated(record: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each kind of streams that was simulated."""
    for life, errors in record.get("simulated", {}).items():
        compared = (
            f"{cell['error']:.0f} ± {cell['standard_error']:.0f} "
            f"({record['errors'][life][way]:.0f})"
            for way, cell in errors.items()
        )
        yield record["data"], str(record["changes"]), str(record["periods"]), life, *compared


def fan_out() -> Result:
    """Repeat the papers' table of fan-outs: the largest error of a million devices' means.

    128 periods, 8 changes, a binary item; ExSub as printed on even levels,
    decoded by one path. The paper's figures are beside ours.

    Example:  sfumato lab fan-out
    """
    from sfumato.lab.accuracy import PRINTED, fan_out_errors

    cases = [(epsilon, *case) for epsilon, row in PRINTED.items() for case in row.items()]
    rows = []
    for epsilon, base, paper in console.each(cases, "Drawing"):
        ours, usable = fan_out_errors(epsilon, base)
        row = {"epsilon": epsilon, "fan_out": base, "printed": paper, "ours": ours}
        rows.append(row | {"ratio": ours / paper, "usable_levels_only": usable})
    columns = {
        ">epsilon": "{epsilon:g}",
        ">fan-out": "{fan_out}",
        ">printed": "{printed:.3g}",
        ">ours": "{ours:.3g}",
        ">ours / printed": "{ratio:.2f}",
        ">usable levels only": "{usable_levels_only:.3g}",
    }
    return Result(rows, [text_tables.listing(rows, columns)])
