"""`sfumato task`: write a task file, look at what it means, publish it."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from sfumato import files
from sfumato.cli import collectors, console, text_tables
from sfumato.cli.options import Force, Json
from sfumato.core.duration import length
from sfumato.core.intervals import z_score
from sfumato.errors import InputError
from sfumato.wire.task import MOST_PEOPLE

if TYPE_CHECKING:
    pass

__all__ = ["app"]

MANY: Final = 10_000
"""Devices that are taken to take part where nobody says how many."""

app = typer.Typer(no_args_is_help=True, help="Write, check and publish task files.")

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


@app.command()
def new(  # noqa: PLR0913 - one for each option
    file: Annotated[Path, typer.Argument(help="The file to write.")],
    *,
    title: Annotated[str, typer.Option(help="What it is about.")] = "Where people listen",
    kind: Annotated[str, typer.Option(help="binary, category or set.")] = "category",
    items: Annotated[
        str, typer.Option(help="Labels, with commas between them.")
    ] = "home,work,road",
    epsilon: Annotated[float, typer.Option(help="Privacy of a device's whole stream.")] = 1.0,
    periods: Annotated[int, typer.Option(help="How many.")] = 24,
    period: Annotated[str, typer.Option(help="How long each is.")] = "1 hour",
    changes: Annotated[int, typer.Option(help="Of a device's value, at most.")] = 4,
    window: Annotated[
        int | None,
        typer.Option(
            help="Protect any so many consecutive periods, however often a value changes.",
            show_default=False,
        ),
    ] = None,
    devices: Annotated[int, typer.Option(help="How many take part; of a window only.")] = 10_000,
    stream: Annotated[
        str | None,
        typer.Option(
            help="Ask for any stream by its name; its own fields are given with --field.",
            show_default=False,
        ),
    ] = None,
    field: Annotated[
        list[str] | None,
        typer.Option(
            help="With --stream, a field of the file as in learning=2; once for each.",
            show_default=False,
        ),
    ] = None,
    guided: Annotated[
        bool, typer.Option("--guided", help="Ask for each of them, one after the other.")
    ] = False,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Write a commented task file to start from.

    Example:  sfumato task new my-task.toml --guided
    """
    from sfumato import catalog

    files.refuse_target(file, (".toml",), force=force)
    if field and stream is None:
        raise InputError(f"--field is {field[0]!r} where no --stream is named; name one.")
    if window is not None and stream is not None:
        raise InputError(
            f"--window is {window} where --stream is {stream!r}; --field window={window} is "
            "expected."
        )
    chosen: dict[str, Any] = {
        "title": title,
        "kind": kind,
        "items": items,
        "epsilon": epsilon,
        "periods": periods,
        "period": period,
    }
    chosen |= {"changes": changes} if window is None else {"window": window, "devices": devices}
    if guided and sys.stdin.isatty():
        for name, value in chosen.items():
            if name != "items" or chosen["kind"] != "binary":
                chosen[name] = typer.prompt(name, default=value, err=True)
    labels = [label.strip() for label in str(chosen.pop("items")).split(",") if label.strip()]
    only = chosen["kind"] == "binary"
    shown = json.dumps(labels[:1] if only else labels, ensure_ascii=False)
    written = "" if only else f"items = {shown}\n"
    if stream is not None:
        table = f'kind = "{chosen["kind"]}"' + (f", items = {shown}" if written else "")
        lines = {"values": f"{{{table}}}", **_fields(field or [])}
        chosen |= {
            "stream": stream,
            "fields": "".join(f"{name} = {value}\n" for name, value in lines.items()),
        }
    template = OTHER if stream is not None else TEMPLATE if window is None else ENDLESS
    text = template.format(
        **chosen, title_text=json.dumps(chosen["title"], ensure_ascii=False), items=written
    )
    catalog.parse(text, str(file))
    with files.complete_or_absent(file, force=force) as target:
        target.write(text.encode())
    if as_json:
        console.print_json({"file": str(file)})
        return
    console.say(f"Written: {file}\n\nNext:  sfumato task check {file}")


def _fields(options: list[str]) -> dict[str, str]:
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


@app.command()
def check(
    file: Annotated[Path, typer.Argument(help="A task file.")],
    *,
    devices: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=MOST_PEOPLE,
            help="How many will take part; as many as the task file says, or 10,000.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what a task file means: the promise, what devices send, how exact answers will be.

    Example:  sfumato task check my-task.toml --devices 50000
    """
    from sfumato import catalog
    from sfumato.cli import streams

    task = catalog.read(file)
    with console.waiting("choosing what the task leaves open"):
        stream = catalog.stream(task)
        many = devices or stream.counts_on or MANY
        stream = stream.expecting(many)
        variance = stream.planned_variance(many)
    half = None if variance is None else float(z_score(0.95) * variance**0.5)
    size, promises = streams.report_bytes(stream), streams.promises(stream)
    if as_json:
        console.print_json(
            {
                "task": task.plain(),
                "guarantee": promises,
                "report_bytes": size,
                "devices": many,
                "half_width": half,
            }
        )
        return
    chosen = {name: streams.words(value) for name, value in stream.facts().items()}
    console.out().print(
        text_tables.facts(
            {
                "task": task.title,
                "values": streams.about(task),
                "lasts": f"{task.periods:,} periods of {length(task.period_seconds)}",
                **chosen,
                "a report": f"{size} bytes, sealed; every report of the task has this size",
                "error": "depends on the data: sfumato plan tells more"
                if half is None
                else f"± {half:.3g} (95%) for a value of a typical period, {many:,} devices",
            }
        )
    )
    console.say(f"\n{promises}")
    console.say(f"\nNext:  sfumato task publish {file} --to http://127.0.0.1:8080")


@app.command()
def publish(
    file: Annotated[Path, typer.Argument(help="A task file.")],
    *,
    to: Annotated[str, typer.Option(help="The collector's address.")] = "http://127.0.0.1:8080",
    start: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="When the first period begins, in seconds since 1970; the next full period by "
            "default.",
            show_default=False,
        ),
    ] = None,
    grace: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Seconds after its end in which a period takes reports; a period by default.",
            show_default=False,
        ),
    ] = None,
    public: Annotated[
        bool, typer.Option("--public", help="Anybody may read answers, not analysts alone.")
    ] = False,
    unsealed: Annotated[
        bool, typer.Option("--unsealed", help="The way to the collector is trusted already.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Hand a task to a collector; devices can join it from then on.

    The token is read from SFUMATO_OPERATOR_TOKEN.

    Example:  sfumato task publish my-task.toml --to http://127.0.0.1:8080 --public
    """
    import tomllib

    from sfumato import catalog

    task = catalog.read(file)  # a mistake is told with its line
    asked = {
        "task": tomllib.loads(file.read_text("utf-8-sig")),
        "start": start,
        "grace": grace,
        "public": public,
        "sealed": not unsealed,
    }
    base = to.rstrip("/")
    made = collectors.ask(f"{base}/v1/tasks", body=asked, variables=("SFUMATO_OPERATOR_TOKEN",))
    made |= collectors.addresses(base, made["task_id"])
    if as_json:
        console.print_json(made)
        return
    console.say(f"Published: {task.title}")
    offers = made.get("offers", [made["guarantee"]])
    for tier, offer in enumerate(offers):
        console.say(offer if len(offers) == 1 else f"Tier {tier}: {offer}")
    console.say(f"\nDevices join  {made['join']}")
    console.say(f"Its page is   {made['page']}\n")
    console.say(f"Next:  sfumato query {made['page']}")
