"""`sfumato query`: ask a collector."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sfumato.cli import collectors, console, text_tables
from sfumato.cli.options import Json
from sfumato.core.answers import Answers

__all__ = ["query"]

Whole = Annotated[int | None, typer.Option(min=1, show_default=False)]


def query(  # noqa: PLR0913 - one for each option
    address: Annotated[str, typer.Argument(help="Of the task, or of a collector that has one.")],
    *,
    ask: Annotated[
        str, typer.Option(help="mean, range, prefix, difference, top or curve.")
    ] = "mean",
    period: Annotated[
        int | None, typer.Option(min=1, help="The last one by default.", show_default=False)
    ] = None,
    item: Annotated[str | None, typer.Option(help="Of one item.", show_default=False)] = None,
    first: Whole = None,
    last: Whole = None,
    before: Whole = None,
    after: Whole = None,
    k: Annotated[int | None, typer.Option("-k", min=1, show_default=False)] = None,
    average: Annotated[bool, typer.Option("--average", help="Instead of a sum.")] = False,
    decoder: Annotated[
        str,
        typer.Option(
            help="online (final), smoothed (by all reports so far), or under a prior on how curves "
            "move: filtered (final) or posterior (by all reports so far)."
        ),
    ] = "online",
    level: Annotated[float, typer.Option(help="How often intervals cover.")] = 0.95,
    as_json: Json = False,
) -> None:
    """Ask a collector; every answer comes with its interval.

    A token for tasks that are not public is read from SFUMATO_ANALYST_TOKEN.

    Example:  sfumato query http://127.0.0.1:8080 --ask top -k 3
    """
    task = collectors.task_of(address)
    if period is None and ask in ("mean", "top"):
        period = max(_closed(task), 1)
    given: dict[str, Any] = {
        "query": ask,
        "period": period,
        "item": item,
        "first": first,
        "last": last,
        "before": before,
        "after": after,
        "k": k,
        "average": "true" if average else None,
        "decoder": decoder,
        "level": level,
    }
    asked = {name: value for name, value in given.items() if value is not None}
    variables = ("SFUMATO_ANALYST_TOKEN", "SFUMATO_OPERATOR_TOKEN")
    told = collectors.ask(f"{task}/answers", asked, variables=variables)
    if as_json:
        console.print_json(told)
    else:
        _print(Answers.of_plain(told))


def _closed(task: str) -> int:
    base, _, name = task.rpartition("/v1/tasks/")
    listed = collectors.ask(f"{base}/v1/tasks")["tasks"]
    return next((int(one["closed"]) for one in listed if one["task_id"] == name), 0)


def _print(answers: Answers) -> None:
    console.say(f"{answers.question}\n")
    console.out().print(text_tables.answers_table(answers))
    console.say(f"\n{answers.sentence()}")
