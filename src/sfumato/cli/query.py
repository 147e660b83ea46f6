"""`sfumato query`: ask a collector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final

import typer

from sfumato import client, engines
from sfumato.cli import sparklines, text_tables
from sfumato.cli.command import Count, Parts, Result
from sfumato.core.answers import Answers
from sfumato.engines.counted_task import CountedTask
from sfumato.errors import InputError

__all__ = ["query", "text"]

Asked = client.TaskClient | CountedTask
"""What can be asked: a task of a collector, or one that an engine has counted."""
MOST_DRAWN: Final = 20_000
"""The largest number of values that are fetched for small curves."""


@dataclass(frozen=True)
class QueryOptions:
    """A question to a collector."""

    address: Annotated[str, typer.Argument()]
    """The address of the task, or of a collector that has only one; or a file of tallies, as
    `sfumato aggregate` writes it."""
    ask: str = "mean"
    """mean, range, prefix, difference, top, curve or events."""
    period: str | None = None
    """The period to ask about, by its number or a date within it; by default the last one."""
    item: str | None = None
    """Answer for one item only."""
    first: str | None = None
    """The first period of a range."""
    last: str | None = None
    """The last period of a range or a prefix."""
    before: str | None = None
    """The two periods of a difference."""
    after: str | None = None
    """The two periods of a difference."""
    k: Count | None = None
    """The number of items in the top."""
    above: float | None = None
    """With events: the threshold."""
    rate: float | None = None
    """With events: how often a period that is not above may have an alarm; 0.01 if left out."""
    average: bool = False
    """Return the average instead of the sum."""
    decoder: str = "online"
    """online (final), smoothed (by all reports so far), or under a prior on how curves move:
    filtered (final) or posterior (by all reports so far)."""
    projection: str | None = None
    """simplex moves shares of which each device has exactly one to the nearest ones that sum to
    one, and their intervals with them."""
    level: float | None = None
    """The probability with which intervals cover; 0.95 if left out."""


def query(asked: QueryOptions) -> Result:
    """Ask a collector; every answer comes with its interval.

    A small curve beside each item shows its way so far, from the lowest to the highest end of its
    intervals: what is only noise stays in the middle. A token for tasks that are not public is read
    from SFUMATO_ANALYST_TOKEN.

    Example:  sfumato query http://127.0.0.1:8080 --ask top -k 3
    """
    if engines.CountedReports.is_file(asked.address):
        task: Asked = CountedTask.read(asked.address)
    else:
        task = client.TaskClient.at(asked.address)
    fields = {name: value for name, value in vars(asked).items() if value is not None}
    for name in ("address", "ask", *(() if asked.average else ("average",))):
        del fields[name]
    if asked.period is None and asked.ask in ("mean", "top"):
        fields["period"] = max(task.closed, 1)
    answers = task.ask(asked.ask, **fields)
    return Result({"query": asked.ask} | answers.plain(), _told(task, asked, answers))


def _told(task: Asked, asked: QueryOptions, answers: Answers) -> Parts:
    """Yield the answers for people, and how far a task is that is not over."""
    yield from _pictured(task, asked, answers)
    if isinstance(task, client.TaskClient):
        summary = task.summary()
        closed, last = summary["closed"], summary["last_period"] or summary["periods"]
        if closed < last:
            yield f"{closed:,} of {last:,} periods have closed so far."


def _pictured(task: Asked, asked: QueryOptions, answers: Answers) -> Parts:
    """Yield the answers for people, with a small curve of each item where there is room."""
    if asked.ask == "events" and not len(answers):
        yield f"{answers.question}\n\nNone, beyond doubt.\n\n{answers.sentence()}"
        return
    if asked.ask in ("curve", "events"):
        if "item" not in answers.beside:
            if asked.ask == "curve":
                yield f"{sparklines.sparkline(answers)}\n"
            yield from text(answers)
            return
        curves = answers
        last = curves.where(period=curves.labels[-1])
        answers = replace(last, labels=last.beside["item"], what="item", beside={})
    else:
        curves = _curves(task, asked, answers)
    ways = {str(item): "" for item in answers.labels}
    if "item" in curves.beside:
        ways |= {item: sparklines.sparkline(curves.where(item=item)) for item in ways}
    elif len(curves):
        ways = dict.fromkeys(ways, sparklines.sparkline(curves))
    yield from text(answers, {"so far": [ways[str(item)] for item in answers.labels]})


def _curves(task: Asked, asked: QueryOptions, answers: Answers) -> Answers:
    """Return the curves of all items that are answered; none if there are too many to draw."""
    one = len(answers) == 1
    try:
        if not one and len(answers) * task.closed > MOST_DRAWN:
            return answers.pick([])
        item = str(answers.labels[0]) if one else None
        return task.curve(item, decoder=asked.decoder)
    except InputError:  # too many items behind the few that were asked for
        return answers.pick([])


def text(answers: Answers, further: Mapping[str, Sequence[str]] | None = None) -> Parts:
    """Yield the question, the answers with their intervals, and what is promised."""
    yield f"{answers.question}\n"
    yield text_tables.answers_table(answers, further=further)
    yield f"\n{answers.sentence()}"
