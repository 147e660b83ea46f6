"""Answers as JSON, CSV and Arrow: the same rows, and all that belongs to them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

import pyarrow.ipc
import pytest
from tests.service.fleets import Fleet
from tests.service.world import START, World

from sfumato.core.answers import SIDES, Answers
from sfumato.service.answer_formats import FORMATS, chosen
from sfumato.service.query_parameters import QUERIES
from sfumato.web.problems import Refused

PEOPLE = 400
ARROW = FORMATS["arrow"]
EVERY = {
    "mean": "query=mean&period=2",
    "range": "query=range&first=2&last=4&average=true",
    "prefix": "query=prefix&last=3",
    "difference": "query=difference&before=1&after=4",
    "top": "query=top&k=2&period=4",
    "curve": "query=curve",
    "events": "query=events&item=home&above=0.2",
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A collector with a task of which four periods have closed."""
    made = World(tmp_path_factory.mktemp("formats"))
    with made.client:
        fleet = Fleet(made.open, PEOPLE)
        for period in range(1, 5):
            made.now = made.open.ends_at(period) + 1
            values = ["home"] * 300 + ["work" if period < 3 else "road"] * 100
            assert made.upload(made.open, fleet.body(values)).status_code == 200
            made.now = made.open.closes_at(period)
            made.close_periods()
        yield made
    made.store.close()


def asked(world: World, query: str, **headers: str) -> Any:
    return world.client.get(f"/v1/tasks/{world.open.name}/answers?{query}", headers=headers)


def test_every_question_is_tried() -> None:
    assert set(EVERY) == set(QUERIES)


@pytest.mark.parametrize("query", EVERY)
def test_the_formats_say_the_same(world: World, query: str) -> None:
    plain = asked(world, EVERY[query]).json()
    answers = Answers.of_plain(plain)
    assert {"level", "method", "as_of", "n", "guarantee", "quantity"} <= set(plain)

    text = asked(world, f"{EVERY[query]}&format=csv")
    assert text.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(text.text)))
    assert len(rows) == len(answers)
    for row, record in zip(rows, plain["answers"], strict=True):
        for name, value in record.items():
            assert row[name] == ("" if value is None else str(value))
        for name in ("query", "level", "method", "as_of", "n", "guarantee"):
            assert row[name] == str(plain[name])

    bytes_ = asked(world, EVERY[query], accept=ARROW)
    assert bytes_.headers["content-type"] == ARROW
    table = pyarrow.ipc.open_stream(bytes_.content).read_all()
    about = json.loads(table.schema.metadata[b"sfumato"])
    assert about == {name: value for name, value in plain.items() if name != "answers"}
    for name in SIDES:
        assert table[name].to_pylist() == [record[name] for record in plain["answers"]]
    assert all(text.headers["vary"] == "accept" for text in (text, bytes_))


def test_a_curve_says_when_its_periods_begin_and_whose_it_is(world: World) -> None:
    rows = asked(world, "query=curve").json()["answers"]
    assert len(rows) == 4 * 3
    assert [row["item"] for row in rows[::4]] == ["home", "work", "road"]
    assert rows[1]["time"] == "1970-01-12T13:46:50Z"  # START + 10 s
    one = asked(world, "query=curve&item=work").json()["answers"]
    assert one == [{name: row[name] for name in row if name != "item"} for row in rows[4:8]]
    single = asked(world, "query=mean&period=3&item=work").json()["answers"][0]
    assert [single[side] for side in SIDES] == pytest.approx([one[2][side] for side in SIDES])


def test_events_are_the_periods_whose_interval_is_above(world: World) -> None:
    curve = asked(world, "query=curve&item=home&level=0.98").json()["answers"]
    limit = sorted(row["low"] for row in curve)[2] - 1e-4
    events = asked(world, f"query=events&item=home&above={limit}&rate=0.01").json()
    assert [row["period"] for row in events["answers"]] == [
        row["period"] for row in curve if row["low"] > limit
    ]
    assert len(events["answers"]) == 2
    assert "1% of the periods" in events["method"]
    assert asked(world, "query=events&item=home&above=1").json()["answers"] == []


@pytest.mark.parametrize(
    "date", ["1970-01-12T13:46:50", "1970-01-12T13:46:59.9Z", "1970-01-12T14:46:51+01:00", "2"]
)
def test_a_period_is_named_by_a_date_within_it(world: World, date: str) -> None:
    question = asked(world, f"query=mean&period={date.replace('+', '%2B')}").json()["question"]
    assert question == "Share of devices in period 2"
    assert START == 1_000_000


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("query=mean&period=2&format=xml", 400, "format is 'xml'; one of json, csv, arrow"),
        ("query=mean&period=soon", 400, "a period's number, or a date"),
        ("query=mean&period=1999-01-01", 400, "period is '1999-01-01'; a moment from 1970-"),
        ("query=mean&period=1960-01-01", 400, "period is '1960-01-01'; a moment from 1970-"),
        ("query=curve&simultaneous=true", 400, "a band is for one item"),
        ("query=events&above=0.3", 400, "item is missing; there are home, work, road"),
        ("query=events&item=home", 400, "above is missing"),
        ("query=events&item=home&above=high", 400, "above is 'high'; a number"),
        ("query=events&item=home&above=0.1&rate=0.7", 400, "rate is 0.7; a number between 0"),
        ("query=events&item=home&above=0.1&level=0.9", 400, "'level' is no field of the query"),
    ],
)
def test_what_cannot_be_answered_is_refused(
    world: World, query: str, status: int, words: str
) -> None:
    refused = asked(world, query)
    assert refused.status_code == status, refused.text
    assert words in refused.json()["detail"]


def test_the_header_is_heard_if_no_format_is_named(world: World) -> None:
    cases = {
        "": "json",
        "*/*": "json",
        "text/html,application/xhtml+xml,*/*;q=0.8": "json",
        "text/csv": "csv",
        "application/json;q=0.5, text/*": "csv",
        f"{ARROW}, application/json;q=0.1": "arrow",
        "application/json;q=0, */*": "csv",
        "text/csv;q=nonsense, application/json;q=0.1": "json",
    }
    for accept, name in cases.items():
        assert chosen(None, accept) == name, accept
        assert chosen("arrow", accept) == "arrow"
    refused = asked(world, EVERY["mean"], accept="image/png")
    assert refused.status_code == 406
    assert "Accept is 'image/png'; answers are sent as one of application/json" in refused.text
    with pytest.raises(Refused):
        chosen(None, "*/*;q=0")


def test_unknown_numbers_are_empty_and_null(tmp_path: Any) -> None:
    from tests.service.houses import House  # noqa: PLC0415

    from sfumato.service.answer_formats import encoded  # noqa: PLC0415
    from sfumato.service.event_stream import answers  # noqa: PLC0415

    house = House(tmp_path)
    values = {"kind": "category", "items": ["=a", 'b,"c']}
    task = {"epsilon": 1.0, "periods": 4, "period": "1 hour", "changes": 2, "values": values}
    running = house.publish(task)
    house.release(running, [float("nan"), 0.25])
    released = answers(running, running.releases[0])
    rows = list(csv.DictReader(io.StringIO(encoded("csv", "mean", released).decode())))
    assert [(row["item"], row["value"]) for row in rows] == [("=a", ""), ('b,"c', "0.25")]
    table = pyarrow.ipc.open_stream(encoded("arrow", "mean", released)).read_all()
    assert table["value"].to_pylist() == [None, 0.25]
    assert json.loads(encoded("json", "mean", released))["answers"][0]["value"] is None
    house.store.close()


@pytest.mark.parametrize("query", ["mean&period=3", "curve&item=work", "curve"])
def test_what_was_released_is_what_the_reports_say(world: World, query: str) -> None:
    """The usual answers come from releases; those that read the reports again are the same."""
    usual = asked(world, f"query={query}").json()
    running = world.open
    history = running.history()
    name, _, field = query.partition("&")
    value = field.partition("=")[2]
    again = history.mean(int(value)) if name == "mean" else history.curve(value or None)
    read = {"query": name} | again.plain()
    for row, other in zip(usual.pop("answers"), read.pop("answers"), strict=True):
        assert {key: row[key] for key in other if key not in SIDES} == {
            key: other[key] for key in other if key not in SIDES
        }
        for side in SIDES:
            assert row[side] == pytest.approx(other[side], rel=1e-9)
    assert usual == read
