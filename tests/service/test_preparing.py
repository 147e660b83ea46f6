"""Answers are ready when a period has closed, if somebody asked about the period before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.service.fleets import Fleet
from tests.service.world import START, VALUES, World

from sfumato.service import Collector, preparing, query_parameters
from sfumato.service.preparing import Preparation

EVERY = "online", "smoothed", "filtered", "posterior"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    with made.client:
        yield made
    made.store.close()


def _close(world: World, *periods: int) -> None:
    fleet = Fleet(world.open, len(VALUES))
    for period in periods:
        world.now = START + 10 * period + 1
        world.upload(world.open, fleet.body(VALUES))
        world.now += 5
        world.close_periods()


def _answers(world: World, last: int) -> list[Any]:
    url = f"/v1/tasks/{world.open.name}/answers"
    asked = [f"?query=range&first=1&last={last}&decoder={decoder}" for decoder in EVERY]
    asked += [f"?query=curve&item=home&level=0.8&decoder={decoder}" for decoder in EVERY]
    return [world.client.get(url + query).json()["answers"] for query in asked]


def test_a_prepared_answer_reads_nothing_and_is_the_same(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _close(world, 1, 2)
    expected = _answers(world, 2)
    world.open.prepare()  # for the same decoders
    monkeypatch.setattr(world.store, "tallies", None)
    assert _answers(world, 2) == expected


def test_what_nobody_asks_for_is_forgotten(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    _close(world, 1, 2)
    read: list[bytes] = []
    tallies = world.store.tallies

    def noted(task: bytes) -> Any:
        read.append(task)
        return tallies(task)

    monkeypatch.setattr(world.store, "tallies", noted)
    world.open.prepare()
    assert read == []  # nobody has asked
    expected = _answers(world, 2)
    world.open.prepare()
    assert len(read) == 1  # it was there
    world.open.prepare()
    assert _answers(world, 2) == expected
    assert len(read) == 2


def test_a_decoder_that_does_not_exist_is_nothing_to_prepare(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _close(world, 1, 2)
    url = f"/v1/tasks/{world.open.name}/answers?query=range&first=1&last=2&decoder=nonsense"
    assert world.client.get(url).status_code == 400
    read: list[bytes] = []
    tallies = world.store.tallies

    def noted(task: bytes) -> Any:
        read.append(task)
        return tallies(task)

    monkeypatch.setattr(world.store, "tallies", noted)
    world.open.prepare()
    _answers(world, 2)
    assert len(read) == 1  # what was read for the refusal is forgotten, as if nobody had asked


def _settled(preparation: Preparation) -> None:
    end = time.monotonic() + 60
    while not preparation.is_idle and time.monotonic() < end:
        time.sleep(0.001)
    assert preparation.is_idle


def test_preparing_goes_on_after_an_error_and_takes_little_of_a_tasks_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    preparation = Preparation()
    begun: list[int] = []
    now = [0.0]

    def slow() -> None:
        begun.append(len(begun))
        now[0] += 0.01 if len(begun) < 3 else 1.1  # periods have ten seconds
        raise ValueError

    monkeypatch.setattr(preparing, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(world.open, "prepare", slow)
    for _ in range(5):
        preparation.begin(world.open)
        _settled(preparation)
    assert begun == [0, 1, 2]
    preparation.stop()


def test_after_a_start_what_pages_open_with_is_prepared(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _close(world, 1, 2)
    asked = [{"query": "range", "first": "1", "last": "2", "decoder": name} for name in EVERY]
    expected = [query_parameters.answer(world.open, question) for question in asked]
    restarted = [Collector(world.store, "http://testserver", lambda: world.now) for _ in range(2)]
    preparations = [Preparation(), Preparation()]
    for preparation, collector, most in zip(preparations, restarted, (60.0, 0.0), strict=True):
        monkeypatch.setattr(preparing, "FIRST", most)
        preparation.begin_all(collector.running_tasks.values())
        _settled(preparation)
        preparation.stop()
    monkeypatch.setattr(world.store, "tallies", None)
    ready, late = (collector.running_tasks[world.open.task_id] for collector in restarted)
    assert [query_parameters.answer(ready, question) for question in asked] == expected
    with pytest.raises(TypeError):  # there was no time for it
        query_parameters.answer(late, asked[0])
