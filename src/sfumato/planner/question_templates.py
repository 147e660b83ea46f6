"""Task files that begin with a question in plain words.

Each template is a question that people ask, and the fields of a task that answers it, with a
sentence on why they are what they are. What is asked is recognised by its words.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sfumato.errors import InputError

__all__ = ["TEMPLATES", "QuestionTemplate", "template_for"]


@dataclass(frozen=True)
class QuestionTemplate:
    """A question in plain words, and the task that answers it.

    Parameters
    ----------
    question
        The question.
    words
        The words that it is recognised by, beside those of the question.
    fields
        The fields of the task file, in their order.
    why
        A sentence for each field that needs one.

    """

    question: str
    words: tuple[str, ...]
    fields: Mapping[str, Any]
    why: Mapping[str, str] = field(default_factory=dict)

    def text(self, **changed: Any) -> str:
        """Return the task file, with comments; some fields may be changed."""
        fields = {**self.fields, **changed}
        lines = [
            f"# {self.question}",
            "#",
            "# Everything is explained in docs/task.md; `sfumato plan` says what this file tells.",
        ]
        for name, value in fields.items():
            why = self.why.get(name)
            if why is not None:
                lines += ["", *(f"# {line}" for line in _wrapped(why))]
            lines.append(f"{name} = {_written(value)}")
        return "\n".join(lines) + "\n"


def template_for(words: str) -> QuestionTemplate:
    """Return the template that shares most words with a question.

    Examples
    --------
    >>> template_for("how many people have dark mode switched on?").question
    'Which features do people have switched on?'
    >>> template_for("places").question
    'Where are people?'

    """
    asked = _words(words)
    scores = {
        name: 4 * (name in asked) + len(asked & _words(f"{each.question} {' '.join(each.words)}"))
        for name, each in TEMPLATES.items()
    }
    best = max(scores, key=lambda name: scores[name])
    if not scores[best] or list(scores.values()).count(scores[best]) > 1:
        listed = "; ".join(f"{name}: {each.question}" for name, each in TEMPLATES.items())
        raise InputError(f"the question is {words[:80]!r}; one of these is expected: {listed}")
    return TEMPLATES[best]


_COMMON: Final = frozenset(
    "a and are at do does for have how in is it many of on or people the their they to use users "  # noqa: SIM905 -- words to read
    "what which who with".split()
)


def _words(text: str) -> set[str]:
    """Return the words of a text that say something, without the endings of plurals."""
    return {word.rstrip("s") for word in re.findall(r"[a-z]+", text.lower()) if word not in _COMMON}


def _written(value: Any) -> str:
    """Return a value as a task file has it."""
    if isinstance(value, Mapping):
        pairs = ", ".join(f"{name} = {_written(part)}" for name, part in value.items())
        return f"{{ {pairs} }}"
    return json.dumps(value, ensure_ascii=False)


def _wrapped(words: str, width: int = 96) -> list[str]:
    lines = [""]
    for word in words.split():
        if len(lines[-1]) + len(word) + 1 > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


_EPSILON: Final = (
    "The privacy of a device's whole stream. With epsilon 1 nobody who suspects something at even "
    "odds ends with odds above 2.7 to 1; errors grow as it shrinks."
)
_WINDOW_EPSILON: Final = (
    "Any so many consecutive periods of a device are protected together with this epsilon. Choose "
    "the window as long as what should be hidden lasts."
)
_PERIODS: Final = (
    "After so many periods the task ends; the more there are, the less each of them tells."
)

TEMPLATES: Final[Mapping[str, QuestionTemplate]] = {
    "features": QuestionTemplate(
        "Which features do people have switched on?",
        ("settings", "feature", "mode", "enabled", "options", "dark"),
        {
            "title": "Features switched on",
            "epsilon": 1.0,
            "periods": 14,
            "period": "1 day",
            "changes": 4,
            "values": {"kind": "set", "items": ["dark mode", "large text", "captions"]},
        },
        {
            "epsilon": _EPSILON,
            "periods": _PERIODS,
            "changes": "How often all settings of a device change in these days, together; what "
            "changes more often is no longer followed.",
            "values": "Any number of these may be on at once; most = 2 would say at most how many.",
        },
    ),
    "places": QuestionTemplate(
        "Where are people?",
        ("place", "location", "city", "room", "region", "whereabouts", "listen", "where"),
        {
            "kind": "window",
            "title": "Where people are",
            "window": 24,
            "epsilon": 1.0,
            "devices": 100000,
            "periods": 720,
            "period": "1 hour",
            "values": {"kind": "category", "items": ["home", "work", "road", "elsewhere"]},
        },
        {
            "window": _WINDOW_EPSILON,
            "devices": "How many devices are expected to take part; public.",
            "periods": _PERIODS,
            "values": "Each device is at exactly one of these.",
        },
    ),
    "outages": QuestionTemplate(
        "How many devices have a problem right now?",
        ("outage", "down", "broken", "offline", "failing", "error", "crash", "online", "fault"),
        {
            "kind": "window",
            "title": "Devices with a problem",
            "window": 12,
            "epsilon": 1.0,
            "devices": 100000,
            "periods": 2016,
            "period": "5 minutes",
            "values": {"kind": "category", "items": ["fine", "trouble"]},
        },
        {
            "window": _WINDOW_EPSILON,
            "devices": "How many devices are expected to take part; public.",
            "values": "Each device is one of these; `sfumato query --ask events` raises alarms.",
        },
    ),
    "level": QuestionTemplate(
        "How high is a number on average?",
        ("average", "mean", "battery", "temperature", "minutes", "speed", "duration", "hours"),
        {
            "kind": "window",
            "title": "Battery level",
            "window": 24,
            "epsilon": 1.0,
            "devices": 100000,
            "periods": 720,
            "period": "1 hour",
            "values": {"kind": "number", "low": 0, "high": 100, "unit": "%"},
        },
        {
            "window": _WINDOW_EPSILON,
            "devices": "How many devices are expected to take part; public.",
            "values": "Numbers outside of low and high count as the nearer of the two. The wider "
            "the range, the larger the error: take one that most numbers are in.",
        },
    ),
    "adoption": QuestionTemplate(
        "How fast does something new spread?",
        ("new", "adoption", "version", "update", "upgrade", "install", "spread", "rollout"),
        {
            "title": "Devices with the new version",
            "epsilon": 1.0,
            "periods": 28,
            "period": "1 day",
            "changes": 1,
            "queries": "history",
            "decoder": "smoothed",
            "values": {"kind": "binary"},
        },
        {
            "epsilon": _EPSILON,
            "periods": _PERIODS,
            "changes": "A device that has it keeps it: one change. Differences are cheap then.",
            "queries": "The whole curve counts, once all days are over.",
        },
    ),
    "trends": QuestionTemplate(
        "What rises and what falls?",
        ("trend", "price", "rise", "fall", "move", "popular", "up", "down"),
        {
            "title": "What rises and falls",
            "epsilon": 1.0,
            "periods": 14,
            "period": "1 day",
            "changes": 5,
            "values": {"kind": "moves", "items": ["bread", "milk", "tea"]},
        },
        {
            "epsilon": _EPSILON,
            "periods": _PERIODS,
            "changes": "How many moves of all items together a device reports, at most.",
            "values": "Of each item a device says in each period: up, down, or neither.",
        },
    ),
}
"""The templates by name."""
