"""The Python client asks everything that a collector answers, and hands it on as tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pytest
from tests.cli.running import answer as answered
from tests.service.fleets import Fleet
from tests.service.sockets import served
from tests.service.world import World

import sfumato
from sfumato.client import TaskClient
from sfumato.core.answers import SIDES
from sfumato.errors import InputError


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A collector with two tasks, of which one has three closed periods."""
    made = World(tmp_path_factory.mktemp("client"))
    with made.client:
        fleet = Fleet(made.open, 300)
        for period in (1, 2, 3):
            made.now = made.open.ends_at(period) + 1
            made.upload(made.open, fleet.body(["home"] * 200 + ["work"] * 100))
            made.now = made.open.closes_at(period)
            made.close_periods()
        yield made
    made.store.close()


@pytest.fixture(scope="module")
def url(world: World) -> Iterator[str]:
    """The address of the same collector on a socket of this machine."""
    with served(world) as address:
        yield address


@pytest.fixture
def task(url: str, world: World) -> TaskClient:
    return sfumato.Collector(url).task(world.open.name[:12])


def test_every_question_gets_the_answers_of_the_history(task: TaskClient, world: World) -> None:
    history = world.open.history()
    pairs = [
        (task.mean(2), history.mean(2)),
        (task.mean(), history.mean(3)),
        (task.mean(decoder="smoothed"), history.mean(3, "smoothed")),
        (task.range(1, 3, average=True), history.range(1, 3, average=True)),
        (task.prefix(2, level=0.5), history.prefix(2, level=0.5)),
        (task.difference(1, 3), history.difference(1, 3)),
        (task.top(2), history.top(2, 3)),
        (task.curve("work"), history.curve("work")),
        (task.curve("work", simultaneous=True), history.curve("work", simultaneous=True)),
        (task.curve(projection="simplex"), history.curve(projection="simplex")),
        (task.events(0.2, "home", rate=0.1), history.events(0.2, "home", rate=0.1)),
    ]
    for answer, right in pairs:
        assert answer.labels == right.labels
        assert (answer.question, answer.method, answer.n, answer.as_of, answer.band) == (
            (right.question, right.method, right.n, right.as_of, right.band)
        )
        np.testing.assert_allclose(answer.values, right.values, rtol=1e-9)
        np.testing.assert_allclose(answer.high, right.high, rtol=1e-9)
        assert answer.guarantee == str(right.guarantee)
        assert answer.quantity == right.quantity
    assert task.mean(2, "work").labels == ("work",)


def test_a_period_may_be_a_date(task: TaskClient) -> None:
    second = datetime(1970, 1, 12, 13, 46, 55, tzinfo=UTC)
    assert task.mean(second).as_of == 2
    with pytest.raises(InputError, match=r"period is '2026-11-18'; a moment from 1970-01-12T"):
        task.mean(date(2026, 11, 18))


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_curves_make_the_round_trip_through_tables(task: TaskClient, backend: str) -> None:
    curves = task.curve()
    table = nw.from_native(curves.to_frame(backend))
    assert table.columns == ["period", "time", "item", *SIDES]
    assert table["item"].to_list() == [str(item) for item in curves.beside["item"]]
    for name, side in zip(SIDES, (curves.values, curves.low, curves.high), strict=True):
        np.testing.assert_array_equal(table[name].to_numpy(), side)
    first = table["time"].to_list()[0]
    assert first == datetime(1970, 1, 12, 13, 46, 40, tzinfo=UTC)
    # What was taken out as a table goes in again as one: a mechanism takes its columns as they are.
    column = nw.to_native(table)["item"]
    asked = sfumato.GRR(epsilon=2.0, domain=("home", "work", "road"))
    assert len(asked.randomize(column, sfumato.seeded(1))) == len(curves)


def test_curves_of_several_items_can_be_taken_apart(task: TaskClient) -> None:
    curves = task.curve()
    work = curves.where(item="work")
    assert work.labels == (1, 2, 3)
    assert np.array_equal(work.values, task.curve("work").values)
    assert curves.where(item="road", period=2).records()[0]["time"] == "1970-01-12T13:46:50Z"
    with pytest.raises(sfumato.SfumatoError, match="item is 'sea'; there are home, work, road"):
        curves.where(item="sea")
    assert "home, 1" in repr(curves)
    assert "home, 1" in curves._repr_html_()


def test_tasks_are_named_by_title_or_id(url: str, world: World) -> None:
    collector = sfumato.Collector(f"{url}/", token=world.tokens["analyst"])
    assert repr(collector) == f"Collector({url!r})"
    assert [task.task_id for task in collector.tasks()] == [world.open.name, world.hidden.name]
    assert collector.task(world.hidden.name).closed == 2
    assert collector.task(world.hidden.name).title == "Where people listen"
    with pytest.raises(InputError, match="more than one task called 'Where people listen'; "):
        collector.task("Where people listen")
    with pytest.raises(InputError, match="has no task called 'Lights'; there are 'Where people"):
        collector.task("Lights")
    assert TaskClient.at(f"{url}/tasks/{world.open.name}").mean(1).as_of == 1


def test_refusals_are_sentences(url: str, task: TaskClient, world: World) -> None:
    with pytest.raises(InputError, match="has no task called"):
        sfumato.Collector(url).task(world.hidden.name)
    hidden = TaskClient(f"{url}/v1/tasks/{world.hidden.name}", "Hidden")
    for ask in (lambda: hidden.mean(1), lambda: hidden.closed):
        with pytest.raises(InputError, match="SFUMATO_ANALYST_TOKEN"):
            ask()
    with pytest.raises(InputError, match="item is 'sea'; there are home, work, road"):
        task.curve("sea")
    with pytest.raises(InputError, match="is a collector there"):
        sfumato.Collector("http://127.0.0.1:9").tasks()
    with pytest.raises(InputError, match="http:// or https://"):
        sfumato.Collector("127.0.0.1").tasks()


def test_a_collector_without_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: Any, **__: Any) -> Any:
        return json.loads('{"tasks": []}')

    monkeypatch.setattr("sfumato.client.published_answers.ask", none)
    with pytest.raises(InputError, match="has no task yet"):
        sfumato.Collector("http://here").task()


def test_the_client_is_loaded_when_it_is_asked_for() -> None:
    source = Path(sfumato.__file__).with_suffix(".pyi").read_text()
    assert "Collector as Collector" in source


def test_an_archived_task_is_asked_by_its_name_and_its_address(tmp_path: Path) -> None:
    world = World(tmp_path)
    with world.client, served(world) as address:
        world.upload(world.open, Fleet(world.open, 60).body(["home"] * 40 + ["work"] * 20))
        world.collector.end(world.open)
        world.now += 20
        world.close_periods()
        collector, page = sfumato.Collector(address), f"{address}/tasks/{world.open.name}"
        before = collector.task(world.open.name).mean()
        world.collector.archive(world.open)
        assert collector.tasks() == []
        assert [task.task_id for task in collector.tasks(archived=True)] == [world.open.name]
        for task in (collector.task(), collector.task("Where people listen"), TaskClient.at(page)):
            assert task.closed == 1
            np.testing.assert_array_equal(task.mean().values, before.values)
        assert answered("query", page)["as_of"] == 1
        with pytest.raises(InputError, match="has no task called 'Lights'"):
            collector.task("Lights")
    world.store.close()
