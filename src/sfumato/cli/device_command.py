"""`sfumato device`: what a device has sent and spent, for the person whose data it is."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sfumato.accounting.ledger import UNITS
from sfumato.cli import console
from sfumato.cli.options import Json
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.device import Device

__all__ = ["app"]

app = typer.Typer(
    help="See what a device has sent and spent; leave a task; erase.", no_args_is_help=True
)

JournalFile = Annotated[
    Path, typer.Option("--journal", help="The device's journal.", show_default=False)
]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask whether this is meant.")]


@app.callback()
def device() -> None:
    """See what a device has sent and spent; leave a task; erase."""


@app.command()
def log(*, journal: JournalFile, as_json: Json = False) -> None:
    """Say what this device has sent and spent, in sentences.

    Example:  sfumato device log --journal app.journal
    """
    with _opened(journal) as found:
        if as_json:
            console.print_json(_record(found))
            return
        *lines, _ = found.log()
        for line in lines or ["This device has taken part in nothing."]:
            console.say(line)
        console.say(f"Epsilon {_spent(found):g} has been spent in all, and stays spent.")


@app.command()
def leave(
    *,
    journal: JournalFile,
    task: Annotated[
        str | None,
        typer.Option(help="The task's id, or how it begins.", show_default=False),
    ] = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Stop taking part in a task and erase all of it from the device; what it cost stays spent.

    Example:  sfumato device leave --journal app.journal --task 1f3a
    """
    with _opened(journal) as found:
        task_id, title = _chosen(found, task)
        _sure(f"Leave {title!r} and erase what this device has of it?", yes=yes, silent=as_json)
        found.leave(task_id)
        if as_json:
            console.print_json(_record(found))
        else:
            console.say(f"Left {title!r} and erased it; its cost stays.")


@app.command()
def erase(*, journal: JournalFile, yes: Yes = False, as_json: Json = False) -> None:
    """Erase everything on the device but what was spent, which must not be spent again.

    Example:  sfumato device erase --journal app.journal
    """
    with _opened(journal) as found:
        count = len(found.journal.tasks())
        what = "1 task" if count == 1 else f"{count} tasks"
        _sure(f"Erase {what} from this device?", yes=yes, silent=as_json)
        found.erase()
        if as_json:
            console.print_json(_record(found))
        else:
            console.say(f"Erased {what}; what was spent stays spent.")


@contextmanager
def _opened(path: Path) -> Iterator[Device]:
    """Open a journal that is there; looking at one must not begin it."""
    from sfumato.device import Device, Limits

    if not path.is_file():
        raise InputError(f"--journal is {path}; there is no such file.")
    found = Device.open(path, Limits(0.0))  # joins nothing
    try:
        yield found
    finally:
        found.close()


def _chosen(found: Device, task: str | None) -> tuple[str, str]:
    """Return the id and the title of the task that is meant."""
    titles = {bytes(row[0]): row[2] for row in found.journal.payments()}
    joined = [one.task_id for one in found.journal.tasks()]
    matching = [one for one in joined if one.hex().startswith((task or "").lower())]
    if len(matching) != 1:
        known = ", ".join(f"{one.hex()[:12]} ({titles[one]!r})" for one in joined) or "none"
        said = "is missing" if task is None else f"is {task!r}"
        raise InputError(f"--task {said}; the device takes part in {known}.")
    return matching[0].hex(), titles[matching[0]]


def _sure(question: str, *, yes: bool, silent: bool) -> None:
    if yes:
        return
    nobody = InputError("--yes is missing; without it a person has to be asked.")
    if silent:
        raise nobody
    try:
        if not typer.confirm(question, err=True):
            raise typer.Exit(1)
    except typer.Abort:
        raise nobody from None


def _spent(found: Device) -> float:
    return found.ledger.spent / UNITS


def _record(found: Device) -> dict[str, Any]:
    """Return the same as plain data."""
    tasks = [
        {
            "task_id": bytes(task_id).hex(),
            "title": title,
            "epsilon": paid / UNITS,
            "promise": promise,
            "joined": _time(at),
            "left": None if left_at is None else _time(left_at),
            "reports": [
                {"period": period, "outcome": outcome or "waiting", "at": when and _time(when)}
                for period, outcome, when in found.journal.outcomes(bytes(task_id))
            ],
        }
        for task_id, paid, title, at, left_at, promise in found.journal.payments()
    ]
    return {"tasks": tasks, "spent": _spent(found)}


def _time(at: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
