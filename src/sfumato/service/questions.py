"""Questions as they come in an address, and their answers as plain data."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sfumato.core.domain import shortened
from sfumato.core.estimate import LARGEST_LEVEL
from sfumato.errors import ConfigurationError, MismatchError
from sfumato.queries.history import Answers, History
from sfumato.queries.postprocess import Processed
from sfumato.service.desk import Desk

__all__ = ["QUERIES", "answer", "known"]

Floats = NDArray[np.float64]
_NUMBER: Final = re.compile(r"(?=.{1,32}$)[0-9]*\.?[0-9]+(e-?[0-9]+)?", re.ASCII)
_WHOLE: Final = ("period", "first", "last", "before", "after", "k")
QUERIES: Final[Mapping[str, tuple[str, ...]]] = {
    "mean": ("period", "item"),
    "range": ("first", "last", "average", "item"),
    "prefix": ("last", "average", "item"),
    "difference": ("before", "after", "item"),
    "top": ("k", "period"),
    "curve": ("item", "simultaneous"),
}
"""What can be asked, and by which fields; all take a decoder and a level."""

_NEEDED: Final = {
    "mean": ("period",),
    "range": ("first", "last"),
    "prefix": ("last",),
    "difference": ("before", "after"),
    "top": ("k", "period"),
    "curve": ("item",),
}


def answer(desk: Desk, given: Mapping[str, str]) -> dict[str, Any]:
    """Return the answer to a question; raise ConfigurationError if it makes no sense."""
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
    history = desk.history()
    asked = {name: _read(name, text) for name, text in given.items() if name != "query"}
    item = asked.pop("item", None)
    labels = {str(label): label for label in desk.labels}
    if item is not None and item not in labels:
        raise ConfigurationError(f"item is {item[:40]!r}; there are {shortened(desk.labels)}.")
    if query == "curve":
        asked["item"] = labels[str(item)]
    found = _ask(history, query, asked)
    quantity = found.quantity if isinstance(found, Answers) else history.quantity
    data = _plain(found, query, asked) | {"quantity": quantity.plain()}
    if item is not None and query != "curve":
        data["answers"] = [one for one in data["answers"] if str(one["item"]) == item]
    return data


def _ask(history: History, query: str, asked: dict[str, Any]) -> Answers | Processed:
    try:
        found: Answers | Processed = getattr(history, query)(**asked)
    except MismatchError:
        raise MismatchError(
            "no report has been counted for what is asked; the answer is unknown."
        ) from None
    return found


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


def _plain(found: Answers | Processed, query: str, asked: Mapping[str, Any]) -> dict[str, Any]:
    what = found.what if isinstance(found, Answers) else "item"
    sides = (found.values, found.low, found.high)
    if isinstance(found, Answers):
        question, as_of = found.question, found.as_of
    else:
        question, as_of = f"The {asked['k']} largest of period {asked['period']}", asked["period"]
    return {
        "query": query,
        "question": question,
        "answers": [
            {what: label, "value": value, "low": low, "high": high}
            for label, (value, low, high) in zip(found.labels, known(*sides), strict=True)
        ],
        "level": found.level,
        "as_of": as_of,
        "method": found.method,
        "n": found.n,
        "guarantee": str(found.guarantee),
    }


def known(*sides: Floats) -> list[list[float | None]]:
    """Return values with their intervals, all None where one of the three is not known."""
    rows = np.column_stack(sides)
    nothing: list[float | None] = [None] * len(sides)
    finite = np.asarray(np.isfinite(rows).all(axis=1))
    return [row if good else nothing for row, good in zip(rows.tolist(), finite, strict=True)]
