"""Where the commands print: answers to stdout, progress and errors to stderr."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, TypeVar

import typer
from rich.console import Console, RenderableType
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

__all__ = [
    "bar",
    "bars",
    "bold",
    "each",
    "err",
    "out",
    "print_json",
    "progress",
    "say",
    "waiting",
    "while_read",
]

PIPE_WIDTH = 120
ADDRESS = "://"
Item = TypeVar("Item")


def out() -> Console:
    """Return the console for answers."""
    return _console(stderr=False)


def err() -> Console:
    """Return the console for everything that is not the answer."""
    return _console(stderr=True)


def _console(*, stderr: bool) -> Console:
    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console.width = PIPE_WIDTH
    return console


def say(part: RenderableType, style: str = "", *, to: Console | None = None) -> None:
    """Print something; words as they are, wrapped on a terminal and in one line anywhere else.

    A line with an address stays in one piece, so that it can be followed and copied.
    """
    console = to or out()
    lines = part.split("\n") if isinstance(part, str) and ADDRESS in part else [part]
    for line in lines:
        whole = isinstance(line, (str, Text)) and (not console.is_terminal or ADDRESS in line)
        console.print(line, style=style, markup=False, soft_wrap=whole)


@contextmanager
def while_read() -> Iterator[None]:
    """Go on after the block, which ends at once if nobody can read any longer what is printed.

    What is printed later goes nowhere, so that a server neither ends nor complains.
    """
    try:
        yield
    except (OSError, SystemExit):  # rich makes the one of the other if a pipe is broken
        with open(os.devnull, "w") as nowhere, suppress(OSError, ValueError):  # noqa: PTH123
            os.dup2(nowhere.fileno(), sys.stdout.fileno())


def bold(words: str) -> Text:
    """Return words that stand out, such as a heading."""
    return Text(words, style="bold")


def print_json(data: Any) -> None:
    """Print strict JSON, and nothing else."""
    typer.echo(json.dumps(_strict(data), allow_nan=False, ensure_ascii=False, indent=2))


def _strict(data: Any) -> Any:
    """Return the data with null in place of numbers that JSON cannot write."""
    if isinstance(data, Mapping):
        return {key: _strict(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_strict(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


class _Rate(ProgressColumn):
    """How many are done (the field ``count``) and how many a second."""

    def render(self, task: Task) -> Text:
        count = task.fields.get("count", task.completed)
        rate = f" ({count / task.elapsed:,.0f}/s)" if task.elapsed else ""
        return Text(f"{count:,.0f}{rate}")


def bars(console: Console) -> Progress:
    """Return bars with the count, the rate and the time left."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(complete_style="blue", finished_style="blue"),
        TaskProgressColumn(),
        _Rate(),
        TimeRemainingColumn(compact=True),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


@contextmanager
def progress() -> Iterator[Progress]:
    """Show bars while something runs, on a terminal only."""
    with bars(err()) as shown:
        yield shown


@contextmanager
def bar(description: str, total: float | None) -> Iterator[Callable[..., None]]:
    """Show one bar; yields a function that takes ``advance``, ``completed``, ``description``."""
    with progress() as shown:
        yield partial(shown.update, shown.add_task(description, total=total))


def each(items: Sequence[Item], description: str) -> Iterator[Item]:
    """Yield the items, and show how many of them are done."""
    with bar(description, len(items)) as update:
        for item in items:
            yield item
            update(advance=1)


@contextmanager
def waiting(description: str) -> Iterator[Callable[[str], None]]:
    """Show that work is going on whose length is unknown.

    Yields a function that takes the name of the step that has begun.
    """
    console = err()
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(description, spinner_style="blue") as status:
        yield lambda step: status.update(f"{description}: {step}")
