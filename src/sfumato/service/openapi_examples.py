"""Examples of questions and of a task, for the OpenAPI document; tests run all of them.

The questions are about the task of the example, of which three periods have closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

__all__ = ["QUESTIONS", "TASK", "QuestionExample"]

TASK: Final[Mapping[str, Any]] = {
    "task": {
        "title": "Where people listen",
        "epsilon": 2.0,
        "periods": 6,
        "period": "1 hour",
        "changes": 3,
        "values": {"kind": "category", "items": ["home", "work", "road"]},
    },
    "public": True,
}
"""A task as it is published."""


@dataclass(frozen=True)
class QuestionExample:
    """A question to a task.

    Parameters
    ----------
    summary
        What is asked, in words.
    fields
        The fields of the question.

    """

    summary: str
    fields: Mapping[str, Any]


QUESTIONS: Final[Mapping[str, QuestionExample]] = {
    "mean": QuestionExample("All items in the second period.", {"query": "mean", "period": 2}),
    "today": QuestionExample(
        "All items in the period that goes on at a time.",
        {"query": "mean", "period": "2026-11-18T09:30Z"},
    ),
    "range": QuestionExample(
        "The average of an item over three periods.",
        {"query": "range", "first": 1, "last": 3, "average": "true", "item": "home"},
    ),
    "prefix": QuestionExample(
        "Every item's sum since the beginning.", {"query": "prefix", "last": 3}
    ),
    "difference": QuestionExample(
        "What has changed since the first period.",
        {"query": "difference", "before": 1, "after": 3},
    ),
    "top": QuestionExample(
        "The two largest items, with intervals that all hold at once.",
        {"query": "top", "k": 2, "period": 3},
    ),
    "curve": QuestionExample("One item in every period.", {"query": "curve", "item": "home"}),
    "band": QuestionExample(
        "The same with a band that holds in all periods at once.",
        {"query": "curve", "item": "home", "simultaneous": "true", "level": 0.9},
    ),
    "curves": QuestionExample(
        "All items in every period, as CSV.", {"query": "curve", "format": "csv"}
    ),
    "smoothed": QuestionExample(
        "The second period, read again by all reports so far.",
        {"query": "mean", "period": 2, "decoder": "smoothed", "projection": "simplex"},
    ),
    "events": QuestionExample(
        "When an item was above a fifth, with a false alarm in one period of a hundred.",
        {"query": "events", "item": "home", "above": 0.2, "rate": 0.01},
    ),
}
"""Questions by name; the time in ``today`` is one within the second period."""
