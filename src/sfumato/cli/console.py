"""Where the commands print: answers to stdout, progress and errors to stderr."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
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

__all__ = ["bars", "err", "noticing", "out", "print_json", "progress", "say", "waiting"]

PIPE_WIDTH = 120


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


def say(sentence: str, style: str = "", *, to: Console | None = None) -> None:
    """Print words as they are: wrapped on a terminal, in one line for anything else."""
    console = to or out()
    console.print(sentence, style=style, markup=False, soft_wrap=not console.is_terminal)


def print_json(data: Any) -> None:
    """Print strict JSON, and nothing else."""
    typer.echo(json.dumps(_strict(data), allow_nan=False, ensure_ascii=False, indent=2))


def _strict(data: Any) -> Any:
    """Return the data with null for what JSON has no number for."""
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
def waiting(description: str) -> Iterator[None]:
    """Show that something is going on whose length nobody knows."""
    console = err()
    if not console.is_terminal:
        yield
        return
    with console.status(description, spinner_style="blue"):
        yield


@contextmanager
def noticing(description: str) -> Iterator[Callable[[str], None]]:
    """Show what is being done, step by step; yields what is told of each step."""
    console = err()
    if not console.is_terminal:
        yield lambda _: None
        return
    with console.status(description, spinner_style="blue") as status:
        yield lambda step: status.update(f"{description}: {step}")
