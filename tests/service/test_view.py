"""How a page, a table and plain data present each kind of task, and the cost of a large page."""

from __future__ import annotations

import html
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.service.fleets import Fleet
from tests.service.houses import START, House
from tests.service.test_rereading import WINDOW

from sfumato.cli import query
from sfumato.cli.command import Result, show
from sfumato.core.answers import Answers
from sfumato.pages.document import compressed
from sfumato.pages.index_page import IndexPage, IndexQuery
from sfumato.service import query_parameters
from sfumato.service.task_rows import task_rows
from sfumato.service.task_subject import counted_words

HORIZON: dict[str, Any] = {"epsilon": 4.0, "periods": 6, "period": "10 seconds", "changes": 3}
NUMBER = WINDOW["values"]
ITEMS = {"kind": "category", "items": ["home", "work"]}
KINDS: dict[str, tuple[dict[str, Any], str, str]] = {
    "binary": (HORIZON | {"values": {"kind": "binary"}}, "share", "Share of devices"),
    "category": (HORIZON | {"values": ITEMS}, "share", "Share of devices"),
    "set": (HORIZON | {"values": ITEMS | {"kind": "set"}}, "share", "Share of devices"),
    "attributes": (
        HORIZON | {"values": {"kind": "attributes", "attributes": {"lamp": ["on", "off"]}}},
        "share",
        "Share of devices",
    ),
    "moves": (HORIZON | {"values": ITEMS | {"kind": "moves"}}, "move", "Mean move"),
    "window of shares": (WINDOW | {"values": ITEMS}, "share", "Share of devices"),
    "window of means": (WINDOW | {"values": NUMBER}, "mean", "Mean"),
}


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    made.store.close()


def test_a_value_below_zero_is_shown_inside_of_its_interval(house: House) -> None:
    """The table has the released number beside it; data and events have nothing else."""
    running = house.publish(HORIZON | {"values": ITEMS})
    house.release(running, [-0.015, 1.012], [-0.013, 0.4], cut=True)
    text = house.page(running)
    told = " ".join(_table(text).split())
    assert told == "work 40.0% 38.0% to 42.0% home raw -1.3% 0.0% 0.0% to 0.7%"
    assert "at the nearest end of its interval" in text
    assert '"value":[1.012,0.4]' in text
    assert '"value":[-0.015,-0.013]' in text
    points = re.search(r'<polyline points="([^"]+)"', text)
    assert points
    drawn = [float(y) for point in points[1].split() for y in point.split(",")[1:]]
    assert min(drawn) >= 8 - 0.1  # not above the chart's upper edge, although 101.2% were released


def _table(text: str) -> str:
    """Return the words of the page's table."""
    found = re.search(r"<tbody>.*?</tbody>", text, re.DOTALL)
    assert found
    return re.sub(r"<[^>]+>", " ", found[0])


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_named_and_printed_as_what_they_are(house: House, kind: str) -> None:
    task, what, noun = KINDS[kind]
    running = house.publish(task)
    scale = 100.0 if what == "mean" else 1.0
    house.release(running, 0.50 * scale, 0.541678 * scale, variance=(0.01 * scale) ** 2)
    assert running.protocol.quantity.kind == what
    text = house.page(running)
    assert f">{noun} over time<" in text
    printed = {"share": "54.2%", "move": "0.542", "mean": "54.2"}[what]
    ends = {"share": "52.2% to 56.1%", "move": "0.522 to 0.561", "mean": "52.2 to 56.1"}[what]
    assert printed in _table(text)
    assert ends in _table(text)
    assert ("%<" in text.partition("</svg>")[0]) == (what == "share")  # the axis of the chart
    assert ("%" in _table(text)) == (what == "share")


@pytest.mark.parametrize("kind", ["moves", "window of shares", "window of means"])
def test_tables_and_data_of_a_question_say_the_same(
    house: House, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    task, what, noun = KINDS[kind]
    running = house.publish(task)
    scale = 100.0 if what == "mean" else 1.0
    house.release(running, 0.50 * scale, 0.541678 * scale, variance=(0.01 * scale) ** 2)
    item = str(running.labels[0])
    asked = {
        "mean": ({"query": "mean", "period": "2"}, what),
        "curve": ({"query": "curve", "item": item}, what),
        "top": ({"query": "top", "k": "1", "period": "2"}, what),
        "average": ({"query": "prefix", "last": "2", "average": "true"}, what),
        "sum": ({"query": "range", "first": "1", "last": "2"}, "amount"),
        "change": ({"query": "difference", "before": "1", "after": "2"}, "amount"),
    }
    for name, (question, expected) in asked.items():
        found = query_parameters.answer(running, question)
        assert found["quantity"]["kind"] == expected, name
        show(Result(found, query.text(Answers.of_plain(found))), as_json=False)
        said = capsys.readouterr().out
        rows = said.partition("interval")[2].partition("As of")[0]
        assert ("%" in rows) == (expected == "share"), name
        assert ("points" in rows) == (name == "change" and what == "share"), name
    assert query_parameters.answer(running, asked["mean"][0])["question"] == f"{noun} in period 2"


def test_questions_about_a_horizon_have_their_quantity(house: House) -> None:
    running = house.publish(HORIZON | {"values": ITEMS})
    fleet = Fleet(running, 60)
    for period in (1, 2):
        house.now = START + 10 * period + 1
        house.collector.take(running, fleet.body(["home"] * 40 + ["work"] * 20))
        house.now += 5
        house.collector.close_due()
    for question, kind, unit in (
        ({"query": "mean", "period": "2"}, "share", "%"),
        ({"query": "curve", "item": "home", "decoder": "filtered"}, "share", "%"),
        ({"query": "top", "k": "1", "period": "2"}, "share", "%"),
        ({"query": "range", "first": "1", "last": "2", "average": "true"}, "share", "%"),
        ({"query": "range", "first": "1", "last": "2"}, "amount", ""),
        ({"query": "difference", "before": "1", "after": "2"}, "amount", " points"),
    ):
        found = query_parameters.answer(running, question)["quantity"]
        assert (found["kind"], found["unit"]) == (kind, unit), question


def test_a_running_curve_is_printed(house: House, capsys: pytest.CaptureFixture[str]) -> None:
    """Of periods to come nothing is known; what has closed has values and intervals."""
    running = house.publish(HORIZON | {"values": {"kind": "binary"}})
    fleet = Fleet(running, 60)
    for period in (1, 2, 3):
        values = fleet.body([1] * 40 + [0] * 20)
        house.now = START + 10 * period + 1
        if period != 2:  # nobody can be reached
            house.collector.take(running, values)
        house.now += 5
        house.collector.close_due()
    found = query_parameters.answer(running, {"query": "curve", "item": "on"})
    assert [one["period"] for one in found["answers"]] == [1, 2, 3]
    assert [one["value"] is None for one in found["answers"]] == [False, True, False]
    unknown = found["answers"][1]
    assert (unknown["low"], unknown["high"]) == (0.0, 1.0)  # anything may be true
    show(Result(found, query.text(Answers.of_plain(found))), as_json=False)
    assert re.search(r"1 +\d+\.?\d*% ± .*\n2 +unknown +0% .* 100%\n3 +\d", capsys.readouterr().out)


def test_after_a_silent_period_the_last_known_values_are_shown_with_their_date(
    house: House,
) -> None:
    running = house.publish(HORIZON | {"values": ITEMS})
    house.release(running, [0.25, 0.75], [0.3, np.nan], np.nan)
    text = house.page(running)
    table = _table(text)
    assert re.search(r"work\s.*75\.0%.*in period 1, until 1970-01-12 13:46:50 UTC", table)
    assert re.search(r"home\s.*30\.0%.*in period 2, until 1970-01-12 13:47:00 UTC", table)
    assert table.index("work") < table.index("home")
    assert "unknown" not in table
    assert "Period 3 tells nothing" in text
    assert "The table shows what was last known" in text
    house.release(running, [0.1, 0.2])
    assert "in period" not in _table(house.page(running))


def test_a_task_that_nobody_has_answered_promises_no_table(house: House) -> None:
    running = house.publish(HORIZON | {"values": ITEMS})
    house.release(running, np.nan)
    text = house.page(running)
    assert "Period 1 tells nothing: it has no reports. Nothing is known; it goes on when" in text
    assert "last known" not in text


@pytest.mark.parametrize("kind", ["category", "moves", "window of shares", "window of means"])
def test_intervals_are_called_wide_by_what_values_could_be(house: House, kind: str) -> None:
    """A handful of reports a period may be many in all: the uncertainty tells, not their number."""
    task, what, _ = KINDS[kind]
    span = {"share": 1.0, "move": 2.0, "mean": 120.0}[what]
    running = house.publish(task)
    house.release(running, 0.0, variance=(0.05 * span) ** 2)
    assert '<p id="state" class="live"' in house.page(running)
    house.release(running, 0.0, variance=(0.1 * span) ** 2)
    text = house.page(running)
    assert '<p id="state" class="few"' in text
    said = {"share": "± 20 points", "move": "± 0.39", "mean": "± 24"}[what]
    assert f"Period 2 of 6 closed 1 second ago. Intervals are wide, {said}, until" in text


def test_numbers_are_shown_in_their_unit_wherever_they_are(
    house: House, capsys: pytest.CaptureFixture[str]
) -> None:
    for unit, printed in (("°C", "54.2 °C"), ("<b>", "54.2 <b>")):
        running = house.publish(WINDOW | {"values": NUMBER | {"unit": unit}, "title": unit})
        house.release(running, 50.0, 54.1678, variance=1.0)
        text = house.page(running)
        shown = text.partition('<script type="application/json"')[0]
        assert html.escape(printed) in _table(text)
        assert f"from 0 to 120 {html.escape(unit)}, in 6 periods" in shown
        assert f"0 {html.escape(unit)}</text>" in shown  # the axis of the chart
        assert "<b>" not in shown
        told = query_parameters.answer(running, {"query": "mean", "period": "2"})
        show(Result(told, query.text(Answers.of_plain(told))), as_json=False)
        assert printed in capsys.readouterr().out


def test_all_promises_that_an_owner_can_pick_are_shown(house: House) -> None:
    tier = {"window": 6, "epsilon": 0.5, "devices": 30}
    running = house.publish(WINDOW | {"values": ITEMS, "tiers": [tier]})
    promise = house.page(running).partition('class="promise"')[2].partition("</section>")[0]
    assert "picks one of these promises" in promise
    assert "epsilon 4 over any 3 consecutive periods" in promise
    assert "epsilon 0.5 over any 6 consecutive periods" in promise
    alone = house.page(house.publish(WINDOW | {"values": ITEMS}))
    assert "picks one of these" not in alone


def test_the_chart_says_which_colour_is_which_item(house: House) -> None:
    running = house.publish(HORIZON | {"values": ITEMS | {"items": ["home", "<work>"]}})
    house.release(running, [0.2, 0.8])
    legend = house.page(running).partition('id="legend">')[2].partition("</p>")[0]
    assert re.findall(r'swatch s(\d)"></span> ([^<]+)<', legend) == [
        ("0", "&lt;work&gt;"),
        ("1", "home"),
    ]


def test_nothing_is_known_of_an_item_that_nobody_reported(house: House) -> None:
    running = house.publish(HORIZON | {"values": ITEMS})
    house.release(running, [np.nan, -0.2])
    table = _table(house.page(running))
    assert re.search(r"work\s.*-20\.0%.*home\s+unknown", table, re.DOTALL)


def test_what_rounds_to_zero_has_no_sign(house: House) -> None:
    running = house.publish(WINDOW | {"values": ITEMS})
    house.release(running, [-0.0, -1e-9], [-1e-9, -0.0004])
    assert not re.search(r"-0(\.0*)?(%|\b(?!\.))", _table(house.page(running)))


def test_refusals_are_those_of_the_task(house: House) -> None:
    lamps = house.publish(HORIZON | {"values": {"kind": "binary"}})
    other = house.publish(HORIZON | {"values": ITEMS})
    house.now = START + 11.0
    body = Fleet(lamps, 9).body([1] * 9)
    for running in (lamps, other):  # once at its own address, once at another's
        house.metrics.received(running, [house.collector.take(running, body)])
    house.now = START + 60.0
    house.collector.close_due()
    house.metrics.received(lamps, [house.collector.take(lamps, body)])
    stale = house.metrics.refused(lamps)["stale"]
    assert stale > 0
    assert f"Refused since the collector started: {stale} stale." in house.page(lamps)
    assert "Refused since the collector started: none." in house.page(other)
    rows = task_rows([lamps, other], house.metrics, house.now)
    front = " ".join(
        IndexPage(rows, IndexQuery(), counted_words(house.metrics.strangers)).html().split()
    )
    assert f"belong to no task, refused since the collector started: {stale} wrong task." in front


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        (None, "when their period closes, and then erases what each said."),
        ("3 days", "and erases what each said 3 days later."),
        ("for ever", "and keeps what each said."),
    ],
)
def test_who_sees_what_says_how_long_reports_are_kept(
    house: House, keep: str | None, said: str
) -> None:
    task = HORIZON | {"values": ITEMS} | ({} if keep is None else {"keep": keep})
    assert said in html.unescape(house.page(house.publish(task)))


def test_a_task_of_20_000_items_is_shown_within_a_second(house: House) -> None:
    running = house.publish(WINDOW | {"periods": 300, "values": ITEMS | {"items": 20_000}})
    rng = np.random.default_rng(1)
    house.release(running, *rng.random((100, 20_000)))
    begun = time.process_time()
    text = house.page(running)
    assert time.process_time() - begun < 1.0
    assert "1 to 12 of 20,000" in text
    assert len(text) < 60_000  # only what is shown
    largest = int(np.argmax(running.releases[-1].values))
    first = house.shown(running).data()["curves"][0]
    assert (first["item"], first["label"]) == (largest, str(largest))
    assert first["value"][-1] == pytest.approx(running.releases[-1].values[largest], abs=1e-3)
    for choices in ({"search": "1234"}, {"sort": "change"}, {"first": "3", "last": "90"}):
        begun = time.process_time()
        text = house.page(running, **choices)
        assert time.process_time() - begun < 1.0, choices
    begun = time.process_time()
    text = house.page(running, search="19 9", sort="name")
    assert time.process_time() - begun < 1.0
    names = re.findall(r'data-item="(\d+)"', text)
    assert len(names) == 12
    assert all("19" in name and "9" in name for name in names)


def test_as_much_data_is_sent_as_is_shown(house: House) -> None:
    """However long the task: eight items in full are the most."""
    running = house.publish(WINDOW | {"periods": 16_384, "values": ITEMS | {"items": 300}})
    house.release(running, *np.full((16_384, 1), 0.1))
    begun = time.process_time()
    text = house.page(running, items="0,1,2,3,4,5,6,7")
    assert time.process_time() - begun < 3.0
    data = text.partition('id="data">')[2].partition("</script>")[0]
    assert len(text) - len(data) < 120_000
    packed, headers = compressed(text.encode(), "br, gzip;q=0.8")
    assert headers["content-encoding"] == "gzip"
    assert len(packed) < 200_000


@pytest.mark.parametrize(
    ("age", "said"),
    [(0.5, "closed just now"), (42, "closed 42 seconds ago"), (2834, "closed 47 minutes ago")],
)
def test_ages_are_told_in_words(house: House, age: float, said: str) -> None:
    running = house.publish(HORIZON | {"period": "1 hour", "values": ITEMS})
    house.release(running, 0.5)
    house.now = running.closes_at(1) + age
    assert said in house.page(running)
    house.now = running.closes_at(1) + 200_000
    assert "closed 2 days ago and none since" in house.page(running)
