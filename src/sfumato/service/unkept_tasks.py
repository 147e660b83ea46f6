"""Refusals of tasks that need something which this collector does not do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sfumato.errors import ConfigurationError
from sfumato.streams.amplification import fewest_sent, requirement
from sfumato.wire.reports import LARGEST_MIXED, MOST_REPORTS, Layout
from sfumato.wire.sealing import OVERHEAD
from sfumato.wire.task import COUNTED, Task

__all__ = ["mixer_of", "refuse_asking", "refuse_unkept", "refuse_unmixable"]


def refuse_unkept(task: Task, *, sealed: bool) -> None:
    """Raise ConfigurationError if a task needs something that this collector does not do."""
    if task.shuffler is not None:
        raise ConfigurationError(
            f"shuffler is {task.shuffler!r}; this collector does not work with one that a task "
            "names, so leave it out and write where devices send as the endpoint."
        )
    if task.enrolment not in (None, COUNTED):
        raise ConfigurationError(
            f"enrolment is {task.enrolment!r}; anybody may take part in the tasks of this "
            "collector, so leave it out."
        )
    if task.counts is not None and task.keep is not None:
        raise ConfigurationError(
            f"keep is {task.keep!r} where counts is {task.counts!r}; reports that an engine "
            "has counted are erased at once, so leave it out."
        )
    if task.renew is not None and not sealed:
        raise ConfigurationError(
            f"renew is {task.renew} seconds; the task's reports are not sealed, so that there is "
            "no key to renew."
        )


def refuse_asking(task: Task, rounds: int) -> None:
    """Raise ConfigurationError if an engine is to count answers to questions."""
    if task.counts is not None and rounds:
        raise ConfigurationError(
            f"counts is {task.counts!r}; the next question of this task depends on the answers to "
            "the last one, so that only the collector can count them, and counts is left out."
        )


def mixer_of(task: Task, endpoint: str = "") -> str:
    """Return the address of a task's shuffler; empty if its reports are not shuffled."""
    table = task.design.get("shuffle")
    if table is None:
        return ""
    url = dict(table).get("url")
    if url is None:
        raise ConfigurationError(
            "shuffle.url is missing; the address of the shuffler that devices send to is expected."
        )
    if endpoint or task.endpoint:
        raise ConfigurationError(
            f"endpoint is {endpoint or task.endpoint!r} where the task has a shuffle; devices send "
            "to its shuffle.url, so leave the endpoint out."
        )
    return str(url).rstrip("/")


def refuse_unmixable(spec: Mapping[str, Any]) -> None:
    """Raise ConfigurationError if the reports of a task with a ``shuffle`` cannot be mixed."""
    required = requirement(spec)
    if required is None:
        return
    if "cap" in spec:
        raise ConfigurationError(
            f"cap is {spec['cap']} where the task has a shuffle; nobody knows where shuffled "
            "reports come from, so leave it out."
        )
    if not spec["sealed"]:
        raise ConfigurationError(
            "sealed is false where the task has a shuffle; the shuffler must not read reports, so "
            "they are sealed to the collector."
        )
    size = Layout(spec["payload"], OVERHEAD).report_dtype.itemsize
    # Twice as many must fit, so that any number from min_batch on can be cut into whole batches.
    most = min(MOST_REPORTS, LARGEST_MIXED // size) // 2
    least = fewest_sent(spec)
    if least > most:
        asked = f"shuffle.min_batch is {required.min_batch:,}"
        if least > required.min_batch:
            asked += f", so that {least:,} messages leave together"
        raise ConfigurationError(
            f"{asked}; reports of {size} bytes are mixed up to "
            f"{most:,} at a time, so that many at most are expected."
        )
