"""`sfumato lab`: experiments that anyone can repeat."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import accuracy, console, files, tables
from sfumato.cli.options import Force, Json
from sfumato.errors import ConfigurationError

if TYPE_CHECKING:
    from sfumato.lab.values import Row

__all__ = ["app"]

app = typer.Typer(help="Repeat the experiments of the papers, and ours.", no_args_is_help=True)
app.command()(accuracy.accuracy)
app.command("fan-out")(accuracy.fan_out)

_METHODS = "tuned,tops,h16_consistent,h16,h2,pak_clipped,pak,zero"


@app.callback()
def lab() -> None:
    """Repeat the experiments of the papers, and ours."""


@app.command()
def values(  # noqa: PLR0913 - one argument for each option
    *,
    data: Annotated[
        Path | None,
        typer.Option(
            help="A folder with pos.parquet and nyc_taxi_2023_01.parquet; made-up streams if none.",
            show_default=False,
        ),
    ] = None,
    epsilon: Annotated[str, typer.Option(help="A list of epsilons.")] = "0.01,0.03,0.1",
    methods: Annotated[str, typer.Option(help="A list of methods.")] = _METHODS,
    repeats: Annotated[int, typer.Option(help="How often each is repeated.", min=1)] = 20,
    holdout: Annotated[int, typer.Option(help="Values held out for the threshold.")] = 1 << 16,
    limit: Annotated[int, typer.Option(help="The longest range.")] = 1 << 20,
    example: Annotated[
        Path | None,
        typer.Option(help="Write a made-up stream to this CSV instead.", show_default=False),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the errors.", show_default=False)
    ] = None,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Measure how accurate published streams are: random ranges, by method and part.

    Example:  sfumato lab values --repeats 5 --epsilon 0.1
    """
    if example is not None:
        _write_example(example, force=force)
        return
    if plot is not None:
        files.refuse_target(plot, files.PICTURES, force=force)
    from sfumato.lab import values as experiment

    wanted = _numbers(epsilon)
    chosen = methods.split(",")
    streams = experiment.streams(data)
    rows: list[Row] = []
    single: list[Row] = []
    with console.progress() as bars:
        work = len(streams) * len(wanted) * (len(chosen) + 1)
        task = bars.add_task("", total=work)

        def step(what: str) -> None:
            bars.update(task, advance=1, description=what)

        for stream in streams:
            rows += experiment.compare(
                stream, chosen, wanted, repeats, holdout=holdout, limit=limit, step=step
            )
            for each in wanted:
                step(f"{stream.name}, epsilon {each:g}, parts")
                single += experiment.parts(stream, each, repeats, limit=limit)
    if plot is not None:
        _draw(rows, plot, force=force)
    if as_json:
        console.print_json(
            {"methods": [asdict(row) for row in rows], "parts": [asdict(row) for row in single]}
        )
        return
    console.say(f"Errors of {experiment.RANGES} random ranges, {repeats} repeats", "bold")
    _print(rows, "tuned")
    console.say("\nTrees alone, values and truth cut at the 95% quantile", "bold")
    _print(single, "tuned")


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        msg = f"epsilon is {text!r}; a list of numbers such as 0.01,0.1 is expected."
        raise ConfigurationError(msg) from error


def _print(rows: list[Any], reference: str) -> None:
    table = tables.table()
    for name in ("stream", "epsilon", "method"):
        table.add_column(name)
    for name in ("threshold", "MSE", "x ours", "MAE", "MMSE", "MMAE", "covered"):
        table.add_column(name, justify="right")
    ours = {(row.stream, row.epsilon): row.mse for row in rows if row.method == reference}
    for row in rows:
        best = ours.get((row.stream, row.epsilon))
        table.add_row(
            row.stream,
            f"{row.epsilon:g}",
            row.method,
            f"{row.threshold:,.0f}",
            f"{row.mse:.3g}",
            f"{row.mse / best:.3g}" if best else "",
            f"{row.mae:.3g}",
            f"{row.mmse:.3g}",
            f"{row.mmae:.3g}",
            f"{row.covered:.1%}" if row.covered else "",
        )
    console.out().print(table)


def _draw(rows: list[Any], plot: Path, *, force: bool) -> None:
    from sfumato.cli import plots

    with console.waiting("Drawing"), files.complete_or_absent(plot, force=force) as file:
        plots.errors(rows).savefig(file, format=plot.suffix.lower()[1:])


def _write_example(path: Path, *, force: bool) -> None:
    from sfumato.lab.values import example
    from sfumato.randomness import seeded

    with files.complete_or_absent(path, force=force) as file:
        amounts = example(600_000, seeded(1))
        file.write(b"amount\n" + b"".join(b"%.2f\n" % amount for amount in amounts.tolist()))
    console.say(f"600,000 made-up amounts are in {path}.")
    console.say(f"\nNext:  sfumato release {path} --epsilon 0.1 --bound 300 --unit 0.01 -o out.csv")
