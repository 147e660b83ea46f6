"""`sfumato lab accuracy` and `fan-out`: how accurate streams over a horizon are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from sfumato.cli import console, text_tables
from sfumato.cli.options import Json
from sfumato.errors import ConfigurationError

if TYPE_CHECKING:
    from sfumato.lab.accuracy import Comparison

__all__ = ["accuracy", "fan_out"]

_WAYS: Final = ("tree with ExSub", "tree", "snapshots", "online", "smoothed")


def accuracy(
    *,
    data: Annotated[
        str, typer.Option(help="A list of binary, category and sets.")
    ] = "binary,category,sets",
    changes: Annotated[str, typer.Option(help="A list of how many changes a stream has.")] = (
        "4,8,20"
    ),
    periods: Annotated[str, typer.Option(help="A list of horizons; 1024 takes minutes.")] = (
        "32,128"
    ),
    epsilon: Annotated[float, typer.Option(help="Privacy of a device's whole stream.")] = 1.0,
    simulated: Annotated[
        int, typer.Option(min=0, help="Also simulate each so often, 20,000 devices at a time.")
    ] = 0,
    sums: Annotated[
        bool, typer.Option("--sums", help="Sums over prefixes and ranges instead of means.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare Weave with the papers' hierarchy, exactly, on three kinds of streams.

    Squared errors of means, as multiples of the papers' configuration
    (ExSub as printed, even levels, one path) on the same streams; of
    uniform, moving and slow ones the largest multiple.

    Example:  sfumato lab accuracy --data category --changes 8 --periods 128
    """
    from sfumato.lab.accuracy import DATA, Comparison

    names = {"binary": "binary item", "category": "12-way category", "sets": "12-item sets"}
    for name in data.split(","):
        if name not in names:
            msg = f"--data has {name!r}; {', '.join(names)} are there."
            raise ConfigurationError(msg)
    cells = [
        Comparison(names[name], s, length, epsilon)
        for name in data.split(",")
        for s in _wholes("changes", changes)
        for length in _wholes("periods", periods)
    ]
    assert set(names.values()) == set(DATA)  # noqa: S101 -- one name for each kind
    records = []
    with console.progress() as bars:
        task = bars.add_task("Counting", total=len(cells))
        for cell in cells:
            records += _sums(cell) if sums else [_means(cell, simulated)]
            bars.advance(task)
    if as_json:
        console.print_json({"epsilon": epsilon, "cells": records})
        return
    ways = ("snapshots", "online") if sums else _WAYS
    _print(records, ways)
    console.say(
        "\nSquared error as a multiple of the papers' configuration on the same streams: the "
        "largest of\nuniform, moving and slow ones, and (full) if every stream makes all its "
        "changes.\nsnapshots: one look of each device and nothing else; what online gains beyond "
        "that is Weave's."
    )


def _wholes(name: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError as error:
        msg = f"--{name} is {text!r}; a list of whole numbers such as 4,8 is expected."
        raise ConfigurationError(msg) from error


def _means(cell: Comparison, repeats: int) -> dict[str, Any]:
    from sfumato.lab.accuracy import FULL
    from sfumato.simulation.populations import LIVES

    found: dict[str, Any] = {name: cell.exact(name) for name in (*LIVES, FULL)}
    record = _record(cell, "means", found)
    if repeats:
        record["simulated"] = {
            life: {
                way: {"error": error, "standard_error": spread}
                for way, (error, spread) in cell.simulated(life, repeats=max(repeats, 2)).items()
            }
            for life in LIVES
        }
    return record


def _sums(cell: Comparison) -> list[dict[str, Any]]:
    from sfumato.lab.accuracy import FULL
    from sfumato.simulation.populations import LIVES

    return [
        _record(cell, asked, {name: cell.sums(asked, name) for name in (*LIVES, FULL)})
        for asked in ("prefix", "ranges")
    ]


def _record(cell: Comparison, queries: str, found: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Return n times the errors, and the multiples of the papers'."""
    from sfumato.lab.accuracy import FULL

    ratios = {
        name: {way: error / errors["papers"] for way, error in errors.items()}
        for name, errors in found.items()
    }
    lives = [name for name in found if name != FULL]
    return {
        "data": cell.data,
        "changes": cell.changes,
        "periods": cell.periods,
        "queries": queries,
        "errors": found,
        "ratios": {
            way: max(ratios[life][way] for life in lives) for way in found[FULL] if way != "papers"
        },
        "full": {way: ratio for way, ratio in ratios[FULL].items() if way != "papers"},
    }


def _print(records: list[dict[str, Any]], ways: tuple[str, ...]) -> None:
    from sfumato.lab.accuracy import FULL
    from sfumato.simulation.populations import LIVES

    table = text_tables.table()
    for name in ("data", "queries"):
        table.add_column(name)
    full = [way for way in ways if way not in ("snapshots", "smoothed")]
    for name in ("s", "T", "papers' n MSE", *ways, *(f"{way}, full" for way in full)):
        table.add_column(name, justify="right")
    simulated = [record for record in records if "simulated" in record]
    for record in records:
        table.add_row(
            record["data"],
            record["queries"],
            str(record["changes"]),
            str(record["periods"]),
            f"{record['errors'][FULL]['papers']:,.0f}",
            *(f"{record['ratios'][way]:.3f}" for way in ways),
            *(f"{record['full'][way]:.3f}" for way in full),
        )
    console.out().print(table)
    if not simulated:
        return
    console.say("\nSimulated n MSE (± standard error) and, in brackets, the exact one", "bold")
    table = text_tables.table()
    for name in ("data", "s", "T", "streams", "papers", "online", "smoothed"):
        table.add_column(name, justify="left" if name in ("data", "streams") else "right")
    for record in simulated:
        for life in LIVES:
            shown = [
                f"{cell['error']:.0f} ± {cell['standard_error']:.0f} "
                f"({record['errors'][life][way]:.0f})"
                for way, cell in record["simulated"][life].items()
            ]
            place = (record["data"], str(record["changes"]), str(record["periods"]))
            table.add_row(*place, life, *shown)
    console.out().print(table)


def fan_out(*, as_json: Json = False) -> None:
    """Repeat the papers' table of fan-outs: the largest error of a million devices' means.

    128 periods, 8 changes, a binary item; ExSub as printed on even levels,
    decoded by one path. The paper's figures are beside ours.

    Example:  sfumato lab fan-out
    """
    from sfumato.lab.accuracy import PRINTED, fan_out_errors

    rows: list[dict[str, float]] = []
    with console.progress() as bars:
        task = bars.add_task("Drawing", total=sum(map(len, PRINTED.values())))
        for epsilon, printed in PRINTED.items():
            for base, paper in printed.items():
                ours, usable = fan_out_errors(epsilon, base)
                rows.append(
                    {
                        "epsilon": epsilon,
                        "fan_out": base,
                        "printed": paper,
                        "ours": ours,
                        "ratio": ours / paper,
                        "usable_levels_only": usable,
                    }
                )
                bars.advance(task)
    if as_json:
        console.print_json(rows)
        return
    table = text_tables.table()
    for name in ("epsilon", "fan-out", "printed", "ours", "ours / printed", "usable levels only"):
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(
            f"{row['epsilon']:g}",
            str(row["fan_out"]),
            f"{row['printed']:.3g}",
            f"{row['ours']:.3g}",
            f"{row['ratio']:.2f}",
            f"{row['usable_levels_only']:.3g}",
        )
    console.out().print(table)
