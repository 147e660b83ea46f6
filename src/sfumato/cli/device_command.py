"""`sfumato device`: what a device has sent and spent, for the person whose data it is."""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from sfumato.accounting.ledger import UNITS
from sfumato.cli.command import Result
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.device import Device

__all__ = ["erase", "leave", "log"]


@dataclass(frozen=True)
class JournalOptions:
    """The device to look at."""

    journal: Path
    """The device's journal."""


@dataclass(frozen=True)
class EraseOptions(JournalOptions):
    """The device to erase."""

    yes: bool = False
    """Do not ask whether this is meant."""
    as_json: bool = False


@dataclass(frozen=True)
class LeaveOptions(EraseOptions):
    """The task to leave."""

    task: str | None = None
    """The task's id, or how it begins."""


def log(asked: JournalOptions) -> Result:
    """Say what this device has sent and spent, what that means, and how to stop.

    Example:  sfumato device log --journal app.journal
    """
    with _opened(asked.journal) as device:
        spent = f"Epsilon {_spent(device):g} has been spent in all, and stays spent."
        tasks = device.journal.tasks()
        *lines, _ = device.log()
        lines = lines[:-1] or ["This device has taken part in nothing."]
        if tasks:
            lines.append(
                f"To stop:  sfumato device leave --journal {asked.journal}"
                + f" --task {tasks[0].task_id.hex()[:12]}" * (len(tasks) > 1)
            )
        return Result(_record(device), (*lines, spent))


def leave(asked: LeaveOptions) -> Result:
    """Stop taking part in a task and erase all of it from the device; what it cost stays spent.

    Example:  sfumato device leave --journal app.journal --task 1f3a
    """
    with _opened(asked.journal) as device:
        task_id, title = _chosen(device, asked.task)
        _make_sure(f"Leave {title!r} and erase what this device has of it?", asked)
        device.leave(task_id)
        return Result(_record(device), [f"Left {title!r} and erased it; its cost stays."])


def erase(asked: EraseOptions) -> Result:
    """Erase everything on the device but what was spent, which must not be spent again.

    Example:  sfumato device erase --journal app.journal
    """
    with _opened(asked.journal) as device:
        count = len(device.journal.tasks())
        tasks = "1 task" if count == 1 else f"{count} tasks"
        _make_sure(f"Erase {tasks} from this device?", asked)
        device.erase()
        return Result(_record(device), [f"Erased {tasks}; what was spent stays spent."])


def _opened(path: Path) -> closing[Device]:
    """Open an existing journal; a command that only looks must not create one."""
    from sfumato.device import Device, Limits

    if not path.is_file():
        raise InputError(f"--journal is {path}; there is no such file.")
    return closing(Device.open(path, Limits(0.0)))  # joins nothing


def _chosen(device: Device, task: str | None) -> tuple[str, str]:
    """Return the id and the title of the task that is meant."""
    titles = {bytes(row[0]): row[2] for row in device.journal.payments()}
    joined = [each.task_id for each in device.journal.tasks()]
    matching = [each for each in joined if each.hex().startswith((task or "").lower())]
    if len(matching) != 1:
        known = ", ".join(f"{each.hex()[:12]} ({titles[each]!r})" for each in joined) or "none"
        typed = "is missing" if task is None else f"is {task!r}"
        raise InputError(f"--task {typed}; the device takes part in {known}.")
    return matching[0].hex(), titles[matching[0]]


def _make_sure(question: str, asked: EraseOptions) -> None:
    """Ask a person, unless --yes has answered already."""
    if asked.yes:
        return
    nobody = InputError("--yes is missing; without it a person has to be asked.")
    if asked.as_json:
        raise nobody
    try:
        if not typer.confirm(question, err=True):
            raise typer.Exit(1)
    except typer.Abort:
        raise nobody from None


def _spent(device: Device) -> float:
    return device.ledger.spent / UNITS


def _record(device: Device) -> dict[str, Any]:
    """Return what the device has sent and spent as plain data."""
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
                for period, outcome, when in device.journal.outcomes(bytes(task_id))
            ],
        }
        for task_id, paid, title, at, left_at, promise in device.journal.payments()
    ]
    return {"tasks": tasks, "spent": _spent(device)}


def _time(at: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))
