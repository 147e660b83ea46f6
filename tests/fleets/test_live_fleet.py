"""Fleets of real devices: they replay what they are given, and lose nothing on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.device.collecting import HOUR, Collector, published

from sfumato.device import Delivery
from sfumato.errors import ConfigurationError, InputError
from sfumato.fleets.gateway import Gateway
from sfumato.fleets.live_fleet import LiveFleet

PERIODS = 8


class Counted(Collector):
    """Also counts batches."""

    batches = 0

    def send(self, url: str, batch: bytes) -> Delivery:
        self.batches += 1
        return super().send(url, batch)


def setting(devices: int = 20, folder: Path | None = None, **more: Any) -> tuple[Any, LiveFleet]:
    made, key = published(mix=more.pop("mix", "mix = {1 = 0.5, snapshot = 0.5}"), **more)
    collector = Counted(made, key)
    rng = np.random.default_rng(1)
    streams = np.repeat(rng.integers(3, size=(devices, PERIODS // 2)), 2, axis=1)
    fleet = LiveFleet(made, streams, folder, Gateway(collector, together=8))
    assert [*fleet.join()] == [*range(1, devices + 1)]
    return collector, fleet


def test_every_report_arrives_once_and_in_few_batches() -> None:
    collector, fleet = setting()
    ticks = []
    for period in range(1, PERIODS + 1):
        fleet.observe(period)
        ticks.append(fleet.flush(period))
    assert [tick.period for tick in ticks] == [*range(1, PERIODS + 1)]
    assert {tick.waiting for tick in ticks} == {0}
    names = [name for _, name, _ in collector.seen]
    assert len(set(names)) == len(names) == sum(tick.sent for tick in ticks)
    assert len(names) > 20  # if but one device in 20 has drawn to send in every period
    assert collector.batches < len(names) / 3
    told = sum("was sent" in line for device in fleet.devices for line in device.log())
    assert told == len(names)
    fleet.close()


def test_what_the_collector_did_not_take_comes_again() -> None:
    collector, fleet = setting(mix="mix = {1 = 1.0}")
    collector.reachable = False
    fleet.observe(1)
    tick = fleet.flush(1)
    assert (tick.sent, tick.waiting, tick.problems) == (0, 20, {"nobody is there": 20})
    collector.reachable, collector.lost = True, 1
    fleet.observe(2)
    tick = fleet.flush(2)
    assert tick.sent + tick.waiting == 40
    assert tick.problems["the line went dead"] == 8
    fleet.observe(3)
    tick = fleet.flush(3)
    assert tick.waiting == 0
    answers = {(name, content) for _, name, content in collector.seen}
    assert len(answers) == len({name for name, _ in answers}) == 60
    fleet.close()


def test_refused_reports_are_told_to_their_devices() -> None:
    collector, fleet = setting(mix="mix = {1 = 1.0}")
    collector.refuse = {1: "stale"}
    fleet.observe(1)
    tick = fleet.flush(1)
    assert (tick.refused, tick.reasons) == (20, {"stale": 20})
    for device in fleet.devices:
        assert any("refused (stale)" in line for line in device.log())
    fleet.close()


def test_it_keeps_time_and_goes_on_from_its_journals(tmp_path: Path) -> None:
    collector, fleet = setting(5, tmp_path, mix="mix = {1 = 1.0}")
    now, waited = [0.0], []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        now[0] += seconds

    first = [*fleet.run(1, 3, clock=lambda: now[0], wait=wait)]
    assert [tick.sent for tick in first] == [5, 5, 5]
    assert now[0] == sum(waited) == 3 * HOUR
    fleet.close()
    again = LiveFleet(collector.task, fleet.streams, tmp_path, Gateway(collector))
    assert [*again.join()]
    assert [tick.sent for tick in again.run(4, clock=lambda: now[0], wait=wait)] == [5] * 5
    assert len({name for _, name, _ in collector.seen}) == len(collector.seen) == 5 * PERIODS
    again.close()


def test_what_cannot_be_replayed_is_refused() -> None:
    made, _ = published()
    with pytest.raises(ConfigurationError, match="the streams have 2 periods; the task has 8"):
        LiveFleet(made, np.zeros((1, 2), dtype=int))


def test_devices_that_cannot_join_are_left_out_with_their_reason(tmp_path: Path) -> None:
    _, fleet = setting(3, tmp_path)
    fleet.close()
    other, key = published(title="another")
    streams = np.arange(5 * PERIODS).reshape(5, PERIODS) % 3
    fleet = LiveFleet(other, streams, tmp_path, Gateway(Collector(other, key)))
    assert [*fleet.join()] == [1, 2, 3, 4, 5]
    assert fleet.absent == {"the task asks for epsilon 1; 0 of the limit of 1 is left.": 3}
    assert len(fleet) == 2
    assert fleet.streams.tolist() == streams[3:].tolist()
    fleet.observe(1)
    fleet.close()
    fleet = LiveFleet(other, streams[:3], tmp_path, Gateway(Collector(other, key)))
    with pytest.raises(InputError, match=r"none of 3 devices can join; 3 of them say: the task"):
        [*fleet.join()]
    fleet.close()


def test_a_fleet_that_is_late_goes_on_with_the_present() -> None:
    collector, fleet = setting(5, mix="mix = {1 = 1.0}")
    now = [4.5 * HOUR]

    def wait(seconds: float) -> None:
        now[0] += seconds

    ticks = [*fleet.run(clock=lambda: now[0], wait=wait)]
    assert [tick.period for tick in ticks] == [5, 6, 7, 8]
    # Reports of the periods between are made all the same; a collector judges whether they count.
    assert sum(tick.sent for tick in ticks) == len(collector.seen) == 5 * PERIODS
    fleet.close()
