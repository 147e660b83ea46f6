"""`sfumato fleet`: simulated devices that take part in a task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.cli import collectors, console
from sfumato.cli.dialects import Dialect
from sfumato.cli.options import Json, reads_tables
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.wire.published import Published

__all__ = ["fleet"]


@reads_tables
def fleet(
    address: Annotated[str, typer.Argument(help="Of the task, or of a collector that has one.")],
    *,
    devices: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="How many devices to simulate.")
    ] = 1000,
    data: Annotated[
        Path | None,
        typer.Option(
            help="CSV or Parquet with device, period and value; drawn with replacement.",
            show_default=False,
        ),
    ] = None,
    journals: Annotated[
        Path | None,
        typer.Option(help="A folder for the journals; in memory if none.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the streams; coins are always secret.")] = 1,
    as_json: Json = False,
    dialect: Dialect,
) -> None:
    """Let simulated devices take part in a task until it is over.

    Each is a real device with a journal of its own; only what it observes is
    replayed: the rows of --data, flights if the task asks for the cities of
    the demo, or made-up streams. They keep the task's time.

    Example:  sfumato fleet http://127.0.0.1:8080 --devices 2000
    """
    from sfumato.device.transport import Http, Unreachable
    from sfumato.lab.live_fleet import LiveFleet, replayed
    from sfumato.wire.published import Published

    task = collectors.task_of(address)
    try:
        published = Published.parse(Http().fetch(task))
    except Unreachable as error:
        raise InputError(f"{task} gives no task ({error}).") from None
    if journals is not None:
        journals.mkdir(parents=True, exist_ok=True)
    with console.waiting("Preparing what the devices will see"):
        recorded = None if data is None else _recorded(data, dialect, published)
        crowd = LiveFleet(published, replayed(published, devices, seed, recorded), journals)
    sent = refused = waiting = 0
    with console.progress() as bars:
        joining = bars.add_task("Devices joining", total=devices)
        for joined in crowd.join():
            bars.update(joining, completed=joined)
        bars.remove_task(joining)
        living = bars.add_task("Periods", total=crowd.periods, count=0)
        for tick in crowd.run():
            sent, refused, waiting = sent + tick.sent, refused + tick.refused, tick.waiting
            said = f"Period {tick.period}: {tick.problem or 'all is well'}"
            bars.update(living, advance=1, count=sent, description=said)
    crowd.close()
    if as_json:
        counts = {"sent": sent, "refused": refused, "waiting": waiting}
        console.print_json({"task": task, "devices": devices, **counts})
        return
    console.say(
        f"{devices:,} devices sent {sent:,} blurred reports in {crowd.periods} periods; "
        f"{refused:,} were refused and {waiting:,} still wait."
    )
    console.say(f"Next:  sfumato query {task}")


def _recorded(data: Path, dialect: Dialect, published: Published) -> Any:
    from sfumato.cli import streams
    from sfumato.cli.columns import Table
    from sfumato.lab.live_fleet import replayable

    return streams.read(Table(data, dialect), replayable(published), published.spec["periods"])
