"""`sfumato lab`: experiments that anyone can repeat."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import geometric_mean
from typing import TYPE_CHECKING, Annotated, Any

from rich.table import Table

from sfumato import files, plots
from sfumato.cli import console, text_tables
from sfumato.cli.command import Count, Parts, Picture, Result, Target
from sfumato.errors import ConfigurationError

if TYPE_CHECKING:
    from sfumato.lab.published_accuracy import Gain, PartGain

__all__ = ["values"]

METRICS = ("mse", "mae", "mmse", "mmae")


@dataclass(frozen=True)
class ValuesOptions:
    """The streams and methods to measure."""

    data: Path | None = None
    """A folder with pos.parquet and nyc_taxi_2023_01.parquet; made-up streams if none."""
    epsilon: str = "0.01,0.03,0.1"
    """A list of epsilons."""
    methods: str = "tuned,tops,smooth_quantile,pak_clipped,pak,zero"
    """A list of methods; zero and oracle are two more."""
    repeats: Count = 20
    """How often each is repeated."""
    holdout: int = 1 << 16
    """Values held out for the threshold."""
    limit: int = 1 << 20
    """The longest range."""
    example: Annotated[Path, Target()] | None = None
    """Write a made-up stream to this CSV instead."""
    plot: Picture | None = None
    """Also draw the errors."""
    force: bool = False


def values(asked: ValuesOptions) -> Result:
    """Measure how accurate published streams are: random ranges, by method and part.

    Example:  sfumato lab values --repeats 5 --epsilon 0.1
    """
    if asked.example is not None:
        return _example(asked.example, force=asked.force)
    from sfumato.datasets.amount_streams import amount_streams
    from sfumato.lab import published_accuracy as experiment

    epsilons, methods = _numbers(asked.epsilon), asked.methods.split(",")
    streams = amount_streams(asked.data)
    rows: list[Any] = []
    single: list[Any] = []
    work = len(streams) * len(epsilons) * (len(methods) + len(experiment.PARTS))
    with console.bar("", work) as update:

        def step(what: str) -> None:
            update(advance=1, description=what)

        for stream in streams:
            rows += experiment.compare(
                stream,
                methods,
                epsilons,
                asked.repeats,
                holdout=asked.holdout,
                limit=asked.limit,
                step=step,
            )
            for epsilon in epsilons:
                single += experiment.parts(
                    stream, epsilon, asked.repeats, limit=asked.limit, step=step
                )
    gains, part_gains = experiment.gains(rows), experiment.part_gains(single)
    return Result(
        {
            "methods": [*map(asdict, rows)],
            "gains": [*map(asdict, gains)],
            "parts": [*map(asdict, single)],
            "part_gains": [*map(asdict, part_gains)],
        },
        (
            console.bold(f"Errors of {experiment.RANGES} random ranges, {asked.repeats} repeats"),
            _errors(rows),
            console.bold("\nTrees alone, values and truth cut at the 95% quantile"),
            _errors(single),
            *_gains(gains),
            console.bold("\nWhat each part of the tree gains in MSE"),
            _part_gains(part_gains),
        ),
        picture=lambda: plots.errors(rows),
    )


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError as error:
        msg = f"epsilon is {text!r}; a list of numbers such as 0.01,0.1 is expected."
        raise ConfigurationError(msg) from error


def _errors(rows: list[Any]) -> Table:
    ours = {(row.stream, row.epsilon): row.mse for row in rows if row.method == "tuned"}

    def ratio(row: Any) -> str:
        best = ours.get((row.stream, row.epsilon))
        return f"{row.mse / best:.3g}" if best else ""

    columns: dict[str, Any] = {
        "stream": "{stream}",
        "epsilon": "{epsilon:g}",
        "method": "{method}",
        ">threshold": "{threshold:,.0f}",
        ">MSE": "{mse:.3g}",
        ">x ours": ratio,
        ">MAE": "{mae:.3g}",
        ">MMSE": "{mmse:.3g}",
        ">MMAE": "{mmae:.3g}",
        ">covered": lambda row: f"{row.covered:.1%}" if row.covered else "",
    }
    return text_tables.listing(rows, columns)


def _gains(gains: list[Gain]) -> Parts:
    if not gains:
        return
    yield console.bold("\nHow many times smaller errors are")
    headings = ["stream", "epsilon", ">PAK / ToPS", ">clipped / ToPS", ">PAK / ours"]
    headings += [">ToPS / ours: MSE", ">beyond noise", ">MAE", ">MMSE", ">MMAE"]
    rows = []
    for gain in gains:
        over = (gain.tops_over_pak, gain.tops_over_pak_clipped, gain.ours_over_pak)
        mse, *others = (f"{getattr(gain, name):.3g}" for name in METRICS)
        powers = (f"10^{math.log10(ratio):.1f}" for ratio in over)
        noise = f"{gain.beyond_noise:+.1f} s.e."
        rows.append((gain.stream, f"{gain.epsilon:g}", *powers, mse, noise, *others))
    means = (geometric_mean(getattr(gain, name) for gain in gains) for name in METRICS)
    mse, *others = (f"{mean:.3g}" for mean in means)
    rows.append(("geometric mean", "", "", "", "", mse, "", *others))
    yield text_tables.grid(headings, rows)


def _part_gains(parts: list[PartGain]) -> Table:
    rows = []
    for part in parts:
        ratios = (part.fanout, part.consistency, part.smoothing, part.ours)
        rows.append((part.stream, f"{part.epsilon:g}", *(f"{ratio:.3g}" for ratio in ratios)))
    rows.append(("the paper says", "", "about 5", "about 2", "about 10", ""))
    headings = ("stream", "epsilon", ">fan-out 16", ">consistency", ">smoothing", ">ours")
    return text_tables.grid(headings, rows)


def _example(path: Path, *, force: bool) -> Result:
    """Write a made-up stream."""
    from sfumato.datasets.amount_streams import example_amounts
    from sfumato.randomness import seeded

    with files.complete_or_absent(path, force=force) as file:
        amounts = example_amounts(600_000, seeded(1))
        file.write(b"amount\n" + b"".join(b"%.2f\n" % amount for amount in amounts.tolist()))
    return Result(
        {"output": str(path), "values": 600_000},
        [f"600,000 made-up amounts are in {path}."],
        next_command=f"sfumato release {path} --epsilon 0.1 --bound 300 --unit 0.01 -o out.csv",
    )
