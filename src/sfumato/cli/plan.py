"""`sfumato plan`: what a task will tell, what it will cost, and what to change."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

from sfumato import catalog, planner
from sfumato.cli import console, streams, text_tables
from sfumato.cli.options import Json, reads_tables
from sfumato.core.duration import length
from sfumato.core.quantity import decimals
from sfumato.errors import InputError
from sfumato.files import Dialect
from sfumato.wire.task import MOST_PEOPLE, Task

if TYPE_CHECKING:
    from sfumato.core.outlook import Option
    from sfumato.planner import Plan

__all__ = ["plan"]

_QUERIES: Final = {
    "period": ("value of a period", "by its own answers alone"),
    "online": ("mean of a period", "when it closes"),
    "history": ("mean of a period", "once all have closed"),
    "prefix": ("sum from the first period on", "when its last period closes"),
    "ranges": ("sum over a range of periods", "when its last period closes"),
}
_SHORT: Final = {"history": "later", "ranges": "range"}


@reads_tables
def plan(
    task: Annotated[Path, typer.Argument(help="The task file.", show_default=False)],
    *,
    devices: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_PEOPLE,
            help="How many will take part; as many as the task file says, or 100,000.",
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
    known = None if pilot is None else _pilot(pilot, asked, pilot_epsilon, dialect)
    if pilot is None and pilot_epsilon is not None:
        msg = f"--pilot-epsilon is {pilot_epsilon:g} and there is no pilot; name it with --pilot."
        raise InputError(msg)
    with console.noticing("planning") as notice:
        made = planner.plan(asked, devices, pilot=known, target=target, notice=notice)
        record = _record(made)
    if as_json:
        console.print_json(record)
        return
    _print(made)
    console.say(f"\nNext:  sfumato simulate {task} --devices {made.devices}")


def _pilot(path: Path, task: Task, epsilon: float | None, dialect: Dialect) -> planner.Pilot:
    from sfumato.files import Kind, Table
    from sfumato.simulation.observed import Held
    from sfumato.streams.kinds import values_of
    from sfumato.streams.registry import find

    if not find(task.stream).takes_pilots:
        msg = f"--pilot is {path} where the stream is {task.stream!r}; only a horizon takes one."
        raise InputError(msg)
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


def _record(made: Plan) -> dict[str, Any]:
    reach = None
    if made.reach is not None:
        reach = {"half_width": made.target, "query": made.outlook.target, **made.reach}
    return {
        "task_id": made.task.task_id,
        "devices": made.devices,
        "recommended": made.recommended.plain(),
        "options": [_option_record(option) for option in made.options],
        "simulated": None if made.simulated is None else vars(made.simulated),
        "target": reach,
        **made.outlook.facts(made.chosen),
        "reasons": made.reasons,
        "warnings": made.warnings,
        "guarantee": streams.promises(made.chosen.stream),
    }


def _option_record(option: Option) -> dict[str, Any]:
    return {
        "name": option.name,
        "decoder": option.decoder or None,
        "design": option.stream.facts(),
        "summary": option.summary or None,
        "queries": {
            name: {
                "rmse": error.rmse,
                "half_width": option.half_width(name),
                "bias": error.squared_bias**0.5,
                "unknown": error.unknown,
            }
            for name, error in option.errors.items()
        },
        "messages": option.sent.messages,
        "most_messages": option.sent.most_messages,
        "payload_bytes": option.sent.payload,
        "device_seconds_per_period": option.device_seconds,
        "forged_influence": option.influence,
    }


# ---- for people ------------------------------------------------------------------------------


def _print(made: Plan) -> None:
    task, best = made.task, made.chosen
    console.say(task.title, "bold")
    console.say(
        f"{made.devices:,} devices; {streams.about(task)}, {task.periods} periods of "
        f"{length(task.period_seconds)}."
    )
    console.say(f"{streams.promises(best.stream)}\n")
    console.say("Recommended", "bold")
    console.out().print(text_tables.facts(_facts(made)))
    console.say("\nWhat it will tell", "bold")
    console.out().print(_queries(best))
    console.say("\nAll that was tried", "bold")
    console.out().print(_options(made))
    over = "in all" if best.stream.horizon else "in a period"
    console.say(
        "Errors are root mean squared ones (of sums: of values added up); - where they depend on "
        f"how the data move. messages, bytes: from a device {over}, on average. forger: how far "
        "one forged device can move an answer."
    )
    _list("Why", made.reasons)
    if made.reach:
        _list("To get there", _reached(made))
    _list("To know before", made.warnings)


def _facts(made: Plan) -> dict[str, str]:
    best, sent = made.chosen, made.chosen.sent
    shown = {name: streams.words(value) for name, value in best.stream.facts().items()}
    over = "" if best.stream.horizon else " in a period"
    return {
        "way": f"{best.name} {f'({best.summary})' if best.summary else ''}".strip(),
        **shown,
        "messages": f"{sent.messages:.3g} from a device{over} on average, "
        f"{sent.most_messages:g} at most",
        "bytes": f"{sent.payload:.3g} from a device{over} on average, without envelopes",
        "time": f"{1e6 * best.device_seconds:.0f} µs in a period on the busiest devices, here",
        "task file": _written(made),
    }


def _written(made: Plan) -> str:
    """Return what the task file would have to say, beyond what it says."""
    design = made.task.plain()
    lines = []
    for name, value in made.chosen.fields.items():
        if value is None or value == {} or value == design.get(name):
            continue
        told = f'"{value}"' if isinstance(value, str) else value
        if isinstance(value, list):
            pairs = ((span or "snapshot", share) for span, share in value)
            told = f"{{ {', '.join(f'{span} = {share:.4f}' for span, share in pairs)} }}"
        lines.append(f"{name} = {told}")
    return "\n".join(lines) or "nothing to change"


def _queries(best: Option) -> Any:
    shown = text_tables.table()
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


def _options(made: Plan) -> Any:
    best = made.chosen
    design = [name for name in best.stream.facts() if name != "method"]
    queries = list(dict.fromkeys(name for option in made.options for name in option.errors))
    shown = text_tables.table()
    for heading in ("way", *design):
        shown.add_column(heading, overflow="fold")
    for name in queries:
        shown.add_column(_SHORT.get(name, name), justify="right")
    for heading in ("messages", "bytes", "forger"):
        shown.add_column(heading, justify="right")
    if best.summary:
        shown.add_column("")
    for option in made.options:
        facts, name = option.stream.facts(), f"{option.name}{', path' * bool(option.decoder)}"
        errors = (option.errors.get(query) for query in queries)
        shown.add_row(
            Text(name, style="bold" if option is best else ""),
            *(_cell(facts[name]) for name in design),
            *("-" if error is None else f"{error.rmse:#.3g}" for error in errors),
            f"{option.sent.messages:.3g}",
            f"{option.sent.payload:.3g}",
            "-" if option.influence is None else f"{option.influence:.2g}",
            *((Text(option.summary),) if best.summary else ()),
        )
    return shown


def _cell(value: Any) -> str:
    """Return what was chosen, as short as it gets: of a mix percentages, s for snapshots."""
    if not isinstance(value, dict):
        return str(value)
    return " ".join(f"{name.removesuffix('napshot')}:{100 * p:.0f}" for name, p in value.items())


def _reached(made: Plan) -> list[str]:
    names = {"devices": "devices", "periods": "periods, each horizon asked anew,"}
    names |= {"epsilon": "epsilon", "window": "a window"}
    reach = made.reach or {}
    what = f"± {made.target:g} for the {_QUERIES[made.outlook.target][0]}"
    said = [f"{what}, each of these by itself:"]
    for name, value in reach.items():
        if value is None:
            said.append(f"No {name} reaches it.")
        elif name in ("devices", "periods"):
            said.append(f"{value:,.0f} {names[name]} reach it.")
        else:
            said.append(f"{names[name].capitalize()} of {value:.3g} reaches it.")
    return said


def _list(heading: str, sentences: list[str]) -> None:
    if sentences:
        console.say(f"\n{heading}", "bold")
    for sentence in sentences:
        console.say(f"- {sentence}")
