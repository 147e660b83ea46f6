"""`sfumato plan`: what a task will tell, what it will cost, and what to change."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.table import Table as Printed
from rich.text import Text

from sfumato import catalog, planner
from sfumato.cli import console, streams, text_tables
from sfumato.cli.capacity import NOWHERE, SizingOptions, is_named, number_of_devices, size
from sfumato.cli.command import Parts, Result
from sfumato.core.duration import length
from sfumato.core.quantity import decimals
from sfumato.errors import InputError
from sfumato.files.dialects import USUAL, Dialect
from sfumato.wire.task import Task

if TYPE_CHECKING:
    from sfumato.core.outlook import Option
    from sfumato.files import Table
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


@dataclass(frozen=True)
class TellingOptions:
    """What it will tell."""

    pilot: Path | None = None
    """What is known of people's streams: a CSV or Parquet file with the columns device, period and
    value, or a histogram of how often they change, as `sfumato estimate -o` writes it (item,
    estimate)."""
    pilot_epsilon: float | None = None
    """What the histogram cost those who were asked."""
    target: float | None = None
    """How far a 95% interval may reach to each side: says what gets there."""


@dataclass(frozen=True)
class PlanOptions:
    """The task to plan, and what is known about those who will take part."""

    task: Annotated[Path | None, typer.Argument()] = None
    """The task file; --capacity does without."""
    devices: str | None = None
    """How many will take part, as in 250000 or 1e9; as many as the task file says, or 100,000."""
    telling: TellingOptions = TellingOptions()
    sizing: SizingOptions = NOWHERE
    dialect: Dialect = USUAL


def plan(asked: PlanOptions) -> Result:
    """Say what to expect of a task before any device takes part, and recommend how to run it.

    With --capacity it says what running it takes, from what a report costs on one machine.

    Example:  sfumato plan task.toml --devices 250000 --target 0.01
    Example:  sfumato plan --capacity --devices 1e9 --every 1h
    """
    if asked.sizing.capacity:
        telling = is_named(asked.telling)
        if telling:
            raise InputError(f"{telling} is about what a task tells; leave it out with --capacity.")
        return size(asked.task, asked.devices, asked.sizing)
    sized = is_named(asked.sizing)
    if sized:
        raise InputError(f"{sized} is about what a task takes; add --capacity.")
    if asked.task is None:
        raise InputError("no task file is named; name one, or ask for --capacity.")
    task = catalog.read(asked.task)
    pilot = _pilot(asked, task)
    devices = None if asked.devices is None else number_of_devices(asked.devices)
    with console.waiting("planning") as notice:
        planned = planner.plan(
            task, devices, pilot=pilot, target=asked.telling.target, notice=notice
        )
        record = _record(planned)
    return Result(
        record,
        _text(planned),
        next_command=f"sfumato simulate {asked.task} --devices {planned.devices}",
    )


def _pilot(asked: PlanOptions, task: Task) -> planner.Pilot | None:
    """Return what a file says about the streams of people, if one is named."""
    from sfumato.files import Table
    from sfumato.simulation.observed import Held
    from sfumato.streams.kinds import values_of
    from sfumato.streams.registry import find

    path, epsilon = asked.telling.pilot, asked.telling.pilot_epsilon
    if path is None:
        if epsilon is not None:
            raise InputError(
                f"--pilot-epsilon is {epsilon:g} and there is no pilot; name it with --pilot."
            )
        return None
    if not find(task.stream).takes_pilots:
        raise InputError(
            f"--pilot is {path} where the stream is {task.stream!r}; only a horizon takes one."
        )
    values = values_of(task.values)
    table = Table(path, asked.dialect)
    names = table.header()
    if "device" in names:
        if epsilon is not None:
            raise InputError(
                f"--pilot-epsilon is {epsilon:g}; streams that are read as they are have none."
            )
        return planner.Pilot(values, streams.read(table, Held(values, task.periods)))
    if not {"item", "value"} <= set(names):
        raise InputError(
            f"{path} has the columns {', '.join(names)}; device, period and value, or item and "
            "value are expected."
        )
    if epsilon is None or not epsilon > 0:
        typed = "missing" if epsilon is None else f"{epsilon:g}"
        raise InputError(
            f"--pilot-epsilon is {typed}; what the histogram cost those who were asked."
        )
    return planner.Pilot.of_changes(values, task.periods, _histogram(table), epsilon=epsilon)


def _histogram(table: Table) -> dict[int, float]:
    """Return the share of people for each number of changes."""
    from sfumato.files import Kind

    cells = table.columns({name: (name, Kind.NUMBER) for name in ("item", "value")})
    counts, shares = cells["item"], cells["value"]
    if any(count is None or count != int(count) for count in counts) or None in shares:
        raise InputError(
            f"{table.path} has an item that is no number of changes, or no estimate of it."
        )
    return {int(count): float(share) for count, share in zip(counts, shares, strict=True)}


# ---- for machines ----------------------------------------------------------------------------


def _record(plan: Plan) -> dict[str, Any]:
    reach = None
    if plan.reach is not None:
        reach = {"half_width": plan.target, "query": plan.outlook.target, **plan.reach}
    return {
        "task_id": plan.task.task_id,
        "devices": plan.devices,
        "verdict": None if plan.verdict is None else plan.verdict.plain(),
        "recommended": plan.recommended.plain(),
        "options": [_option_record(option) for option in plan.options],
        "simulated": None if plan.simulated is None else vars(plan.simulated),
        "target": reach,
        **plan.outlook.facts(plan.chosen),
        "reasons": plan.reasons,
        "warnings": plan.warnings,
        "guarantee": streams.promises(plan.chosen.stream),
        "mixed": streams.mixed_promise(plan.chosen.stream, plan.task.plain()) or None,
        "floor": planner.least_move_error(plan.task, plan.devices),
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


def _text(plan: Plan) -> Parts:
    task, best = plan.task, plan.chosen
    yield console.bold(task.title)
    yield (
        f"{plan.devices:,} devices; {streams.about(task)}, {task.periods} periods of "
        f"{length(task.period_seconds)}."
    )
    mixed = streams.mixed_promise(best.stream, task.plain())
    yield "\n".join([streams.promises(best.stream), *([mixed] if mixed else []), ""])
    if plan.verdict is not None:
        yield f"{plan.verdict.sentence}\n"
    yield console.bold("Recommended")
    yield text_tables.facts(_facts(plan))
    yield console.bold("\nWhat it will tell")
    yield _queries(best)
    yield console.bold("\nAll that was tried")
    yield _options(plan)
    over = "in all" if best.stream.horizon else "in a period"
    yield (
        "Errors are root mean squared ones (of sums: of values added up); - where they depend on "
        f"how the data move. messages, bytes: from a device {over}, on average. forger: how far "
        "one forged device can move an answer."
    )
    floor = planner.least_move_error(task, plan.devices)
    if floor:
        yield (
            "Floor: in a large crowd nothing that keeps the promise about mixed reports has an "
            f"RMSE below {floor:.{decimals(floor)}f} for the mean of a period."
        )
    lists = {"Why": plan.reasons, "To get there": _reached(plan), "To know before": plan.warnings}
    for heading, sentences in lists.items():
        if sentences:
            yield console.bold(f"\n{heading}")
            yield from (f"- {sentence}" for sentence in sentences)


def _facts(plan: Plan) -> dict[str, str]:
    best, sent = plan.chosen, plan.chosen.sent
    shown = {name: streams.words(value) for name, value in best.stream.facts().items()}
    over = "" if best.stream.horizon else " in a period"
    return {
        "way": f"{best.name} {f'({best.summary})' if best.summary else ''}".strip(),
        **shown,
        "messages": f"{sent.messages:.3g} from a device{over} on average, "
        f"{sent.most_messages:g} at most",
        "bytes": f"{sent.payload:.3g} from a device{over} on average, without envelopes",
        "time": f"{1e6 * best.device_seconds:.0f} µs in a period on the busiest devices, here",
        "task file": _written(plan),
    }


def _written(plan: Plan) -> str:
    """Return the lines that the task file needs beside those that it has."""
    design = plan.task.plain()
    lines = []
    for name, value in plan.chosen.fields.items():
        if value is None or value == {} or value == design.get(name):
            continue
        written = f'"{value}"' if isinstance(value, str) else value
        if isinstance(value, list):
            pairs = ((span or "snapshot", share) for span, share in value)
            written = f"{{ {', '.join(f'{span} = {share:.4f}' for span, share in pairs)} }}"
        lines.append(f"{name} = {written}")
    return "\n".join(lines) or "nothing to change"


def _queries(best: Option) -> Printed:
    rows = []
    for name, error in best.errors.items():
        digits = decimals(error.rmse)
        reach = f"± {best.half_width(name):.{digits}f}"
        rows.append((*_QUERIES[name], f"{error.rmse:.{digits}f}", reach))
    return text_tables.grid(("query", "answered", ">RMSE", ">95% interval"), rows)


def _options(plan: Plan) -> Printed:
    best = plan.chosen
    design = [name for name in best.stream.facts() if name != "method"]
    queries = list(dict.fromkeys(name for option in plan.options for name in option.errors))
    numbers = (*(_SHORT.get(name, name) for name in queries), "messages", "bytes", "forger")
    rows = []
    for option in plan.options:
        facts, name = option.stream.facts(), f"{option.name}{', path' * bool(option.decoder)}"
        errors = (option.errors.get(query) for query in queries)
        rows.append(
            (
                Text(name, style="bold" if option is best else ""),
                *(_cell(facts.get(name, "-")) for name in design),
                *("-" if error is None else f"{error.rmse:#.3g}" for error in errors),
                f"{option.sent.messages:.3g}",
                f"{option.sent.payload:.3g}",
                "-" if option.influence is None else f"{option.influence:.2g}",
                *((option.summary,) if best.summary else ()),
            )
        )
    headings = ("way", *design, *(f">{name}" for name in numbers), *([""] if best.summary else []))
    return text_tables.grid(headings, rows)


def _cell(value: Any) -> str:
    """Return what was chosen, as short as it gets: of a mix percentages, s for snapshots."""
    if not isinstance(value, dict):
        return str(value)
    return " ".join(f"{name.removesuffix('napshot')}:{100 * p:.0f}" for name, p in value.items())


def _reached(plan: Plan) -> list[str]:
    """Return what would have to change for the error that was asked for."""
    if not plan.reach:
        return []
    names = {"devices": "devices", "periods": "periods, each horizon asked anew,"}
    names |= {"epsilon": "Epsilon", "window": "A window"}
    goal = f"± {plan.target:g} for the {_QUERIES[plan.outlook.target][0]}"
    sentences = [f"{goal}, each of these by itself:"]
    for name, value in plan.reach.items():
        if value is None:
            sentences.append(f"No {name} reaches it.")
        elif name in ("devices", "periods"):
            sentences.append(f"{value:,.0f} {names[name]} reach it.")
        else:
            sentences.append(f"{names[name]} of {value:.3g} reaches it.")
    return sentences
