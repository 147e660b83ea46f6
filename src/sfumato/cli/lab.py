"""`sfumato lab`: experiments that anyone can repeat."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato import files
from sfumato.cli import console, lab_accuracy, text_tables
from sfumato.cli.options import Force, Json
from sfumato.errors import ConfigurationError

if TYPE_CHECKING:
    from sfumato.lab.published_accuracy import Gain, MethodErrors, PartGain

__all__ = ["app"]

app = typer.Typer(help="Repeat the experiments of the papers, and ours.", no_args_is_help=True)
app.command()(lab_accuracy.accuracy)
app.command("fan-out")(lab_accuracy.fan_out)

METRICS = ("mse", "mae", "mmse", "mmae")
_METHODS = "tuned,tops,smooth_quantile,pak_clipped,pak,zero"


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
    methods: Annotated[
        str, typer.Option(help="A list of methods; zero and oracle are two more.")
    ] = _METHODS,
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
    from sfumato.datasets.amount_streams import amount_streams
    from sfumato.lab import published_accuracy as experiment

    wanted = _numbers(epsilon)
    chosen = methods.split(",")
    streams = amount_streams(data)
    rows: list[MethodErrors] = []
    single: list[MethodErrors] = []
    with console.progress() as bars:
        work = len(streams) * len(wanted) * (len(chosen) + len(experiment.PARTS))
        task = bars.add_task("", total=work)

        def step(what: str) -> None:
            bars.update(task, advance=1, description=what)

        for stream in streams:
            rows += experiment.compare(
                stream, chosen, wanted, repeats, holdout=holdout, limit=limit, step=step
            )
            for each in wanted:
                single += experiment.parts(stream, each, repeats, limit=limit, step=step)
    if plot is not None:
        _draw(rows, plot, force=force)
    if as_json:
        console.print_json(
            {
                "methods": [asdict(row) for row in rows],
                "gains": [asdict(gain) for gain in experiment.gains(rows)],
                "parts": [asdict(row) for row in single],
                "part_gains": [asdict(gain) for gain in experiment.part_gains(single)],
            }
        )
        return
    console.say(f"Errors of {experiment.RANGES} random ranges, {repeats} repeats", "bold")
    _print(rows, "tuned")
    console.say("\nTrees alone, values and truth cut at the 95% quantile", "bold")
    _print(single, "tuned")
    _print_gains(experiment.gains(rows), experiment.part_gains(single))


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        msg = f"epsilon is {text!r}; a list of numbers such as 0.01,0.1 is expected."
        raise ConfigurationError(msg) from error


def _print(rows: list[Any], reference: str) -> None:
    table = text_tables.table()
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


def _print_gains(gains: list[Gain], parts: list[PartGain]) -> None:
    if gains:
        console.say("\nHow many times smaller errors are", "bold")
        table = text_tables.table()
        for name in ("stream", "epsilon"):
            table.add_column(name, no_wrap=True)
        over = ("PAK / ToPS", "clipped / ToPS", "PAK / ours")
        for name in (*over, "ToPS / ours: MSE", "beyond noise", "MAE", "MMSE", "MMAE"):
            table.add_column(name, justify="right")
        for gain in gains:
            table.add_row(
                gain.stream,
                f"{gain.epsilon:g}",
                f"10^{math.log10(gain.tops_over_pak):.1f}",
                f"10^{math.log10(gain.tops_over_pak_clipped):.1f}",
                f"10^{math.log10(gain.ours_over_pak):.1f}",
                f"{gain.mse:.3g}",
                f"{gain.beyond_noise:+.1f} s.e.",
                f"{gain.mae:.3g}",
                f"{gain.mmse:.3g}",
                f"{gain.mmae:.3g}",
            )
        means = [geometric_mean(getattr(gain, name) for gain in gains) for name in METRICS]
        mse, *others = (f"{mean:.3g}" for mean in means)
        table.add_row("geometric mean", "", "", "", "", mse, "", *others)
        console.out().print(table)
    console.say("\nWhat each part of the tree gains in MSE", "bold")
    table = text_tables.table()
    for name in ("stream", "epsilon"):
        table.add_column(name, no_wrap=True)
    for name in ("fan-out 16", "consistency", "smoothing", "ours"):
        table.add_column(name, justify="right")
    for part in parts:
        ratios = (part.fanout, part.consistency, part.smoothing, part.ours)
        table.add_row(part.stream, f"{part.epsilon:g}", *(f"{ratio:.3g}" for ratio in ratios))
    table.add_row("the paper says", "", "about 5", "about 2", "about 10", "")
    console.out().print(table)


def _draw(rows: list[Any], plot: Path, *, force: bool) -> None:
    from sfumato import plots

    with console.waiting("Drawing"), files.complete_or_absent(plot, force=force) as file:
        plots.errors(rows).savefig(file, format=plot.suffix.lower()[1:])


def _write_example(path: Path, *, force: bool) -> None:
    from sfumato.datasets.amount_streams import example_amounts
    from sfumato.randomness import seeded

    with files.complete_or_absent(path, force=force) as file:
        amounts = example_amounts(600_000, seeded(1))
        file.write(b"amount\n" + b"".join(b"%.2f\n" % amount for amount in amounts.tolist()))
    console.say(f"600,000 made-up amounts are in {path}.")
    console.say(f"\nNext:  sfumato release {path} --epsilon 0.1 --bound 300 --unit 0.01 -o out.csv")
