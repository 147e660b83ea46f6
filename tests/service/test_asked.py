"""Every field of a query, with any content, gets an answer or an error of one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import numpy as np
import pytest
from tests.service.fleets import Fleet
from tests.service.world import START, VALUES, World

WRITTEN = [
    *("", "0", "1", "2", "-1", "-0", "-0.0", "+1", "01", "1.0", "1e0", "1e3", "1e308", "1e-320"),
    *("nan", "NaN", "inf", "-inf", "infinity", "0x1", "1_0", " 1", "1 ", "1\n", "1\x00", "true"),
    *("0.5", ".5", "5.", "0.95", "0.9999999999999999", "0.99999999999999999999", "1e-12", "5e-324"),
    *(
        "1e-400",
        "0." + "9" * 400,
        "9" * 9,
        "9" * 10,
        "9" * 5000,
        "\uff11",
        "\u0660.\u0669",
        "0\uff0e5",
        "²",
        "½",
        "\uff11e\uff15",
    ),
]
QUESTIONS = {
    "query=mean&period=2": ("period", "level"),
    "query=range&first=1&last=2": ("first", "last", "level", "average"),
    "query=prefix&last=2": ("last", "level", "average"),
    "query=difference&before=1&after=2": ("before", "after", "level"),
    "query=top&k=1&period=2": ("k", "period", "level"),
    "query=curve&item=home&simultaneous=true": ("level", "simultaneous"),
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("asked"))
    with made.client:
        fleet = Fleet(made.open, len(VALUES))
        for period in (1, 2):
            made.now = START + 10 * period + 1
            made.upload(made.open, fleet.body(VALUES))
            made.now += 5
            made.close_periods()
        yield made
    made.store.close()


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_number_in_a_question_is_too_odd_for_a_sentence(world: World, question: str) -> None:
    url = f"/v1/tasks/{world.open.name}/answers"
    for name in QUESTIONS[question]:
        others = "&".join(part for part in question.split("&") if not part.startswith(f"{name}="))
        for written in WRITTEN:
            answer = world.client.get(f"{url}?{others}&{name}={quote(written)}")
            assert answer.status_code in (200, 400), (name, written, answer.text)
            if answer.status_code == 400:
                detail = answer.json()["detail"]
                assert detail.startswith(f"{name} is ") or "first comes first" in detail
                assert len(detail) < 200
                continue
            assert written.isascii()
            sides = [(one["low"], one["value"], one["high"]) for one in answer.json()["answers"]]
            assert np.isfinite(sides).all(), (name, written)
            for low, value, high in sides:  # a value may be impossible, an interval may not
                assert low <= high
                assert low <= value or low in (-1, 0), (low, value)  # where shares, or moves, end
                assert value <= high or high in (1, 2), (value, high)  # or two periods' shares


def test_a_field_that_is_there_twice_is_refused(world: World) -> None:
    base = f"/v1/tasks/{world.open.name}"
    for path in (
        *(f"{base}/answers?{question}&level=0.9&level=0.9" for question in QUESTIONS),
        f"{base}/answers?query=mean&query=mean&period=1",
        f"{base}/events?since=1&since=2",
    ):
        answer = world.client.get(path)
        assert answer.status_code == 400
        assert "there twice" in answer.json()["detail"]


@pytest.mark.parametrize("written", ["nan", "-1", "1.0", "\uff11", "9" * 10, "", "1e3", " 1"])
def test_events_since_no_number_are_refused(world: World, written: str) -> None:
    answer = world.client.get(f"/v1/tasks/{world.open.name}/events?since={quote(written)}")
    assert answer.status_code == 400
    assert "since is" in answer.json()["detail"]


def test_the_level_of_a_question_reaches_its_intervals(world: World) -> None:
    url = f"/v1/tasks/{world.open.name}/answers?query=mean&period=2&level="
    widths = []
    for level in ("5e-324", "0.5", "0.95", "0.999999999999"):
        first = world.client.get(url + level).json()["answers"][0]
        widths.append(first["high"] - first["low"])
    assert widths == sorted(widths)
    assert widths[0] < 1e-6 < widths[1]
