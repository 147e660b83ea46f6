"""What takes long is done where it delays nobody, and is known before it begins."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from tests.service.fleets import Fleet
from tests.service.test_lane import held
from tests.service.world import START, VALUES, World

from sfumato.service import effort, query_parameters
from sfumato.service.effort import TakesLong
from sfumato.service.rereading import Lens

READ: dict[str, list[dict[str, str]]] = {
    "online": [{"query": "range", "first": "1", "last": "2", "average": "true"}],
    "smoothed": [{"query": "mean", "period": "1"}, {"query": "curve", "item": "home"}],
    "filtered": [{"query": "range", "first": "1", "last": "2"}, {"query": "mean", "period": "2"}],
    "posterior": [{"query": "difference", "before": "1", "after": "2"}, {"query": "prefix"}],
}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    with made.client:
        fleet = Fleet(made.open, len(VALUES))
        for period in (1, 2):
            made.now = START + 10 * period + 1
            made.upload(made.open, fleet.body(VALUES))
            made.now += 5
            made.close_periods()
        yield made
    made.store.close()


@pytest.fixture
def _large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all tasks be too large to be read within a moment."""
    monkeypatch.setattr(effort, "FEW_NUMBERS", 0)


@pytest.mark.usefixtures("_large")
@pytest.mark.parametrize("decoder", READ)
def test_what_has_not_been_read_takes_long_and_then_no_more(world: World, decoder: str) -> None:
    for question in READ[decoder]:
        asked = question | {"decoder": decoder, "level": "0.8"}
        if asked["query"] == "prefix":
            asked |= {"last": "2"}
        else:
            world.open.kept_history.forget()
            with pytest.raises(TakesLong):
                query_parameters.answers(world.open, asked, at_once=True)
        expected = query_parameters.answers(world.open, asked)[1].plain()
        assert query_parameters.answers(world.open, asked, at_once=True)[1].plain() == expected


@pytest.mark.usefixtures("_large")
def test_what_was_released_never_takes_long(world: World) -> None:
    for asked in ({"query": "mean", "period": "2"}, {"query": "curve"}):
        query_parameters.answers(world.open, asked, at_once=True)
    assert world.open.kept_history.asked_at is None


def test_many_rows_take_long_however_they_are_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for row_count in (2 * len(world.open.labels), 2 * len(world.open.labels) - 1):
        monkeypatch.setattr(effort, "MANY", row_count)
        asked = {"query": "curve"}
        if row_count % 2:
            with pytest.raises(TakesLong):
                query_parameters.answers(world.open, asked, at_once=True)
        else:
            query_parameters.answers(world.open, asked, at_once=True)


@pytest.mark.usefixtures("_large")
def test_quick_answers_and_pages_come_while_long_work_goes_on(world: World) -> None:
    door, begun = Event(), Event()
    long = world.service.desks.long.lane
    long.submit("another", partial(held, begun, door))
    assert begun.wait(30)
    task = f"/v1/tasks/{world.open.name}/answers"
    slow = (
        f"{task}?query=curve&decoder=posterior&projection=simplex",
        f"/tasks/{world.open.name}?decoder=smoothed&first=1&last=2",
    )
    quick = (
        f"{task}?query=curve",
        f"/tasks/{world.open.name}",  # says that what it opens with is being computed
        f"/tasks/{world.open.name}?decoder=online",
        f"/tasks/{world.open.name}/shown.csv?decoder=online",
        "/",
    )
    get: Any = world.client.get
    with ThreadPoolExecutor(len(slow)) as pool:
        waiting = [pool.submit(get, path) for path in slow for _ in range(2)]
        for path in quick:
            assert get(path).status_code == 200
        operator = world.headers("operator")
        assert get("/ops", headers=operator).status_code == 200
        assert not any(future.done() for future in waiting)
        door.set()
        assert [future.result(30).status_code for future in waiting] == [200] * 4


def _noted(done: list[str], name: str, _: Any) -> None:
    done.append(name)


@pytest.mark.usefixtures("_large")
def test_a_slow_way_to_look_delays_nobody_elses(world: World) -> None:
    """Whoever comes with one way to look waits for one turn of who came with many."""
    rereader, long = world.service.pages._rereader, world.service.desks.long.lane  # noqa: SLF001
    door, begun = Event(), Event()
    long.submit("another", partial(held, begun, door))
    assert begun.wait(30)
    done: list[str] = []
    many = [
        rereader.begin(world.open, Lens(decoder, projection), "a")
        for decoder in ("smoothed", "posterior")
        for projection in (None, "simplex")
    ]
    own = rereader.begin(world.open, Lens("filtered"), "b")
    for name, future in zip("aaaab", [*many, own], strict=True):
        assert future is not None
        future.add_done_callback(partial(_noted, done, name))
    door.set()
    for future in (*many, own):
        assert future is not None
        future.result(30)
    assert done.index("b") == 1
