"""`sfumato compare`: which mechanism to take for a question."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer
from rich.text import Text

from sfumato import files, planner
from sfumato.cli import console, lab_contest, parameters, text_tables
from sfumato.cli.options import Force, Json, reads_tables
from sfumato.errors import ConfigurationError
from sfumato.files import Dialect

__all__ = ["compare"]

_EPSILONS: Final = np.geomspace(0.1, 8, 40)


@reads_tables
def compare(  # noqa: PLR0913 - one for each option
    *,
    epsilon: Annotated[float, typer.Option(help="Privacy of one report.", show_default=False)],
    domain: Annotated[
        str | None,
        typer.Option(help="Shares of items: how many, or their labels.", show_default=False),
    ] = None,
    interval: Annotated[
        tuple[float, float] | None,
        typer.Option(help="The mean of numbers between these two.", show_default=False),
    ] = None,
    dimension: Annotated[
        int | None,
        typer.Option(
            help="Entries of a sparse vector of -1, 0 and 1: how many; needs --sparsity.",
            show_default=False,
        ),
    ] = None,
    sparsity: Annotated[
        int | None,
        typer.Option(help="How many of them are not zero, at most.", show_default=False),
    ] = None,
    goal: Annotated[
        str,
        typer.Option(
            help="What to estimate of each: its mean (value) or how often it is there (frequency)."
        ),
    ] = "value",
    devices: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many will report: 10,000 if left out, 200,000 of an endless stream.",
            show_default=False,
        ),
    ] = None,
    window: Annotated[
        int | None,
        typer.Option(
            help="Of an endless stream: over how many periods epsilon is spent; compares methods.",
            show_default=False,
        ),
    ] = None,
    stream: Annotated[
        str,
        typer.Option(help=f"With --window: streams, with commas: {', '.join(lab_contest.NAMES)}."),
    ] = "lns,sin,log",
    data: Annotated[
        Path | None,
        typer.Option(
            help="With --window: a .csv or .parquet with the columns device, period and value to "
            "take instead, or the folder of the taxi trips.",
            show_default=False,
        ),
    ] = None,
    periods: Annotated[
        int | None,
        typer.Option(min=1, help="With --window: how many at most.", show_default=False),
    ] = None,
    methods: Annotated[
        str | None,
        typer.Option(help="With --window: names, with commas; all.", show_default=False),
    ] = None,
    oracle: Annotated[str, typer.Option(help="With --window: auto, grr, oue or ada.")] = "auto",
    item: Annotated[
        str | None,
        typer.Option(
            help="With --window: whose events are to be found, or mean; what moves most.",
            show_default=False,
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="With --window: how often each is run.")] = 1,
    seed: Annotated[int, typer.Option(min=0, help="With --window: of streams and coins.")] = 1,
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Draw the error over epsilon, or of the methods: a .png, .svg or .pdf.",
            show_default=False,
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
    dialect: Dialect,
) -> None:
    """Compare all mechanisms for one question by exact error, bytes and time.

    With --window, compare all methods for an endless stream on simulated devices instead.

    Example:  sfumato compare --domain 128 --epsilon 1 --plot errors.png

    Example:  sfumato compare --window 20 --epsilon 1 --stream sin,flights --plot methods.png
    """
    if window is not None:
        asked = lab_contest.Contest(
            window=window,
            epsilon=epsilon,
            streams=stream,
            data=data,
            dialect=dialect,
            domain=None if domain is None else parameters.read("grr", "domain", domain),
            devices=devices,
            periods=periods,
            methods=methods,
            oracle=oracle,
            item=item,
            repeats=repeats,
            seed=seed,
        )
        lab_contest.compare_methods(asked, plot, force=force, as_json=as_json)
        return
    devices = devices or 10_000
    question = _question(domain, interval, dimension, sparsity, goal)
    if plot is not None:
        files.refuse_target(plot, files.PICTURES, force=force)
    with console.waiting("comparing"):
        found = planner.compare(epsilon=epsilon, **question)
        if plot is not None:
            _draw(question, plot, force=force)
    if as_json:
        console.print_json([_record(one, devices) for one in found])
        return
    _print(found, question, devices)
    if plot is not None:
        console.say(f"Written: {plot}")


def _question(
    domain: str | None,
    interval: tuple[float, float] | None,
    dimension: int | None,
    sparsity: int | None,
    goal: str,
) -> dict[str, Any]:
    entries = dimension is not None or sparsity is not None
    if (domain is not None) + (interval is not None) + entries != 1:
        raise ConfigurationError(
            "the question is not clear; give one of --domain (shares of items), --interval (the "
            "mean of a number) and --dimension with --sparsity (entries of a sparse vector)."
        )
    if entries:
        if dimension is None or sparsity is None:
            given, absent = "dimension", "sparsity"
            if dimension is None:
                given, absent = absent, given
            raise ConfigurationError(f"--{given} is given alone; --{absent} is needed, too.")
        return {"dimension": dimension, "sparsity": sparsity, "goal": goal}
    if interval is not None:
        return {"low": interval[0], "high": interval[1]}
    return {"domain": parameters.read("grr", "domain", str(domain))}


def _record(one: planner.Candidate, devices: int) -> dict[str, Any]:
    return one.mechanism.configuration() | {
        "mse": one.mse,
        "half_width": one.half_width(devices),
        "devices": devices,
        "report_bytes": one.report_bytes,
        "device_seconds": one.device_seconds,
        "server_seconds": one.server_seconds,
    }


def _print(found: Sequence[planner.Candidate], question: dict[str, Any], devices: int) -> None:
    sets = [one for one in found if not planner.answers(one.mechanism, **question)]
    best = found[0]
    shown = text_tables.table()
    shown.add_column("mechanism")
    error = "n x MSE, all entries" if "dimension" in question else "n x MSE"
    for heading in (error, "of the best", f"95%, {devices:,} devices", "bytes"):
        shown.add_column(heading, justify="right")
    shown.add_column("device µs", justify="right")
    shown.add_column("server µs", justify="right")
    for one in found:
        name = Text(one.mechanism.name, style="bold" if one is best else "")
        name.append("*" if one in sets else "")
        shown.add_row(
            name,
            f"{one.mse:.6g}",
            f"{one.mse / best.mse:.3f}x",
            f"± {one.half_width(devices):.3g}",
            f"{one.report_bytes:,}",
            f"{1e6 * one.device_seconds:.2f}",
            f"{1e6 * one.server_seconds:.2f}",
        )
    console.out().print(shown)
    for one in sets:
        console.say(f"\n* {one.mechanism.name} is for sets: entries that are there or not, no -1.")
    console.say(
        f"\nBest: {best.mechanism.name}. Errors are exact; times were measured just now, in a "
        "batch, and are only orders of magnitude."
    )
    console.say(f"{best.mechanism.guarantee}")
    options = parameters.as_options(best.mechanism)
    console.say(f"\nNext:  sfumato law {best.mechanism.name} {options}")


def _draw(question: dict[str, Any], target: Path, *, force: bool) -> None:
    from sfumato import plots

    curves: dict[str, list[float]] = {}
    for epsilon in _EPSILONS:
        for mechanism in planner.candidates(epsilon=float(epsilon), **question):
            if planner.answers(mechanism, **question):
                curves.setdefault(mechanism.name, []).append(mechanism.mse)
    asked = "a share" if "domain" in question else "the mean"
    if "dimension" in question:
        asked = "all entries together"
    figure = plots.curves(
        _EPSILONS,
        curves,
        title=f"Exact error of {asked}, by mechanism",
        subtitle="Mean squared error, in multiples of the least at each epsilon",
        label_across="epsilon of one report",
    )
    with files.complete_or_absent(target, force=force) as file:
        figure.savefig(file, format=target.suffix.lower()[1:])
