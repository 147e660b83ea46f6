"""No task and no question costs an app time: what takes long is refused or waits for `flush`."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult

import pytest
from tests.device.collecting import HOUR, Collector, published
from tests.device.hostile_scenes import (
    ALWAYS,
    ASKED,
    HOSTILE,
    LONGEST_JOIN,
    LONGEST_OBSERVE,
    Scene,
    Wire,
    observe_all,
    plain,
    plain_bytes,
    timed,
    window,
)

from sfumato.device import Device, Limits, part
from sfumato.errors import ConfigurationError
from sfumato.wire.questions import Question

# ---- one by one ------------------------------------------------------------------------------


@pytest.mark.parametrize("hash_range", [32_768, 1 << 14])
def test_a_question_whose_answer_is_too_long_stops_nobody(hash_range: int) -> None:
    mechanism = {"mechanism": "olh", "epsilon": 0.5, "domain": ["a", "b", "c"]}
    lie = Question(1, 0, mechanism | {"hash_range": hash_range}, 1.0).encode()
    scene = Scene(lambda _url, _batch: lie)
    task = scene.device.join(replace(window(ASKED[0]), endpoint=HOSTILE))
    scene.device.observe("b", task)
    scene.now = HOUR + 1.0
    flushed = scene.device.flush()
    assert scene.arrived == [1]
    assert list(flushed.problems) == [task]
    assert "olh" in flushed.problem


def test_a_stream_of_seconds_since_1970_costs_nothing() -> None:
    scene = Scene(periods=2)
    scene.now = 1.7e9
    document = plain(window(ASKED[0], period='"1 second"'))
    document["spec"]["periods"] = 1 << 33
    with pytest.raises(ConfigurationError, match=r"periods is 8589934592; .*16384 is expected"):
        scene.device.join(json.dumps(document).encode())
    document["spec"]["periods"] = 16_384
    task = scene.device.join(json.dumps(document).encode())
    assert observe_all(scene.device, task) < LONGEST_OBSERVE
    for _ in range(20):  # one is enough, unless the machine is very busy
        state = scene.device.journal.task(bytes.fromhex(task)).state
        if state["period"] < 16_384:
            assert timed(lambda: scene.device.flush(force=True, limit=1.0)) < 2.0
    state = scene.device.journal.task(bytes.fromhex(task)).state
    assert (state["period"], state["held"]) == (16_384, None)  # observed after the end of it all


@pytest.mark.parametrize("items", [3, 4_000])
def test_a_device_that_was_away_for_a_whole_horizon_catches_up_in_flush(items: int) -> None:
    made, key = published(f'{{kind = "category", items = {items}}}', periods=4_000, mix=ALWAYS)
    collector, now = Collector(made, key), [10.0]
    device = Device.open(":memory:", Limits(2.0), collector, lambda: now[0])
    task = device.join(made)
    device.observe(1)
    now[0] = 300 * HOUR + 1.0
    assert timed(lambda: device.observe(2)) < LONGEST_OBSERVE
    for _ in range(300):  # a few are enough, unless the machine is very busy
        if len(collector.seen) == 300:
            break
        began = time.monotonic()
        flushed = device.flush(force=True, limit=0.5)
        assert time.monotonic() - began < 60.0  # a second at most, on an idle machine
        assert not flushed.problem or "no time left" in flushed.problem
    assert [period for period, _, _ in collector.seen] == list(range(1, 301))
    assert device.journal.task(bytes.fromhex(task)).value == 2


def test_a_device_that_never_has_time_gets_on_by_a_period_with_each_flush() -> None:
    made, key = published('{kind = "category", items = 3}', periods=400, mix=ALWAYS)
    now = [10.0]
    device = Device.open(":memory:", Limits(2.0), Collector(made, key), lambda: now[0])
    task = device.join(made)
    device.observe(1)
    now[0] = 300 * HOUR + 1.0
    for period in range(1, 6):
        assert "no time left" in device.flush(force=True, limit=1e-9).problem
        assert device.journal.task(bytes.fromhex(task)).state["period"] == period


@pytest.mark.parametrize(
    "values", ['{kind = "category", items = 3}', '{kind = "moves", items = 2}']
)
def test_what_is_postponed_counts_as_if_it_had_been_taken_in_at_once(
    values: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mix = "" if "moves" in values else ALWAYS
    made, key = published(values, periods=12, mix=mix)
    seen = []
    first = Device.open(tmp_path / "first", Limits(2.0), Collector(made, key), lambda: 0.0)
    first.join(made)
    first.close()
    for path, few in (("at once", 16), ("later", 0)):
        (tmp_path / path).write_bytes((tmp_path / "first").read_bytes())
        monkeypatch.setattr(part, "FEW_PERIODS", few)
        collector, now = Collector(made, key), [0.0]
        device = Device.open(tmp_path / path, Limits(2.0), collector, lambda: now[0])  # noqa: B023
        for period, value in ((0, 0), (2, 1), (2, 2), (5, 1), (9, 0)):
            now[0] = period * HOUR + 10.0
            moves = [1, -1] if value else [0, value - 1]
            device.observe(moves if "moves" in values else value, strict=True)
        now[0] = 12 * HOUR + 1.0
        device.flush()
        seen.append(collector.seen)
        device.close()
    assert len(seen[0]) == 12
    assert seen[0] == seen[1]


def test_an_asked_task_holds_what_was_observed_last_in_a_period_that_has_ended() -> None:
    scene = Scene(lambda _url, _batch: Question.none())
    task = scene.device.join(window(ASKED[0]))
    held = []
    for period, value in ((0, "a"), (3, "b"), (3, "c"), (7, "a")):
        scene.now = period * HOUR + 1.0
        scene.device.observe(value, task, strict=True)
        assert len(scene.device.journal.postponed(bytes.fromhex(task))) <= 2
    for period in (7, 8):
        scene.now = period * HOUR + 2.0
        scene.device.flush()
        held.append(scene.device.journal.task(bytes.fromhex(task)).state["held"])
    assert held == ["c", "a"]


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"values": {"kind": "category", "items": 1 << 24}}, "16,777,216 items"),
        ({"sized": []}, "sized has no size"),
        ({"sized": [[8, "concord", 5, None]]}, "sized is None"),
        ({"payload": 1 << 40}, "payload is"),
        ({"payload": 1 << 16, "periods": 16_384}, "bytes in all"),
        ({"mix": [[1, 1.0]] * 5_000}, "mix is"),
        ({"period_seconds": 0}, "period_seconds is 0"),
        ({"start": -1}, "start is -1"),
        ({"mix": [[0, 1.0]], "looks": []}, "looks has 0"),
    ],
)
def test_what_would_cost_too_much_is_refused_and_leaves_no_trace(
    changes: dict[str, Any], match: str
) -> None:
    document = plain(published(mix=ALWAYS)[0])
    document["spec"] |= changes
    device = Device.open(":memory:", Limits(2.0))
    before = list(device.journal._base.connection.iterdump())  # noqa: SLF001 -- all that is written
    begun = time.process_time()
    with pytest.raises(ConfigurationError, match=match):
        device.join(json.dumps(document).encode())
    assert time.process_time() - begun < LONGEST_JOIN
    assert list(device.journal._base.connection.iterdump()) == before  # noqa: SLF001


def test_the_largest_task_that_can_be_joined_does_not_hold_observe() -> None:
    scene = Scene(lambda _url, _batch: b"")
    task = scene.device.join(
        published('{kind = "category", items = 60_000}', periods=200, mix=ALWAYS)[0]
    )
    asks = scene.device.join(window('{kind = "category", items = 500_000}'))
    for now in (10.0, HOUR + 1.0, 100 * HOUR):
        scene.now = now
        assert timed(lambda: scene.device.observe(59_999, task, strict=True)) < LONGEST_OBSERVE
        assert timed(lambda: scene.device.observe(499_999, asks, strict=True)) < LONGEST_OBSERVE
    for _ in range(20):  # one is enough, unless the machine is very busy
        if len(scene.arrived) < 100:
            scene.device.flush(force=True, limit=1.0)
    assert scene.arrived == list(range(1, 101))


def test_slow_tasks_share_the_time_and_come_last_the_next_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []
    ahead, clock = [0.0], time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: clock() + ahead[0])

    @dataclass(frozen=True)
    class Slow(Wire):
        def _exchange(self, url: SplitResult, batch: bytes | None) -> bytes:
            order.append(url.hostname or "")
            if url.hostname == "hostile":
                ahead[0] += self.timeout
                raise TimeoutError
            return super()._exchange(url, batch)

    scene = Scene()
    scene.device.transport = Slow(timeout=1000.0, honest=scene.collector)
    for number in range(3):
        scene.device.join(plain_bytes(published(mix=ALWAYS, title=f"slow {number}")[0]))
    for period in (1, 2):
        scene.now = period * HOUR + 1.0
        began = time.monotonic()
        scene.device.flush(force=True, limit=400.0)
        assert time.monotonic() - began < 500.0
        assert scene.arrived == list(range(1, period + 1))
    assert order[4] == "honest"
