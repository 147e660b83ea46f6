"""What a device says once: that it takes part, under an id of its own, until it is heard."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.device.app import Clock, opened, setting
from tests.device.collecting import HOUR, Collector

from sfumato.core.tally import ENROLMENT
from sfumato.device import Device

COUNTED = {"values": '{kind = "binary"}', "mix": 'enrolment = "counted"\nmix = {1 = 1.0}'}
SAID = bytes([1, 0xFF, 0xFF, 0, 0, 1])
"""The content of what devices say, without its padding."""


@pytest.fixture
def scene() -> tuple[Collector, Clock]:
    return setting(**COUNTED)


def _said(collector: Collector) -> list[tuple[int, bytes]]:
    """Return the period and the id of each message that says that a device takes part."""
    return [(period, name) for period, name, content in collector.seen if content[:6] == SAID]


def _flushed(device: Device, clock: Clock, now: float) -> None:
    clock.now = now
    device.flush(force=True)


def test_a_device_says_once_that_it_takes_part(scene: tuple[Collector, Clock]) -> None:
    collector, clock = scene
    clock.now = 2 * HOUR + 10.0
    device = opened(":memory:", collector, clock)
    device.join(collector.task)
    assert "takes part from period 3 on waits to be sent" in "\n".join(device.log())
    for period in range(3, 9):
        device.observe(1)
        _flushed(device, clock, clock.now + 1)
        _flushed(device, clock, period * HOUR + 1.0)
    assert [period for period, _ in _said(collector)] == [3]
    sizes = {len(content) for _, _, content in collector.seen}
    assert len(sizes) == 1
    # It sends nothing of the periods before, in which it counts as empty.
    assert sorted(period for period, _, _ in collector.seen) == [3, 3, 4, 5, 6, 7, 8]
    assert len({name for _, name, _ in collector.seen}) == 7
    assert "takes part from period 3 on was sent" in "\n".join(device.log())


def test_it_says_the_same_again_until_it_is_heard(
    scene: tuple[Collector, Clock], tmp_path: Path
) -> None:
    collector, clock = scene
    clock.now = 10.0
    device = opened(tmp_path / "journal", collector, clock)
    device.join(collector.task)
    collector.lost = 2  # the answers, after it was heard
    for _ in range(2):
        device.flush(force=True)
    device.close()
    device = opened(tmp_path / "journal", collector, clock)
    _flushed(device, clock, HOUR + 1.0)
    said = _said(collector)
    assert len(said) == 3
    assert len(set(said)) == 1
    device.close()


def test_what_comes_too_late_is_said_of_a_period_that_is_open(
    scene: tuple[Collector, Clock],
) -> None:
    collector, clock = scene
    clock.now = 10.0
    device = opened(":memory:", collector, clock)
    device.join(collector.task)
    collector.refuse = {1: "stale", 2: "stale"}
    _flushed(device, clock, 2 * HOUR + 10.0)
    assert not _said(collector)
    _flushed(device, clock, 2 * HOUR + 20.0)
    assert [period for period, _ in _said(collector)] == [3]
    _flushed(device, clock, 3 * HOUR + 20.0)
    assert [period for period, _, _ in device.journal.said(collector.task.task_id)] == [1, 3]


def test_it_waits_for_the_task_to_begin(scene: tuple[Collector, Clock]) -> None:
    collector, clock = scene
    clock.now = -100.0
    device = opened(":memory:", collector, clock)
    device.join(collector.task)
    device.flush()
    assert not collector.seen
    clock.now = 5.0
    device.flush()
    assert [period for period, _ in _said(collector)] == [1]


def test_whoever_leaves_says_nothing_more(scene: tuple[Collector, Clock]) -> None:
    collector, clock = scene
    clock.now = 10.0
    device = opened(":memory:", collector, clock)
    name = device.join(collector.task)
    device.leave(name)
    _flushed(device, clock, HOUR + 1.0)
    assert not collector.seen
    assert device.journal.said(collector.task.task_id) == []


def test_other_tasks_ask_for_nothing_of_it() -> None:
    collector, clock = setting(values=COUNTED["values"], mix="mix = {1 = 1.0}")
    device = opened(":memory:", collector, clock)
    device.join(collector.task)
    _flushed(device, clock, 2 * HOUR + 1.0)
    assert not any(content[1:3] == ENROLMENT.to_bytes(2) for _, _, content in collector.seen)
    assert len(collector.seen) == 2
