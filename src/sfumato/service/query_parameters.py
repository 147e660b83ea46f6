"""Questions in the query of an address, and their answers.

A period is named by its number, or by a date or time that it contains, as in ``2026-11-18`` or
``2026-11-18T09:30``; times without an offset are UTC.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np

from sfumato.core.answers import Answers
from sfumato.core.decoded import ONLINE
from sfumato.core.domain import shortened
from sfumato.core.estimate import LARGEST_LEVEL
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.queries.history import History
from sfumato.service.collector import TooFew
from sfumato.service.effort import refuse_long, refuse_many
from sfumato.service.released_answers import released
from sfumato.service.running_task import RunningTask
from sfumato.streams.amplification import TOO_FEW, fewest_sent, promised

__all__ = ["QUERIES", "answer", "answers", "kept"]

_NUMBER: Final = re.compile(r"(?=.{1,32}$)[0-9]*\.?[0-9]+(e-?[0-9]+)?", re.ASCII)
_PERIODS: Final = ("period", "first", "last", "before", "after")
QUERIES: Final[Mapping[str, tuple[str, ...]]] = {
    "mean": ("period", "item", "projection"),
    "range": ("first", "last", "average", "item", "projection"),
    "prefix": ("last", "average", "item", "projection"),
    "difference": ("before", "after", "item"),
    "top": ("k", "period", "projection"),
    "curve": ("item", "simultaneous", "projection"),
    "events": ("item", "above", "rate"),
}
"""The questions and their fields; all of them take a decoder and, but for events, a level."""

MOST_ROWS: Final = 1 << 18
"""The largest number of rows of one answer."""

_NEEDED: Final = {
    "mean": ("period",),
    "range": ("first", "last"),
    "prefix": ("last",),
    "difference": ("before", "after"),
    "top": ("k", "period"),
    "curve": (),
    "events": ("above",),
}


def answer(running: RunningTask, given: Mapping[str, str]) -> dict[str, Any]:
    """Return the answer to a question as plain data."""
    query, answered = answers(running, given)
    return {"query": query} | answered.plain()


def answers(
    running: RunningTask, given: Mapping[str, str], *, at_once: bool = False
) -> tuple[str, Answers]:
    """Return a question's name and its answers; raise ConfigurationError if it is wrong.

    With ``at_once``, TakesLong is raised instead if that takes longer than others can wait.
    """
    query = _checked(given)
    asked = {name: _read(running, name, text) for name, text in given.items() if name != "query"}
    labels = {str(label): label for label in running.labels}
    item = asked.pop("item", None)
    if item is not None and item not in labels:
        raise ConfigurationError(f"item is {item[:40]!r}; there are {shortened(running.labels)}.")
    if query in ("curve", "events"):
        asked["item"] = None if item is None else labels[item]
    rows = running.closed * len(labels)
    if query == "curve" and item is None and rows > MOST_ROWS:
        raise ConfigurationError(
            f"item is missing; all curves have {rows:,} numbers, and an answer has up to "
            f"{MOST_ROWS:,}. Name one item."
        )
    if at_once:
        every = query == "curve" and item is None
        refuse_many(rows if every else max(running.closed, len(labels)))
    _refuse_waiting(running, asked)
    short = running.short_periods()
    _refuse_short(running, short, asked, query)
    answered = released(running, query, asked)
    if answered is None:
        decoder = asked.get("decoder", ONLINE)
        if at_once:
            about = (
                () if query in ("curve", "events") else _periods_of(asked, query, running.closed)
            )
            ends = {end for span in about for end in (span.start, span.stop - 1)}
            refuse_long(running, decoder, ends, is_projected="projection" in asked)
        answered = _ask(running.history(decoder), query, asked)
    if query in ("curve", "events"):
        answered = _without(_timed(running, answered), short)
    elif item is not None:
        answered = answered.pick([answered.labels.index(labels[item])])
    return query, _remarked(running, answered, _periods_of(asked, query, running.closed))


def _periods_of(asked: Mapping[str, Any], query: str, closed: int) -> list[range]:
    """Return the periods that a question is about; their numbers may be of any size."""
    if query in ("curve", "events"):
        return [range(1, closed + 1)]
    first = 1 if query == "prefix" else asked.get("first", 1)
    spanned = [range(first, asked["last"] + 1)] if "last" in asked else []
    named = (asked[name] for name in ("period", "before", "after") if name in asked)
    return [*spanned, *(range(period, period + 1) for period in named)]


def _among(periods: Iterable[int], about: Sequence[range]) -> tuple[int, ...]:
    """Return those of some periods that a question is about."""
    return tuple(period for period in periods if any(period in span for span in about))


def _remarked(running: RunningTask, answered: Answers, about: Sequence[range]) -> Answers:
    """Return answers with what has to be said of the periods that they are about."""
    incomplete = _among(running.incomplete(), about)
    return replace(answered, incomplete=incomplete, flagged=_among(running.suspicions(), about))


def _checked(given: Mapping[str, str]) -> str:
    """Return the name of a question; raise ConfigurationError if its fields are not its own."""
    query = given.get("query", "mean")
    if query not in QUERIES:
        raise ConfigurationError(
            f"query is {query[:40]!r}; one of {', '.join(QUERIES)} is expected."
        )
    level = () if query == "events" else ("level",)
    known = (*QUERIES[query], "query", "decoder", *level)
    for name in given:
        if name not in known:
            raise ConfigurationError(
                f"{name[:40]!r} is no field of the query {query}; it has {', '.join(known)}."
            )
    for name in _NEEDED[query]:
        if name not in given:
            raise ConfigurationError(f"{name} is missing; the query {query} needs it.")
    return query


def _timed(running: RunningTask, answered: Answers) -> Answers:
    """Return answers about periods with the time at which each of them begins."""
    spec = running.published.spec
    times = {
        period: _written(spec["start"] + (period - 1) * spec["period_seconds"])
        for period in dict.fromkeys(answered.labels)
        if isinstance(period, int)
    }
    column = tuple(times[period] for period in answered.labels if isinstance(period, int))
    return replace(answered, beside={"time": column, **answered.beside})


def _written(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _refuse_waiting(running: RunningTask, asked: Mapping[str, Any]) -> None:
    """Raise MismatchError if a question is about a period that an engine has yet to count."""
    named = [asked[name] for name in _PERIODS if name in asked]
    lag = running.lag
    if lag and (any(lag.first <= period <= lag.last for period in named) or not running.closed):
        raise MismatchError(f"{lag.words(time.time())}; it has no answer yet.")


def _refuse_short(
    running: RunningTask, short: Sequence[int], asked: Mapping[str, Any], query: str
) -> None:
    """Raise TooFew if a question is about a period of which nothing is published."""
    if query in ("curve", "events"):
        return
    for period in _among(short, _periods_of(asked, query, running.closed)):
        raise TooFew(f"period {period} has {TOO_FEW}, so nothing is known of it. {kept(running)}")


def kept(running: RunningTask) -> str:
    """Return what a task promises about shuffled reports, which holds for all it publishes."""
    assert running.required is not None  # noqa: S101 -- only asked of tasks with a shuffle
    return str(promised(running.protocol, running.required, fewest_sent(running.published.spec)))


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


def _read(running: RunningTask, name: str, text: str) -> Any:
    if name in _PERIODS:
        return _period(running, name, text)
    if name == "k":
        if not _is_whole(text):
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
    if name in ("above", "rate"):
        if not _NUMBER.fullmatch(text.removeprefix("-" if name == "above" else "")):
            raise ConfigurationError(f"{name} is {text[:40]!r}; a number is expected, as in 0.3.")
        return float(text)
    return text


def _is_whole(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 10


def _period(running: RunningTask, name: str, text: str) -> int:
    """Return the number of the period that a text names, or that contains its date."""
    if _is_whole(text):
        return int(text)
    try:
        at = datetime.fromisoformat(text if len(text) < 40 else "").replace(microsecond=0)
    except ValueError:
        raise ConfigurationError(
            f"{name} is {text[:40]!r}; a period's number, or a date or time within it as in "
            "2026-11-18T09:30, is expected."
        ) from None
    period = running.period_at((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp())
    if running.closed and not 1 <= period <= running.closed:
        begin, end = (
            datetime.fromtimestamp(running.ends_at(index), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            for index in (0, running.closed)
        )
        raise ConfigurationError(
            f"{name} is {text!r}; a moment from {begin} up to {end}, when the last closed period "
            "ends, is expected."
        )
    return period
