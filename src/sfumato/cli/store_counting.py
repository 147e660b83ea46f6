"""What `sfumato aggregate` counts of the store of a collector, and with what."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from sfumato.cli import console
from sfumato.cli.command import Result, show
from sfumato.errors import InputError

if TYPE_CHECKING:
    from sfumato.engines.log_following import AcknowledgedEpoch, EpochFollower

__all__ = ["caught_up", "follow", "is_store", "local_follower", "spark_follower"]

SQLITE: Final = b"SQLite format 3"
"""How the file of a store begins."""


def is_store(source: str) -> bool:
    """Return whether a source is a database or the file of a store."""
    from sfumato.store.store_addresses import is_database

    if is_database(source):
        return True
    if not Path(source).is_file():
        return False
    with Path(source).open("rb") as file:
        return file.read(len(SQLITE)) == SQLITE


@contextmanager
def local_follower(source: str, key_secret: Path | None, jobs: int) -> Iterator[EpochFollower]:
    """Give what counts a store with processes of this machine, beside its collector."""
    from sfumato.engines.log_following import LogFollower
    from sfumato.store.key_wrapping import KeyWrapping
    from sfumato.store.store_addresses import is_database, open_store
    from sfumato.store.store_claims import refuse_no_store

    wrapping = KeyWrapping.of(key_secret)
    if not is_database(source):
        refuse_no_store(source)
    with closing(open_store(source, claimed=True)) as store:
        yield LogFollower(store, wrapping, jobs)


@contextmanager
def spark_follower(
    source: str, key_secret: Path | None, master: str, checkpoint: Path | None
) -> Iterator[EpochFollower]:
    """Give what counts a database with Spark."""
    from sfumato.engines.spark_following import SparkFollower
    from sfumato.engines.spark_session import SECRETIVE, session_at
    from sfumato.store.key_wrapping import KeyWrapping
    from sfumato.store.store_addresses import is_database, open_store

    if not is_database(source):
        raise InputError(
            f"--engine is 'spark' and {source} is a file; a postgresql:// address is expected, "
            "which all machines of a cluster reach, or --engine local."
        )
    wrapping = KeyWrapping.of(key_secret)
    with ExitStack() as stack:
        store = stack.enter_context(closing(open_store(source)))
        if checkpoint is None:
            checkpoint = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="sfumato-")))
        with console.waiting("Starting Spark"):
            session = stack.enter_context(session_at(master, SECRETIVE))
        yield SparkFollower(session, store, source, checkpoint, wrapping)


def caught_up(follower: EpochFollower, task: str | None) -> Result:
    """Count what waits, and return what was acknowledged."""
    task_id = _task_id(task)
    with console.waiting("Counting"):
        return _result(list(follower.catch_up(task_id)))


def follow(follower: EpochFollower, task: str | None, *, as_json: bool) -> None:
    """Count what waits and what comes, until somebody ends it; print each epoch."""
    from sfumato.engines.log_following import AcknowledgedEpoch

    refusal = ""
    for each in follower.follow(_task_id(task)):
        if isinstance(each, AcknowledgedEpoch):
            refusal = ""
            show(_result([each]), as_json=as_json)
        elif refusal != str(each):
            refusal = str(each)
            if as_json:
                typer.echo(json.dumps({"error": refusal}, ensure_ascii=False), err=True)
            else:
                console.say(f"sfumato: {refusal}", to=console.err())


def _task_id(task: str | None) -> bytes | None:
    try:
        return None if task is None else bytes.fromhex(task)
    except ValueError:
        raise InputError(f"--task is {task!r}; the id of a task is expected.") from None


def _result(epochs: list[AcknowledgedEpoch]) -> Result:
    lines = [
        f"{each.title}: rows {each.first:,} to {each.last:,}, {each.counted:,} reports were "
        f"counted and {each.refused:,} refused."
        for each in epochs
    ]
    return Result(
        {"epochs": [asdict(each) for each in epochs]}, lines or ["Nothing waits to be counted."]
    )
