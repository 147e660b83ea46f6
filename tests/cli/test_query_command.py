"""`sfumato query` prints answers with their intervals, and a small curve beside each item."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.cli.running import answer, refused, run
from tests.service.fleets import Fleet
from tests.service.sockets import served
from tests.service.world import World

from sfumato.cli.sparklines import STEPS, sparkline
from sfumato.core.answers import Answers


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A task in which people move from home to the road, and nobody to work."""
    world = World(tmp_path_factory.mktemp("query"))
    with world.client, served(world) as address:
        fleet = Fleet(world.open, 3000)
        for period in range(1, 7):
            world.now = world.open.ends_at(period) + 1
            away = 400 * period
            world.upload(world.open, fleet.body(["home"] * (3000 - away) + ["road"] * away))
            world.now = world.open.closes_at(period)
            world.close_periods()
        yield f"{address}/tasks/{world.open.name}"
    world.store.close()


def _ways(said: str) -> dict[str, str]:
    """Return the small curve in the line of each item."""
    lines = (line.split() for line in said.splitlines())
    return {line[0]: line[-1] for line in lines if line and set(line[-1]) <= set(STEPS)}


def test_the_way_of_each_item_is_beside_it(url: str) -> None:
    for asked in ((), ("--ask", "top", "-k", 3), ("--ask", "curve")):
        ways = _ways(run("query", url, *asked).stdout)
        assert set(ways) == {"home", "work", "road"}, asked
        assert all(len(way) == 6 for way in ways.values())
        home, road = ([STEPS.index(step) for step in ways[item]] for item in ("home", "road"))
        assert home[0] > home[-1]
        assert road[0] < road[-1]
    (way,) = _ways(run("query", url, "--item", "home", "--period", 3).stdout).values()
    assert way == _ways(run("query", url).stdout)["home"]


def test_a_curve_of_one_item_has_its_picture_above_it(url: str) -> None:
    said = run("query", url, "--ask", "curve", "--item", "home").stdout.splitlines()
    assert len(said[0].strip()) == 6
    assert set(said[0].strip()) <= set(STEPS)
    assert any(line.startswith("6 ") and "±" in line for line in said)


def test_json_is_what_the_collector_answers(url: str) -> None:
    events = answer("query", url, "--ask", "events", "--item", "road", "--above", 0.4)
    assert events["query"] == "events"
    assert {row["period"] for row in events["answers"]} <= {4, 5, 6}
    curves = answer("query", url, "--ask", "curve")
    assert [row["item"] for row in curves["answers"][::6]] == ["home", "work", "road"]
    assert answer("query", url, "--period", "1970-01-12T13:46:50")["as_of"] == 2


def test_questions_that_make_no_sense_are_refused(url: str) -> None:
    assert "one of mean, range" in refused("query", url, "--ask", "sum")
    assert "above is missing" in refused("query", url, "--ask", "events", "--item", "home")
    assert "above is 90; a share from 0 to 1" in refused(
        *("query", url, "--ask", "events", "--item", "home", "--above", 90)
    )
    assert "from 1970-01-12T13:46:40Z up to 1970-01-12T13:47:40Z" in refused(
        *("query", url, "--period", "2026-01-01")
    )
    never = run("query", url, "--ask", "events", "--item", "work", "--above", 0.9).stdout
    assert "work: periods in which it is above 90.0%\n\nNone, beyond doubt." in never
    assert "item is missing" in refused("query", url, "--ask", "events", "--above", 0.2)


def test_a_small_curve_of_noise_stays_in_the_middle() -> None:
    def drawn(values: np.ndarray, reach: float) -> str:
        sides = (values, values - reach, values + reach)
        return sparkline(Answers(tuple(range(values.size)), *sides, n=9, guarantee=""))

    noise = np.random.default_rng(1).normal(0.5, 0.01, 20)
    assert set(drawn(noise, 0.05)) <= set(STEPS[2:6])
    rising = drawn(np.linspace(0, 1, 400), 0.01)
    assert len(rising) == 32
    assert [STEPS.index(step) for step in rising] == sorted(STEPS.index(step) for step in rising)
    assert drawn(np.full(5, np.nan), 0.1) == " " * 5
    assert len(set(drawn(np.full(5, 0.3), 0.0))) == 1
