"""`sfumato plan`: what a task will tell, what it will cost, and what to change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from sfumato import catalog, planner
from sfumato.cli import console, tables, windows
from sfumato.cli.dialects import Dialect
from sfumato.cli.options import Json, reads_tables
from sfumato.core.duration import length
from sfumato.core.quantity import decimals
from sfumato.errors import InputError
from sfumato.wire.task import MOST_PEOPLE

if TYPE_CHECKING:
    from sfumato.planner import Option, Plan
    from sfumato.wire.task import Task

__all__ = ["plan"]

_QUERIES: Final = {
    "online": ("mean of a period", "when it closes"),
    "history": ("mean of a period", "once all have closed"),
    "prefix": ("sum from the first period on", "when its last period closes"),
    "ranges": ("sum over a range of periods", "when its last period closes"),
}
_SHORT: Final = {"online": "online", "history": "later", "prefix": "prefix", "ranges": "range"}


@reads_tables
def plan(
    task: Annotated[Path, typer.Argument(help="The task file.", show_default=False)],
    *,
    devices: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_PEOPLE,
            help="How many will take part; 100,000, or of a window as its file says.",
            show_default=False,
        ),
    ] = None,
    pilot: Annotated[
        Path | None,
        typer.Option(
            help="What is known of people's streams: a CSV or Parquet file with the columns "
            "device, period and value, or a histogram of how often they change, as `sfumato "
            "estimate -o` writes it (item, estimate).",
            show_default=False,
        ),
    ] = None,
    pilot_epsilon: Annotated[
        float | None,
        typer.Option(help="What the histogram cost those who were asked.", show_default=False),
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(
            help="How far a 95% interval may reach to each side: says what gets there.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
    dialect: Dialect,
) -> None:
    """Say what to expect of a task before any device takes part, and recommend how to run it.

    Example:  sfumato plan task.toml --devices 250000 --target 0.01
    """
    asked = catalog.read(task)
    if "window" in asked.design:
        _refuse_pilot(pilot)
        windows.plan(asked, devices, target, as_json=as_json)
        if not as_json:
            console.say(f"\nNext:  sfumato simulate {task}")
        return
    devices = devices or 100_000
    known = None if pilot is None else _pilot(pilot, asked, pilot_epsilon, dialect)
    if pilot is None and pilot_epsilon is not None:
        msg = f"--pilot-epsilon is {pilot_epsilon:g} and there is no pilot; name it with --pilot."
        raise InputError(msg)
    with console.noticing("planning") as notice:
        found = planner.plan(asked, devices, pilot=known, target=target, notice=notice)
    if as_json:
        console.print_json(_record(found))
        return
    _print(found)
    console.say(f"\nNext:  sfumato simulate {task} --devices {devices}")


def _refuse_pilot(pilot: Path | None) -> None:
    if pilot is not None:
        msg = f"--pilot is {pilot} where kind is 'window'; only a horizon takes one."
        raise InputError(msg)


def _pilot(path: Path, task: Task, epsilon: float | None, dialect: Dialect) -> planner.Pilot:
    from sfumato.cli import streams
    from sfumato.cli.columns import Kind, Table
    from sfumato.simulation.observed import Held
    from sfumato.streams.kinds import values_of

    values = values_of(task.values)
    table = Table(path, dialect)
    names = table.header()
    if "device" in names:
        if epsilon is not None:
            msg = f"--pilot-epsilon is {epsilon:g}; streams that are read as they are have none."
            raise InputError(msg)
        return planner.Pilot(values, streams.read(table, Held(values, task.periods)))
    if not {"item", "value"} <= set(names):
        msg = (
            f"{path} has the columns {', '.join(names)}; device, period and value, or item and "
            "value are expected."
        )
        raise InputError(msg)
    if epsilon is None or not epsilon > 0:
        given = "missing" if epsilon is None else f"{epsilon:g}"
        msg = f"--pilot-epsilon is {given}; what the histogram cost those who were asked."
        raise InputError(msg)
    cells = table.columns({name: (name, Kind.NUMBER) for name in ("item", "value")})
    counts, shares = cells["item"], cells["value"]
    if any(count is None or count != int(count) for count in counts) or None in shares:
        msg = f"{path} has an item that is no number of changes, or no estimate of it."
        raise InputError(msg)
    told = {int(count): float(share) for count, share in zip(counts, shares, strict=True)}
    return planner.Pilot.of_changes(values, task.periods, told, epsilon=epsilon)


# ---- for machines ----------------------------------------------------------------------------


def _record(found: Plan) -> dict[str, Any]:
    return {
        "task_id": found.task.task_id,
        "devices": found.devices,
        "recommended": found.recommended.plain(),
        "options": [_option_record(option) for option in found.options],
        "second_horizon": {
            "epsilon_spent": 2 * found.chosen.protocol.epsilon,
            "error_factor_at_equal_epsilon": found.second_horizon,
        },
        "target": None if found.reach is None else vars(found.reach),
        "pilot": {
            "people": found.pilot.people if found.pilot.is_data else None,
            "epsilon": found.pilot.epsilon,
            "beyond_changes": found.pilot.beyond(found.chosen.protocol.changes),
        },
        "reasons": planner.reasons(found),
        "warnings": planner.warnings(found),
        "guarantee": str(found.chosen.protocol.guarantee),
    }


def _option_record(option: Option) -> dict[str, Any]:
    return {
        "protocol": option.name,
        "decoder": option.decoder,
        "mechanism": option.protocol.mechanism,
        "carriers": list(option.carriers),
        "changes": option.protocol.changes,
        "mix": option.mix,
        "queries": {
            name: {
                "rmse": error.rmse,
                "half_width": option.half_width(name),
                "bias": error.squared_bias**0.5,
                "unknown": error.unknown,
            }
            for name, error in option.errors.items()
        },
        "messages": option.messages,
        "most_messages": option.most_messages,
        "payload_bytes": option.payload,
        "device_seconds_per_period": option.device_seconds,
        "forged_influence": option.influence,
    }


# ---- for people ------------------------------------------------------------------------------


def _print(found: Plan) -> None:
    task, best = found.task, found.chosen
    console.say(task.title, "bold")
    items = "1 item" if task.values.width == 1 else f"{task.values.width:,} items"
    console.say(
        f"{found.devices:,} devices; {task.values.kind} of {items}, "
        f"{task.periods} periods of {length(task.period_seconds)}."
        if task.values.kind != "binary"
        else f"{found.devices:,} devices; on or off, {task.periods} periods of "
        f"{length(task.period_seconds)}."
    )
    console.say(f"{best.protocol.guarantee}\n")
    console.say("Recommended", "bold")
    console.out().print(tables.facts(_facts(found)))
    console.say("\nWhat it will tell", "bold")
    console.out().print(_queries(best))
    console.say("\nAll that was tried", "bold")
    console.out().print(_options(found))
    console.say(
        "Errors are root mean squared ones, of shares (sums: of shares added up). mix: "
        "devices in % by span, s for snapshots. forger: how far one forged device can move a mean."
    )
    _list("Why", planner.reasons(found))
    if found.reach is not None:
        _list("To get there", _reached(found))
    _list("To know before", planner.warnings(found))


def _facts(found: Plan) -> dict[str, str]:
    best = found.chosen
    carried = " and ".join(best.carriers) or "none needed"
    facts = {
        "protocol": best.name,
        "mechanism": carried,
        "changes": str(best.protocol.changes),
        "mix": ", ".join(f"{span} {share:.0%}" for span, share in best.mix.items()),
        "messages": f"{best.messages:.3g} from a device on average, {best.most_messages} at most",
        "bytes": f"{best.payload:.3g} from a device on average, without envelopes",
        "time": f"{1e6 * best.device_seconds:.0f} µs in a period on the busiest devices, here",
    }
    if not best.protocol.aligned:
        pinned = ", ".join(f"{span} = {share:.4f}" for span, share in best.mix.items())
        facts["task file"] = f"mix = {{ {pinned} }}"
    return facts


def _queries(best: Option) -> Any:
    shown = tables.table()
    for heading in ("query", "answered"):
        shown.add_column(heading)
    for heading in ("RMSE", "95% interval"):
        shown.add_column(heading, justify="right")
    for name, error in best.errors.items():
        places = decimals(error.rmse)
        shown.add_row(
            *_QUERIES[name], f"{error.rmse:.{places}f}", f"± {best.half_width(name):.{places}f}"
        )
    return shown


def _options(found: Plan) -> Any:
    best = found.chosen
    shown = tables.table()
    shown.add_column("protocol")
    shown.add_column("mechanism")
    shown.add_column("changes", justify="right")
    shown.add_column("mix", overflow="fold")
    for name in best.errors:
        shown.add_column(_SHORT[name], justify="right")
    for heading in ("messages", "bytes", "forger"):
        shown.add_column(heading, justify="right")
    for option in found.options:
        cells = [f"{error.rmse:#.3g}" for error in option.errors.values()]
        shown.add_row(
            Text(_name(option), style="bold" if option is best else ""),
            " ".join(option.carriers) or "-",
            str(option.protocol.changes),
            _mix(option),
            *cells,
            f"{option.messages:.3g}",
            f"{option.payload:.3g}",
            f"{option.influence:.2g}",
        )
    return shown


def _name(option: Option) -> str:
    return f"{option.name}, path" if option.decoder == "path" else option.name


def _mix(option: Option) -> str:
    return " ".join(
        f"{'s' if span == 'snapshot' else span}:{100 * share:.0f}"
        for span, share in option.mix.items()
    )


def _reached(found: Plan) -> list[str]:
    reach = found.reach
    assert reach is not None  # noqa: S101 -- asked before
    what = f"± {reach.half_width:g} for the {_QUERIES[reach.query][0]}"
    return [
        f"{what}: {reach.devices:,} devices reach it, all else as it is."
        if reach.devices
        else f"{what}: no number of devices reaches it.",
        f"epsilon {reach.epsilon:g} reaches it with {found.devices:,} devices."
        if reach.epsilon
        else "No epsilon reaches it: the chance of who is asked when is too large by itself.",
        f"{reach.periods} periods reach it, each horizon asked anew."
        if reach.periods
        else "No shorter horizon reaches it.",
    ]


def _list(heading: str, sentences: list[str]) -> None:
    if sentences:
        console.say(f"\n{heading}", "bold")
    for sentence in sentences:
        console.say(f"- {sentence}")
