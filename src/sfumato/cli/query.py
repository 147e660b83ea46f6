"""`sfumato query`: ask a collector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from sfumato import client
from sfumato.cli import text_tables
from sfumato.cli.command import Count, Parts, Result
from sfumato.core.answers import Answers

__all__ = ["query", "text"]


@dataclass(frozen=True)
class QueryOptions:
    """A question to a collector."""

    address: Annotated[str, typer.Argument()]
    """The address of the task, or of a collector that has only one."""
    ask: str = "mean"
    """mean, range, prefix, difference, top or curve."""
    period: Count | None = None
    """The period to ask about; by default the last one."""
    item: str | None = None
    """Answer for one item only."""
    first: Count | None = None
    """The first period of a range."""
    last: Count | None = None
    """The last period of a range or a prefix."""
    before: Count | None = None
    """The two periods of a difference."""
    after: Count | None = None
    """The two periods of a difference."""
    k: Count | None = None
    """The number of items in the top."""
    average: bool = False
    """Return the average instead of the sum."""
    decoder: str = "online"
    """online (final), smoothed (by all reports so far), or under a prior on how curves move:
    filtered (final) or posterior (by all reports so far)."""
    projection: str | None = None
    """simplex moves shares of which each device has exactly one to the nearest ones that sum to
    one, and their intervals with them."""
    level: float = 0.95


def query(asked: QueryOptions) -> Result:
    """Ask a collector; every answer comes with its interval.

    A token for tasks that are not public is read from SFUMATO_ANALYST_TOKEN.

    Example:  sfumato query http://127.0.0.1:8080 --ask top -k 3
    """
    task = client.task_of(asked.address)
    question = {name: value for name, value in vars(asked).items() if value is not None}
    question |= {"query": asked.ask, "average": "true"}
    for name in ("address", "ask", *(() if asked.average else ("average",))):
        del question[name]
    if asked.period is None and asked.ask in ("mean", "top"):
        question["period"] = max(_closed(task), 1)
    variables = ("SFUMATO_ANALYST_TOKEN", "SFUMATO_OPERATOR_TOKEN")
    answer = client.ask(f"{task}/answers", question, variables=variables)
    return Result(answer, text(Answers.of_plain(answer)))


def _closed(task: str) -> int:
    """Return the last period of a task that has closed; 0 if none has."""
    base, _, name = task.rpartition("/v1/tasks/")
    listed = client.ask(f"{base}/v1/tasks")["tasks"]
    return next((int(each["closed"]) for each in listed if each["task_id"] == name), 0)


def text(answers: Answers) -> Parts:
    """Yield the question, the answers with their intervals, and what is promised."""
    yield f"{answers.question}\n"
    yield text_tables.answers_table(answers)
    yield f"\n{answers.sentence()}"
