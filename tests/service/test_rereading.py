"""Other ways to look at a task: the same numbers as answers have, computed in the background."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.service.fleets import Fleet
from tests.service.houses import START, House

from sfumato.errors import ConfigurationError
from sfumato.service import RunningTask, query_parameters, rereading
from sfumato.service.lenses import ways_of
from sfumato.service.rereading import PLAIN, Lens
from sfumato.store import Release

CATEGORY: dict[str, Any] = {
    "epsilon": 4.0,
    "periods": 6,
    "period": "10 seconds",
    "changes": 3,
    "values": {"kind": "category", "items": ["home", "work", "road"]},
}
SET = CATEGORY | {"values": {"kind": "set", "items": ["home", "work"]}}
WINDOW: dict[str, Any] = {
    "kind": "window",
    "epsilon": 4.0,
    "window": 3,
    "devices": 60,
    "periods": 6,
    "period": "10 seconds",
    "values": {"kind": "number", "low": 0, "high": 120},
}
VALUES = ["home"] * 60 + ["work"] * 29 + ["road"]


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    made.store.close()


def lived(house: House, periods: int = 3) -> RunningTask:
    """A task of real reports."""
    running = house.publish(CATEGORY)
    fleet = Fleet(running, len(VALUES))
    for _ in range(periods):
        live_on(house, running, fleet)
    return running


def live_on(house: House, running: RunningTask, fleet: Fleet) -> None:
    period = running.closed + 1
    house.now = START + 10 * period + 1
    house.collector.take(running, fleet.body(VALUES))
    house.now += 5
    house.collector.close_due()


def data(text: str) -> dict[str, Any]:
    """What the page tells its script."""
    embedded = re.search(r'id="data">(.*?)</script>', text, re.DOTALL)
    assert embedded
    plain: dict[str, Any] = json.loads(embedded[1])
    return plain


@pytest.mark.parametrize("decoder", ["online", "smoothed", "filtered", "posterior"])
@pytest.mark.parametrize("projection", [None, "simplex"])
def test_a_page_shows_what_answers_say(house: House, decoder: str, projection: str | None) -> None:
    running = lived(house)
    lens = {"decoder": decoder} | ({} if projection is None else {"projection": projection})
    text = house.page(running, **lens)
    shown = data(text)
    for period in (1, 2, 3):
        asked = {"query": "mean", "period": str(period)} | lens
        answers = query_parameters.answer(running, asked)["answers"]
        values = []
        for curve in shown["curves"]:
            for side in ("value", "low", "high"):
                expected = answers[curve["item"]][side]
                assert curve[side][period - 1] == pytest.approx(expected, abs=2e-3), side
            values.append(curve["value"][period - 1])
        assert len(values) == len(answers)
        if projection:
            assert sum(values) == pytest.approx(1, abs=0.01)
    chosen = re.findall(r'aria-current="true">([^<]+)<', text)
    names = {"online": "As released"}
    assert chosen[0] == names.get(decoder, decoder.capitalize())
    assert chosen[1] == ("Summing to 100%" if projection else "As estimated")
    assert ("&amp;decoder=" in text.partition("<footer>")[2]) == (decoder != "online")


def test_what_was_released_stays_as_it_is(house: House) -> None:
    running = lived(house)
    before = house.page(running)
    house.page(running, decoder="posterior")
    house.page(running, projection="simplex")
    assert house.page(running) == before
    assert house.page(running, decoder="smoothed") != before


def test_a_page_opens_filtered_where_ranges_can_be_answered(house: House) -> None:
    running = lived(house)
    lens = Lens.of(running, {})
    assert lens == Lens("filtered")
    assert Lens.of(running, {"projection": "simplex"}) == Lens("filtered", "simplex")
    ways = {way.name: (way.fields, chosen) for way, chosen in ways_of(running, lens)}
    assert ways["Filtered"] == ({"decoder": None}, True)
    assert ways["As released"] == ({"decoder": "online"}, False)
    for task in (WINDOW, CATEGORY | {"periods": 2049, "protocol": "snapshots"}):
        assert Lens.of(house.publish(task), {}) == PLAIN


def test_a_range_of_a_filtered_page_is_answered_by_its_posterior(house: House) -> None:
    running = lived(house)
    text = house.page(running, decoder="filtered", first="1", last="2", items="0")
    asked = {"query": "range", "first": "1", "last": "2", "average": "true", "item": "home"}
    (told,) = query_parameters.answer(running, asked | {"decoder": "posterior"})["answers"]
    said = re.search(r"<strong>([0-9.]+)% ± ", text)
    assert said
    assert said[1] == f"{100 * told['value']:.{len(said[1].partition('.')[2])}f}"
    assert "as of period 3, posterior" in text


def test_a_silent_period_is_called_so_where_a_prior_bridges_it(house: House) -> None:
    running = lived(house, 2)
    house.now = START + 36.0
    house.collector.close_due()
    assert "Period 3 tells nothing: it has no reports. The table shows" in house.page(running)
    text = house.page(running, decoder="filtered")
    assert "What is shown of it follows from other periods; it goes on when" in text
    assert data(text)["curves"][0]["value"][2] is not None


def test_a_task_offers_what_its_reports_allow(house: House) -> None:
    number = house.publish(WINDOW)
    assert 'class="switch"' not in house.page(number)
    chosen = house.publish(SET)
    assert "Smoothed" in house.page(chosen)
    assert "Summing to 100%" not in house.page(chosen)


@pytest.mark.parametrize(
    ("task", "lens", "sentence"),
    [
        (CATEGORY, {"decoder": "tree"}, "decoder is 'tree'"),
        (CATEGORY, {"projection": "cube"}, "projection is 'cube'"),
        (SET, {"projection": "simplex"}, "need not sum to one"),
        (WINDOW, {"decoder": "smoothed"}, "decoder is 'smoothed'"),
        (CATEGORY, {"colour": "red"}, "'colour' is no field of a page"),
    ],
)
def test_ways_that_do_not_exist_are_refused(
    house: House, task: dict[str, Any], lens: dict[str, str], sentence: str
) -> None:
    running = house.publish(task)
    with pytest.raises(ConfigurationError, match=sentence):
        house.page(running, **lens)


def test_long_computations_are_no_part_of_a_page(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While they last the page says so, and other pages are there at once."""
    monkeypatch.setattr(rereading, "AT_ONCE", 0.0)
    running = house.publish(CATEGORY)
    fleet = Fleet(running, len(VALUES))
    live_on(house, running, fleet)
    door, begun = Event(), []
    usual = rereading.reread

    def slow(task: RunningTask, lens: rereading.Lens) -> tuple[Release, ...]:
        begun.append(task.closed)
        assert door.wait(30)
        door.clear()
        return usual(task, lens)

    monkeypatch.setattr(rereading, "reread", slow)
    for _ in range(3):  # whoever looks again does not begin it again
        text = house.page(running, decoder="smoothed")
        assert "The curves up to period 1 are being computed." in text
        assert '<noscript><meta http-equiv="refresh"' in text
        assert "The curves appear here when they are computed." in text
        assert "not computed yet" in text
        assert "<svg" not in text
    assert "<svg" in house.page(running)
    open_door(house, running, door)
    assert data(house.page(running, decoder="smoothed"))["state"] != "waiting"
    live_on(house, running, fleet)
    text = house.page(running, decoder="smoothed")
    assert "These curves go up to period 1; the periods since are being added." in text
    assert data(text)["closed"] == 1
    open_door(house, running, door)
    assert data(house.page(running, decoder="smoothed"))["closed"] == 2
    assert begun == [1, 2]


def open_door(house: House, running: RunningTask, door: Event) -> None:
    """Let what is being computed come to its end."""
    door.set()
    house.rereader.pending[(running.name, Lens("smoothed")), ""].result(30)


def test_what_fails_is_tried_again(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    running = lived(house, 1)
    monkeypatch.setattr(rereading, "AT_ONCE", 30.0)
    with monkeypatch.context() as broken:
        broken.setattr(rereading, "reread", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            house.page(running, decoder="smoothed")
    assert data(house.page(running, decoder="smoothed"))["closed"] == 1


def test_only_so_many_curves_are_kept(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rereading, "MOST_KEPT", 2)
    monkeypatch.setattr(rereading, "AT_ONCE", 30.0)
    running = lived(house, 1)
    for decoder in ("smoothed", "filtered", "posterior"):
        house.page(running, decoder=decoder)
    assert [lens.decoder for _, lens in house.rereader.kept] == ["filtered", "posterior"]
