"""Questions in the query of an address, and their answers as plain data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np

from sfumato.core.answers import Answers
from sfumato.core.domain import shortened
from sfumato.core.estimate import LARGEST_LEVEL
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.queries.history import History
from sfumato.service.collector import TooFew
from sfumato.service.running_task import RunningTask
from sfumato.streams.amplification import TOO_FEW, promised

__all__ = ["QUERIES", "answer", "kept"]

_NUMBER: Final = re.compile(r"(?=.{1,32}$)[0-9]*\.?[0-9]+(e-?[0-9]+)?", re.ASCII)
_WHOLE: Final = ("period", "first", "last", "before", "after", "k")
QUERIES: Final[Mapping[str, tuple[str, ...]]] = {
    "mean": ("period", "item", "projection"),
    "range": ("first", "last", "average", "item", "projection"),
    "prefix": ("last", "average", "item", "projection"),
    "difference": ("before", "after", "item"),
    "top": ("k", "period", "projection"),
    "curve": ("item", "simultaneous", "projection"),
}
"""The questions and their fields; all of them also take a decoder and a level."""

_NEEDED: Final = {
    "mean": ("period",),
    "range": ("first", "last"),
    "prefix": ("last",),
    "difference": ("before", "after"),
    "top": ("k", "period"),
    "curve": ("item",),
}


def answer(running: RunningTask, given: Mapping[str, str]) -> dict[str, Any]:
    """Return the answer to a question; raise ConfigurationError if the question is wrong."""
    query = given.get("query", "mean")
    if query not in QUERIES:
        raise ConfigurationError(
            f"query is {query[:40]!r}; one of {', '.join(QUERIES)} is expected."
        )
    known = (*QUERIES[query], "query", "decoder", "level")
    for name in given:
        if name not in known:
            raise ConfigurationError(
                f"{name[:40]!r} is no field of the query {query}; it has {', '.join(known)}."
            )
    for name in _NEEDED[query]:
        if name not in given:
            raise ConfigurationError(f"{name} is missing; the query {query} needs it.")
    history = running.history()
    asked = {name: _read(name, text) for name, text in given.items() if name != "query"}
    item = asked.pop("item", None)
    labels = {str(label): label for label in running.labels}
    if item is not None and item not in labels:
        raise ConfigurationError(f"item is {item[:40]!r}; there are {shortened(running.labels)}.")
    if query == "curve":
        asked["item"] = labels[str(item)]
    short = running.short_periods()
    _refuse_short(running, short, asked, query)
    answers = _ask(history, query, asked)
    if query == "curve":
        answers = _without(answers, short)
    if item is not None and query != "curve":
        answers = answers.pick([answers.labels.index(labels[item])])
    return {"query": query} | answers.plain()


def _refuse_short(
    running: RunningTask, short: Sequence[int], asked: Mapping[str, Any], query: str
) -> None:
    """Raise TooFew if a question is about a period of which nothing is published."""
    first = 1 if query == "prefix" else asked.get("first", 1)
    spanned = range(first, asked["last"] + 1) if "last" in asked else ()
    named = {asked[name] for name in ("period", "before", "after") if name in asked}
    for period in short:
        if period in named or period in spanned:
            raise TooFew(
                f"period {period} has {TOO_FEW}, so nothing is known of it. {kept(running)}"
            )


def kept(running: RunningTask) -> str:
    """Return what a task promises about shuffled reports, which holds for all it publishes."""
    assert running.required is not None  # noqa: S101 -- only asked of tasks with a shuffle
    return str(promised(running.protocol, running.required))


def _without(answers: Answers, periods: Sequence[int]) -> Answers:
    """Return the answers of a curve without those of some periods."""
    hidden = np.isin(answers.labels, periods)
    values, low, high = (
        np.where(hidden, np.nan, side) for side in (answers.values, answers.low, answers.high)
    )
    return replace(answers, values=values, low=low, high=high)


def _ask(history: History, query: str, asked: dict[str, Any]) -> Answers:
    try:
        answers: Answers = getattr(history, query)(**asked)
    except MismatchError:
        raise MismatchError(
            "no report has been counted for what is asked; the answer is unknown."
        ) from None
    return answers


def _read(name: str, text: str) -> Any:
    if name in _WHOLE:
        if not (text.isascii() and text.isdigit() and len(text) < 10):
            raise ConfigurationError(f"{name} is {text[:40]!r}; a whole number is expected.")
        return int(text)
    if name in ("average", "simultaneous"):
        if text not in ("true", "false"):
            raise ConfigurationError(f"{name} is {text[:40]!r}; true or false is expected.")
        return text == "true"
    if name == "level":
        if not _NUMBER.fullmatch(text) or not 0 < float(text) <= LARGEST_LEVEL:
            raise ConfigurationError(
                f"level is {text[:40]!r}; a number above 0 and up to {LARGEST_LEVEL} is expected, "
                "as in 0.95."
            )
        return float(text)
    return text
