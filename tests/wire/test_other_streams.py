"""A stream of another package is asked for in a task file like any other."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import pytest

from sfumato import catalog
from sfumato.errors import ConfigurationError
from sfumato.streams import registry
from sfumato.streams.published.topl import ToPL
from sfumato.streams.registry import spec_of, stream_of
from sfumato.streams.window import Window
from sfumato.wire import fields

MEMO = """\
stream = "memo"
title = "Notes"
epsilon = 1
periods = 6
period = "1 hour"
pages = 4
values = {kind = "category", items = ["a", "b"]}
"""
AMOUNTS = """\
stream = "topl"
title = "Fares"
epsilon = 1
periods = 6
period = "1 hour"
learning = 2
values = {kind = "number", low = 0, high = 500}
"""


class Memo(Window):
    """A stream that nothing here knows of, with fields of its own."""

    needed: ClassVar[Mapping[str, str]] = {"pages": "a whole number, how many pages there are,"}
    optional: ClassVar[tuple[str, ...]] = ("colour",)

    @classmethod
    def fields(cls, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return the pages and their colour."""
        pages = fields.in_range(task["pages"], ("pages",), 1, task["periods"])
        colour = fields.choice(task.get("colour", "red"), ("colour",), ("red", "blue"))
        return {"pages": pages, "colour": colour}

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> Memo:
        """Return the stream of a published task."""
        return cls(spec["pages"], spec["epsilon"], 100, tuple(spec["values"]["items"]))


@pytest.fixture(autouse=True)
def memo() -> Iterator[None]:
    registry.STREAMS["memo"] = f"{Memo.__module__}:Memo"
    yield
    del registry.STREAMS["memo"]


def test_its_own_fields_are_checked_and_kept() -> None:
    task = catalog.parse(MEMO)
    assert (task.stream, task.design) == ("memo", {"pages": 4, "colour": "red"})
    assert task.plain()["stream"] == "memo"
    assert catalog.changed(task, colour="blue").task_id != task.task_id
    assert catalog.stream(task) == Memo(4, 1.0, 100, ("a", "b"))


def test_it_is_published_and_read_again() -> None:
    task = catalog.parse(MEMO)
    chosen = catalog.stream(task)
    assert stream_of(spec_of(task, chosen, start=0)) == chosen


def test_amounts_are_asked_for_by_their_bound() -> None:
    assert catalog.stream(catalog.parse(AMOUNTS)) == ToPL(1.0, 500.0, learning=2)


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("pages = 4", "pages = 7", "n.toml, line 6: pages is 7; a whole number in 1..6"),
        ("pages = 4\n", "", "n.toml: pages is missing; a whole number, how many pages there are,"),
        ("pages = 4", "pages = 4\ncolour = 'rod'", "line 7: colour is 'rod'; red or blue"),
        ("pages = 4", "pages = 4\nmix = 1", "line 7: mix is no field of a task; a task of the"),
        ("pages = 4", "pagse = 4", "line 6: pagse is no field of a task; did you mean 'pages'?"),
        ('"memo"', '"memos"', "n.toml, line 1: stream is 'memos'; there are flat, memo, tiers,"),
        ('"memo"', "3", "n.toml, line 1: stream is '3'; there are flat, memo, tiers,"),
        (
            'title = "Notes"\nepsilon = 1',
            'title = "Notes"\nepsilon = 0',
            "n.toml, line 3: epsilon is 0; a number in 1e-06..20",
        ),
        ("low = 0", "low = 1", "line 7: values is {'clip': False, 'high': 500.0, 'kind': 'number'"),
        ("learning = 2", "learning = 6", "line 6: learning is 6; a whole number in 1..5"),
        ("learning = 2", "limit = 0", "line 6: limit is 0; a whole number in 1.."),
        ("learning = 2", "variant = 'grey'", "line 6: variant is 'grey'; white or plain"),
        (
            'periods = 6\nperiod = "1 hour"\nlearning',
            'periods = 1\nperiod = "1 hour"\nlearning',
            "line 4: periods is 1; a whole number in 2..16384",
        ),
    ],
)
def test_a_mistake_in_its_fields_gets_one_sentence(before: str, after: str, sentence: str) -> None:
    (text,) = (text for text in (MEMO, AMOUNTS) if before in text)
    with pytest.raises(ConfigurationError, match=re.escape(sentence)):
        catalog.parse(text.replace(before, after), "n.toml")
