"""`sfumato task token`, `end`, `archive` and `delete`: looking after a task at its collector."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Annotated, Any, Final

import typer

from sfumato import client
from sfumato.cli.command import Result
from sfumato.errors import InputError

__all__ = ["archive", "delete", "end", "token"]

OPERATOR: Final = ("SFUMATO_OPERATOR_TOKEN",)


@dataclass(frozen=True)
class TokenOptions:
    """The reader of a task who gets a token."""

    task: Annotated[str, typer.Argument()]
    """The address of a task."""
    name: str = "reader"
    """The name of the reader, for whoever takes the token away."""
    revoke: bool = False
    """Take the token of this reader away."""


def token(asked: TokenOptions) -> Result:
    """Give somebody a token that reads the answers of one task, and nothing else.

    It is shown this once, and replaces an earlier one of the same name. The operator's own token is
    read from SFUMATO_OPERATOR_TOKEN.

    Example:  sfumato task token http://127.0.0.1:8080/tasks/5d1e... --name lab
    """
    address = f"{_address(asked.task)}/tokens"
    method = "DELETE" if asked.revoke else "POST"
    fields = {"name": asked.name}
    answer = client.ask(address, fields, method=method, variables=OPERATOR)
    if asked.revoke:
        return Result(answer, [f"Taken away: the token of {asked.name}."])
    return Result(answer, [f"Token of {asked.name}, shown this once:  {answer['token']}"])


@dataclass(frozen=True)
class DeleteOptions:
    """The task to delete."""

    task: Annotated[str, typer.Argument()]
    """The address of a task."""
    confirm: str | None = None
    """The first digits of the task's id, eight or more; asked for where somebody can answer."""


def delete(asked: DeleteOptions) -> Result:
    """Delete a task and all that its collector has of it: reports, tallies, answers, keys, tokens.

    It is deleted from the files of the store as well, but not from backups. Devices that take part
    are not told; what they send is refused. The operator's token is read from
    SFUMATO_OPERATOR_TOKEN.

    Example:  sfumato task delete http://127.0.0.1:8080/tasks/5d1e... --confirm 5d1e0f72
    """
    address = _confirmed(asked.task, asked.confirm, "nothing of it comes back")
    answer = _changed(address, "", "DELETE")
    name = answer["task_id"]
    return Result(answer, [f"Deleted: task {name[:12]}, with everything that was kept of it."])


@dataclass(frozen=True)
class EndOptions:
    """The task to end."""

    task: Annotated[str, typer.Argument()]
    """The address of a task."""
    confirm: str | None = None
    """The first digits of the task's id, eight or more; asked for where somebody can answer."""


def end(asked: EndOptions) -> Result:
    """End a task: periods that have ended still close, each after its grace, and no other.

    What was released stays. Devices learn of it when they next hear from the collector, and send
    nothing more. The operator's token is read from SFUMATO_OPERATOR_TOKEN.

    Example:  sfumato task end http://127.0.0.1:8080/tasks/5d1e... --confirm 5d1e0f72
    """
    address = _confirmed(asked.task, asked.confirm, "a task that was ended does not go on")
    answer = _changed(address, "/end", "POST")
    name, last = answer["task_id"], answer["last_period"]
    which = f"period {last:,} is its last one" if last else "no period of it closes"
    return Result(answer, [f"Ended: task {name[:12]}; {which}."])


@dataclass(frozen=True)
class ArchiveOptions:
    """The task to archive."""

    task: Annotated[str, typer.Argument()]
    """The address of a task that is over."""
    confirm: str | None = None
    """The first digits of the task's id, eight or more; asked for where somebody can answer."""


def archive(asked: ArchiveOptions) -> Result:
    """Archive a task that is over: its reports, ids and keys are erased, its answers stay.

    It is no longer listed, unless somebody asks for archived tasks. The operator's token is read
    from SFUMATO_OPERATOR_TOKEN.

    Example:  sfumato task archive http://127.0.0.1:8080/tasks/5d1e... --confirm 5d1e0f72
    """
    address = _confirmed(asked.task, asked.confirm, "its reports do not come back")
    answer = _changed(address, "/archive", "POST")
    return Result(answer, [f"Archived: task {answer['task_id'][:12]}; its answers stay."])


def _confirmed(task: str, digits: str | None, why: str) -> str:
    """Return the address of a task whose first digits were given again, or are asked for."""
    address = _address(task)
    name = address.rpartition("/")[2]
    if digits is None and sys.stdin.isatty():
        digits = typer.prompt(f"{why.capitalize()}. The first 8 digits of its id", err=True)
    if digits is None or len(digits) < 8 or not name.startswith(digits):
        typed = "missing" if digits is None else repr(digits)
        raise InputError(
            f"--confirm is {typed}; at least the first 8 digits of the task's id are expected, "
            f"as {why}."
        )
    return address


def _changed(address: str, what: str, method: str) -> Any:
    """Return what a collector answers to a change that is confirmed with the task's id."""
    fields = {"confirm": address.rpartition("/")[2]}
    return client.ask(address + what, fields, method=method, variables=OPERATOR)


def _address(task: str) -> str:
    """Return the address of one task; a list of tasks is not enough for a change."""
    if "/tasks/" not in task:
        raise InputError(f"the task is {task!r}; its address is expected, with /tasks/ and its id.")
    return client.task_of(task)
