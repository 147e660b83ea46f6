"""Listeners that come to long tasks cost little, and the event loop does not wait for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from threading import get_ident
from typing import Any

import numpy as np
import pytest
from tests.service.houses import House

from sfumato.service import RunningTask, event_stream
from sfumato.service.event_stream import MOST_AT_ONCE, Bell, answers, stream, told
from sfumato.service.lane import Lane

PERIODS = 400
TASK: dict[str, Any] = {
    "epsilon": 4.0,
    "periods": PERIODS,
    "period": "10 seconds",
    "changes": 3,
    "values": {"kind": "category", "items": ["home", "work", "road"]},
}


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    made.store.close()


@pytest.fixture
def running(house: House) -> RunningTask:
    made = house.publish(TASK)
    house.release(made, *np.linspace(0.1, 0.4, PERIODS), cut=True)
    return made


async def _heard(running: RunningTask, lane: Lane, since: int = 0) -> list[str]:
    build = partial(lane.ask, f"127.0.0.{since + 1}")
    return [event async for event in stream(running, Bell(), since, lambda: None, build)]


@pytest.fixture
def lane() -> Iterator[Lane]:
    made = Lane(1, "news")
    yield made
    made.stop()


def test_each_period_is_told_once_in_its_order(running: RunningTask, lane: Lane) -> None:
    for since in (0, 1, 63, 64, 65, PERIODS - 1, PERIODS, PERIODS + 5):
        first, *events, last = asyncio.run(_heard(running, lane, since))
        assert (first, last) == ("retry: 2000\n\n", "event: over\ndata: {}\n\n")
        assert len(events) == max(0, PERIODS - since)
        for release, event in zip(running.releases[since:], events, strict=True):
            plain = told(answers(running, release), 0, is_mixed=False)
            period = release.period
            assert event == f"id: {period}\nevent: period\ndata: {json.dumps(plain)}\n\n"


def test_what_is_known_beside_releases_is_read_once_and_not_for_each(
    running: RunningTask, lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    for name in ("incomplete", "suspicions", "participation"):
        own = getattr(running, name)

        def noted(name: str = name, own: Any = own) -> Any:
            read.append(name)
            return own()

        monkeypatch.setattr(running, name, noted)
    assert len(asyncio.run(_heard(running, lane))) == PERIODS + 2
    assert sorted(read) == ["incomplete", "participation", "suspicions"]


def test_events_are_built_in_small_pieces_outside_of_the_event_loop(
    running: RunningTask, lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    built = event_stream._Beside.events  # noqa: SLF001

    def noted(*arguments: Any) -> list[str]:
        assert get_ident() != loop
        events = built(*arguments)
        sizes.append(len(events))
        return events

    loop = get_ident()
    monkeypatch.setattr(event_stream._Beside, "events", noted)  # noqa: SLF001
    asyncio.run(_heard(running, lane))
    assert max(sizes) == MOST_AT_ONCE
    assert sum(sizes) == PERIODS
    monkeypatch.setattr(event_stream, "MOST_NUMBERS", 10)  # of wide tasks fewer at once
    sizes.clear()
    asyncio.run(_heard(running, lane, PERIODS - 9))
    assert sizes == [2, 3, 3, 1]


def test_listeners_who_come_together_cost_hardly_more_than_one(
    running: RunningTask, lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted: list[int] = []
    usual = event_stream.told

    def noted(*arguments: Any, **named: Any) -> Any:
        counted.append(1)
        return usual(*arguments, **named)

    async def together() -> list[list[str]]:
        return await asyncio.gather(*(_heard(running, lane) for _ in range(20)))

    expected = asyncio.run(_heard(running, lane))
    monkeypatch.setattr(event_stream, "told", noted)
    assert asyncio.run(together()) == [expected] * 20
    assert len(counted) < 2 * PERIODS  # a piece may be done before all have asked for it


def test_a_period_that_closes_meanwhile_is_told_before_the_end(
    house: House, lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = house.publish(TASK | {"periods": 2})
    house.release(running, 0.2)
    built = event_stream._Beside.events  # noqa: SLF001

    def slow(*arguments: Any) -> list[str]:
        if running.closed < 2:
            house.release(running, 0.3)
        return built(*arguments)

    monkeypatch.setattr(event_stream._Beside, "events", slow)  # noqa: SLF001
    events = asyncio.run(_heard(running, lane))
    assert [event.partition("\n")[0] for event in events[1:]] == ["id: 1", "id: 2", "event: over"]
