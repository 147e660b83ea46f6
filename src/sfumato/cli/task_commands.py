"""`sfumato task`: write a task file, look at what it means, publish it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from sfumato import client, files
from sfumato.cli import console, text_tables
from sfumato.cli.command import Result, Target
from sfumato.core.duration import length
from sfumato.core.intervals import z_score
from sfumato.errors import InputError
from sfumato.wire.task import MOST_PEOPLE

__all__ = ["check", "new", "publish"]

MANY: Final = 10_000
"""Devices that are taken to take part where nobody says how many."""

TEMPLATE: Final = """\
# {title}
#
# What is asked of devices, for how long and under which promise. Everything is explained in
# docs/task.md; `sfumato task check` says what this file means.

title = {title_text}

# The privacy of a device's whole stream. 1 is strong, 4 is weak; errors grow as it shrinks.
epsilon = {epsilon}

# How many periods there are, and how long each of them is:
# whole seconds, minutes, hours, days or weeks.
periods = {periods}
period = "{period}"

# How often a device's value changes over all periods, at most: a thing that turns on or off counts
# one, a category appears with one and moves with two. Differences stop at it.
changes = {changes}

# What will be asked: online (each period when it closes), history, prefix or ranges.
queries = "online"

[values]
# binary (on or off), category (one of the items), set (any of the items)
kind = "{kind}"
{items}"""

ENDLESS: Final = """\
# {title}
#
# What is asked of devices anew in each period, and under which promise. Everything is explained in
# docs/windows.md; `sfumato task check` says what this file means.

kind = "window"
title = {title_text}

# Any so many consecutive periods of a device are protected with this epsilon. 1 is strong, 4 is
# weak. Choose the window as long as what should be hidden lasts.
window = {window}
epsilon = {epsilon}

# How many devices are expected to take part; public.
devices = {devices}

# After how many periods the task ends, and how long each of them is:
# whole seconds, minutes, hours, days or weeks.
periods = {periods}
period = "{period}"

[values]
# category (one of the items), or number with low = and high = for a mean
kind = "{kind}"
{items}"""

USUAL: Final = {
    "title": "Where people listen",
    "kind": "category",
    "items": "home,work,road",
    "epsilon": 1.0,
    "periods": 24,
    "period": "1 hour",
}
"""What a task file says if nothing else is asked for."""

OTHER: Final = """\
# {title}
#
# What is asked of devices by the stream {stream}. What all tasks have is explained in docs/task.md;
# `sfumato task check` says what this file means.

stream = "{stream}"
title = {title_text}
epsilon = {epsilon}
periods = {periods}
period = "{period}"
{fields}"""


@dataclass(frozen=True)
class NewTaskOptions:
    """The fields of a task file."""

    file: Annotated[Path, typer.Argument(), Target((".toml",))]
    """The file to write."""
    ask: str | None = None
    """Begin with a question in plain words, such as "Which features do people have switched on?";
    the other options change what its template says."""
    title: str | None = None
    """What it is about."""
    kind: str | None = None
    """binary, category or set; category if left out."""
    items: str | None = None
    """Labels, with commas between them."""
    epsilon: float | None = None
    """Privacy of a device's whole stream; with --window, of any such window. 1 if left out."""
    periods: int | None = None
    """How many periods there are; 24 if left out."""
    period: str | None = None
    """How long each period is; 1 hour if left out."""
    changes: int | None = None
    """How often a device's value changes over all periods, at most: 4 if left out; with --stream it
    is a --field."""
    window: int | None = None
    """Protect any so many consecutive periods, however often a value changes."""
    devices: int | None = None
    """With --window: how many devices take part; 10,000 if left out."""
    stream: str | None = None
    """Ask for any stream by its name; its own fields are given with --field."""
    field: tuple[str, ...] = ()
    """With --stream, a field of the file as in learning=2."""
    guided: bool = False
    """Ask for each of these, one after the other."""
    force: bool = False


def new(asked: NewTaskOptions) -> Result:
    """Write a commented task file to start from.

    --guided asks for each field; --ask begins with a question instead.

    Example:  sfumato task new my-task.toml --ask "Where are people?"
    """
    _refuse_contradictions(asked)
    if asked.ask is not None:
        return _saved(asked, _answering(asked.ask, asked), f"sfumato plan {asked.file}")
    chosen = {
        name: usual if getattr(asked, name) is None else getattr(asked, name)
        for name, usual in USUAL.items()
    }
    if asked.window is None:
        chosen["changes"] = 4 if asked.changes is None else asked.changes
    else:
        devices = 10_000 if asked.devices is None else asked.devices
        chosen |= {"window": asked.window, "devices": devices}
    if asked.guided and sys.stdin.isatty():
        for name, value in chosen.items():
            if name != "items" or chosen["kind"] != "binary":
                chosen[name] = typer.prompt(name, default=value, err=True)
    return _saved(asked, _written(chosen, asked), f"sfumato task check {asked.file}")


def _refuse_contradictions(asked: NewTaskOptions) -> None:
    """Raise InputError if two options exclude each other."""
    if asked.field and asked.stream is None:
        raise InputError(f"--field is {asked.field[0]!r} where no --stream is named; name one.")
    for name in ("window", "changes", "devices"):
        value = getattr(asked, name)
        if value is not None and asked.stream is not None:
            raise InputError(
                f"--{name} is {value} where --stream is {asked.stream!r}; --field {name}={value} "
                "is expected."
            )
    if asked.devices is not None and asked.window is None and asked.ask is None:
        raise InputError(f"--devices is {asked.devices} where no --window is named; name one.")
    if asked.changes is not None and asked.window is not None and asked.ask is None:
        raise InputError(
            f"--changes is {asked.changes} where --window is {asked.window}; values may change as "
            "often as they like there, so only one of the two is expected."
        )


def _answering(question: str, asked: NewTaskOptions) -> str:
    """Return the text of a task file that answers a question, changed as the options say."""
    from sfumato import planner

    if asked.stream is not None or asked.guided:
        other = "--stream" if asked.stream is not None else "--guided"
        raise InputError(f"--ask is {question!r} beside {other}; only one of the two is expected.")
    try:
        template = planner.template_for(question)
    except InputError as error:
        raise InputError(str(error).replace("the question is", "--ask is")) from None
    names = ("title", "epsilon", "periods", "period", "changes", "window", "devices")
    changed = {name: getattr(asked, name) for name in names if getattr(asked, name) is not None}
    for name, value in changed.items():
        if name not in template.fields:
            raise InputError(
                f"--{name} is {value} where --ask means {template.question!r}; its task has "
                f"{', '.join(template.fields)}."
            )
    values = dict(template.fields["values"])
    if asked.kind not in (None, values["kind"]):
        raise InputError(f"--kind is {asked.kind!r} where --ask means {values['kind']!r}.")
    if asked.items is not None:
        if "items" not in values:
            raise InputError(f"--items is {asked.items!r} where values are {values['kind']!r}.")
        values["items"] = [label.strip() for label in asked.items.split(",") if label.strip()]
        changed["values"] = values
    return template.text(**changed)


def _saved(asked: NewTaskOptions, text: str, next_command: str) -> Result:
    """Write a task file, if it is one, and return what to do next."""
    from sfumato import catalog

    catalog.parse(text, str(asked.file))
    with files.complete_or_absent(asked.file, force=asked.force) as target:
        target.write(text.encode())
    return Result(
        {"file": str(asked.file)},
        [f"Written: {asked.file}"],
        next_command=next_command,
    )


def _written(chosen: dict[str, Any], asked: NewTaskOptions) -> str:
    """Return the text of a task file."""
    words = (label.strip() for label in chosen["items"].split(","))
    labels = json.dumps([label for label in words if label], ensure_ascii=False)
    has_items = chosen["kind"] != "binary"
    title = json.dumps(chosen["title"], ensure_ascii=False)
    fields = chosen | {"title_text": title, "items": f"items = {labels}\n" * has_items}
    if asked.stream is None:
        return (TEMPLATE if asked.window is None else ENDLESS).format(**fields)
    values = f'{{kind = "{chosen["kind"]}"' + f", items = {labels}" * has_items + "}"
    lines = {"values": values, **_fields(asked.field)}
    own = "".join(f"{name} = {value}\n" for name, value in lines.items())
    return OTHER.format(**fields, stream=asked.stream, fields=own)


def _fields(options: Sequence[str]) -> dict[str, str]:
    """Return the fields of --field and their values, as a file has them."""
    pairs = {}
    for field in options:
        name, sign, value = field.partition("=")
        if not sign or not name.strip() or not value.strip():
            raise InputError(
                f"--field is {field!r}; a name and a value as in learning=2 is expected."
            )
        pairs[name.strip()] = value.strip()
    return pairs


@dataclass(frozen=True)
class CheckTaskOptions:
    """The task file to look at."""

    file: Annotated[Path, typer.Argument()]
    """A task file."""
    devices: Annotated[int, typer.Option(min=1, max=MOST_PEOPLE)] | None = None
    """How many will take part; as many as the task file says, or 10,000."""


def check(asked: CheckTaskOptions) -> Result:
    """Say what a task file means: the promise, what devices send, how exact answers will be.

    Example:  sfumato task check my-task.toml --devices 50000
    """
    from sfumato import catalog
    from sfumato.cli import streams

    task = catalog.read(asked.file)
    with console.waiting("choosing what the task leaves open"):
        stream = catalog.stream(task)
        many = asked.devices or stream.counts_on or MANY
        stream = stream.expecting(many)
        variance = stream.planned_variance(many)
    half = None if variance is None else float(z_score(0.95) * variance**0.5)
    size, promises = streams.report_bytes(stream), streams.promises(stream)
    error = "depends on the data: sfumato plan tells more"
    if half is not None:
        error = f"± {half:.3g} (95%) for a value of a typical period, {many:,} devices"
    facts = {
        "task": task.title,
        "values": streams.about(task),
        "lasts": f"{task.periods:,} periods of {length(task.period_seconds)}",
        **{name: streams.words(value) for name, value in stream.facts().items()},
        "a report": f"{size} bytes, sealed; every report of the task has this size",
        "error": error,
    }
    return Result(
        {
            "task": task.plain(),
            "guarantee": promises,
            "report_bytes": size,
            "devices": many,
            "half_width": half,
        },
        (text_tables.facts(facts), f"\n{promises}"),
        next_command=f"sfumato task publish {asked.file} --to http://127.0.0.1:8080",
    )


@dataclass(frozen=True)
class PublishOptions:
    """The task to publish, and the collector that gets it."""

    file: Annotated[Path, typer.Argument()]
    """A task file."""
    to: str = "http://127.0.0.1:8080"
    """The collector's address."""
    start: str | None = None
    """When the first period begins, as 2026-11-18T09:00 (UTC, if no offset is named) or in seconds
    since 1970; the next full period by default."""
    grace: Annotated[int, typer.Option(min=0)] | None = None
    """Seconds after its end in which a period takes reports; a period by default."""
    public: bool = False
    """Anybody may read answers, not analysts alone."""
    unsealed: bool = False
    """The way to the collector is trusted already."""


def publish(asked: PublishOptions) -> Result:
    """Hand a task to a collector; devices can join it from then on.

    The token is read from SFUMATO_OPERATOR_TOKEN.

    Example:  sfumato task publish my-task.toml --to http://127.0.0.1:8080 --public
    """
    import tomllib

    from sfumato import catalog

    task = catalog.read(asked.file)  # a mistake is told with its line
    body = {
        "task": tomllib.loads(asked.file.read_text("utf-8-sig")),
        "start": None if asked.start is None else _seconds(asked.start),
        "grace": asked.grace,
        "public": asked.public,
        "sealed": not asked.unsealed,
    }
    base = asked.to.rstrip("/")
    answer = client.ask(f"{base}/v1/tasks", body=body, variables=("SFUMATO_OPERATOR_TOKEN",))
    answer |= client.addresses(base, answer["task_id"])
    answer["join"] = client.joined_at(answer["join"])
    offers = answer.get("offers", [answer["guarantee"]])
    if len(offers) > 1:
        offers = [f"Tier {tier}: {offer}" for tier, offer in enumerate(offers)]
    return Result(
        answer,
        (
            f"Published: {task.title}",
            *offers,
            f"\nDevices join  {answer['join']}",
            f"Its page is   {answer['page']}",
        ),
        next_command=f"sfumato query {answer['page']}",
    )


def _seconds(text: str) -> int:
    """Return a time as seconds since 1970."""
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            f"--start is {text!r}; a date or time as in 2026-11-18T09:00, or whole seconds since "
            "1970, is expected."
        ) from None
    return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
