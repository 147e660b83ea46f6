"""An app and its other tasks go on, whatever task it joins and whatever a server answers."""

from __future__ import annotations

import contextlib
import gc
import json
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult

import pytest
from tests.device.collecting import HOUR, Collector, published
from tests.device.mutations import mutated, written

from sfumato import catalog
from sfumato.catalog import parse
from sfumato.device import Delivery, Device, Http, Limits, errands, part, sdk
from sfumato.errors import BudgetError, ConfigurationError, InputError, SfumatoError
from sfumato.streams.registry import spec_of
from sfumato.wire.published import Published
from sfumato.wire.questions import Question
from sfumato.wire.sealing import new_key

ALWAYS = "mix = {1 = 1.0}"
HONEST, HOSTILE = "http://honest/tasks/1/reports", "http://hostile/tasks/1/reports"
LONGEST_OBSERVE = 0.05
LONGEST_JOIN = 2.0
"""Seconds of processor time."""

VALUES = (
    '{kind = "category", items = ["a", "b", "c"]}',
    '{kind = "category", items = 3, optional = true}',
    '{kind = "binary"}',
    '{kind = "set", items = ["a", "b", "c", "d"]}',
    '{kind = "set", items = 6, most = 2}',
    '{kind = "attributes", attributes = {x = ["a", "b"], y = 3}}',
    '{kind = "moves", items = ["a", "b"]}',
)
ASKED = (
    '{kind = "category", items = ["a", "b", "c"]}',
    '{kind = "category", items = 40}',
    '{kind = "number", low = 0, high = 10}',
)


def plain(task: Published, start: int = 0) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(task.encode())
    document["spec"]["start"] = start
    document["endpoint"] = HOSTILE
    return document


def window(values: str, **changes: Any) -> Published:
    given = {"epsilon": 1.0, "window": 3, "devices": 1000, "periods": 400, "period": '"1 hour"'}
    given |= {"values": values} | changes
    rows = "\n".join(f"{name} = {value}" for name, value in given.items())
    task = parse(f'kind = "window"\ntitle = "asks"\n{rows}')
    spec = spec_of(task, catalog.stream(task), start=0)
    return Published(spec, {1: new_key().public_key().public_bytes_raw()}, HOSTILE)


def amounts() -> Published:
    task = parse(
        'stream = "topl"\ntitle = "sums"\nepsilon = 1\nperiods = 400\nperiod = "1 hour"\n'
        'values = {kind = "number", low = 0, high = 10}'
    )
    spec = spec_of(task, catalog.stream(task), start=0)
    return Published(spec, {1: new_key().public_key().public_bytes_raw()}, HOSTILE)


DOCUMENTS = (
    *(plain(published(values)[0]) for values in VALUES),
    plain(window(ASKED[0], tiers="[{window = 6, epsilon = 0.5, devices = 90}]")),
    plain(amounts()),
    *(plain(window(values)) for values in ASKED),
)
QUESTION = json.loads(
    Question(
        1, 0, {"mechanism": "olh", "epsilon": 0.5, "domain": ["a", "b", "c"], "hash_range": 3}, 1.0
    ).encode()
)
RECEIPT = {"accepted": 1, "refused": [{"index": 0, "reason": "stale"}], "key_id": 2}


@dataclass(frozen=True)
class Wire(Http):
    """HTTP without a network: the honest task's collector, and whatever the hostile one says."""

    honest: Collector | None = None
    hostile: Callable[[str, bytes | None], bytes] = field(default=lambda _url, _batch: b"")

    def _exchange(self, url: SplitResult, batch: bytes | None) -> bytes:
        if url.hostname == "hostile":
            return self.hostile(url.path, batch)
        assert self.honest is not None
        assert batch is not None
        outcome: Delivery = self.honest.send(HONEST, batch)
        assert not outcome.refused
        return b'{"refused": []}'


class Scene:
    """A device with an honest task that sends in every period, beside whatever is hostile."""

    def __init__(
        self, hostile: Callable[[str, bytes | None], bytes] = lambda _url, _batch: b"", **task: Any
    ) -> None:
        made, key = published(periods=task.pop("periods", 16_384), title="honest", mix=ALWAYS)
        self.collector = Collector(replace(made, endpoint=HONEST), key)
        self.now = 0.0
        limits = Limits(1e9, windows=True, unsealed=True)
        wire = Wire(honest=self.collector, hostile=hostile)
        self.device = Device.open(":memory:", limits, wire, lambda: self.now)
        self.honest = self.device.join(self.collector.task)

    @property
    def arrived(self) -> list[int]:
        return sorted(period for period, _, _ in self.collector.seen)


def timed(action: Callable[[], Any]) -> float:
    """Return the processor time of an action, without the garbage of all other tests."""
    gc.disable()
    begun = time.thread_time()
    try:
        action()
        return time.thread_time() - begun
    finally:
        gc.enable()


def observe_all(device: Device, task: str) -> float:
    """Observe values of all kinds; return the longest time that one took."""
    values = ("a", 2, 1, {"a", "b"}, {"x": "a", "y": 2}, [1, -1], 0.5, None)
    return max(timed(lambda: device.observe(value, task)) for value in values)  # noqa: B023


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
    while len(collector.seen) < 300:
        began, before = time.monotonic(), len(collector.seen)
        flushed = device.flush(force=True, limit=0.5)
        assert time.monotonic() - began < 10.0  # a second at most, on an idle machine
        assert len(collector.seen) > before
        assert not flushed.problem or "no time left" in flushed.problem
    assert [period for period, _, _ in collector.seen] == list(range(1, 301))
    assert device.journal.task(bytes.fromhex(task)).value == 2


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
    ("document", "changes"),
    [
        (DOCUMENTS[-3], {"kind": "horizon", "stream": "window"}),
        (DOCUMENTS[0], {"kind": "window", "stream": "weave"}),
        (DOCUMENTS[0], {"kind": "window", "stream": "flat"}),
        (DOCUMENTS[0], {"kind": "other"}),
    ],
)
def test_a_task_cannot_run_another_kind_of_stream_than_it_says(
    document: dict[str, Any], changes: dict[str, Any]
) -> None:
    document = document | {"spec": document["spec"] | changes}
    device = Device.open(":memory:", Limits(2.0))
    with pytest.raises(ConfigurationError, match=r"kind is '(horizon|window|other)'"):
        device.join(json.dumps(document).encode())
    assert device.left == 2.0


@pytest.mark.parametrize("stream", ["window", "topl"])
def test_what_an_owner_allows_hangs_on_the_promise_and_on_no_name(stream: str) -> None:
    """Owners who want a promise for ever would be asked window after window."""
    document = DOCUMENTS[-3]
    spec = {name: part for name, part in document["spec"].items() if name != "kind"}
    spec |= {"stream": stream, "bound": 9.0, "learning": 1, "limit": 64, "variant": "white"}
    if stream == "topl":
        spec["values"] = {"kind": "number", "low": 0, "high": 9}
    device = Device.open(":memory:", Limits(100.0, unsealed=True))
    with pytest.raises(BudgetError, match="for a window of time only"):
        device.join(json.dumps(document | {"spec": spec}).encode())
    assert device.left == 100.0


def test_a_renewed_task_brings_its_keys_and_nothing_else() -> None:
    document = plain(published(mix=ALWAYS)[0])
    scene = Scene(lambda _url, _batch: b'{"refused": []}')
    task = scene.device.join(json.dumps(document).encode())
    for name in ("periods", "period_seconds", "payload"):
        document["spec"][name] = float(document["spec"][name])  # the same to a hash
    document["keys"] = [[2, new_key().public_key().public_bytes_raw().hex()]]
    assert scene.device.join(json.dumps(document).encode()) == task
    scene.now = HOUR + 1.0
    flushed = scene.device.flush()
    assert not flushed.problems
    assert flushed.sent == 2
    kept = scene.device.journal.task(bytes.fromhex(task)).published
    assert list(Published.parse(kept).keys) == [2]


@pytest.mark.parametrize("title", ["a\ud800", "\x00", "x" * 201, 7, None, ["a"]])
def test_a_title_that_cannot_be_shown_is_refused_in_a_sentence(title: Any) -> None:
    document = plain(published()[0])
    document["spec"]["title"] = title
    device = Device.open(":memory:", Limits(2.0))
    with pytest.raises((InputError, ConfigurationError), match=r"title|surrogates"):
        device.join(json.dumps(document).encode())
    assert device.left == 2.0


def test_a_key_that_nothing_can_be_sealed_to_is_refused() -> None:
    document = plain(published()[0])
    document["keys"] = [[1, "00" * 32]]
    with pytest.raises(InputError, match="nothing can be sealed to it"):
        Device.open(":memory:", Limits(2.0)).join(json.dumps(document).encode())


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


def test_a_task_in_the_journal_that_cannot_be_read_stops_no_other() -> None:
    scene = Scene()
    other = scene.device.join(published(title="other")[0])
    with scene.device.journal.transaction():
        scene.device.journal.set_published(bytes.fromhex(other), b"{}")
    device = sdk.Device(
        scene.device.journal, scene.device.limits, scene.device.transport, scene.device.clock
    )
    scene.now = HOUR + 1.0
    device.observe("a", other)
    flushed = device.flush()
    assert list(flushed.problems) == [other]
    assert scene.arrived == [1]


@pytest.mark.parametrize("field", ["value", "sent", "stream", "held"])
def test_what_is_said_of_a_damaged_journal_quotes_no_value(field: str) -> None:
    """Apps log what went wrong, and send their logs home."""
    scene = Scene()
    made = window(ASKED[0]) if field == "held" else published(mix=ALWAYS)[0]
    task_id = bytes.fromhex(scene.device.join(made))
    journal = scene.device.journal
    joined = journal.task(task_id)
    assert field in joined.state
    wrong = {field: [753_951]} | ({"round": -2} if field == "held" else {})
    journal.step(task_id, joined.state | wrong, joined.chain)
    device = sdk.Device(journal, scene.device.limits, scene.device.transport, scene.device.clock)
    problem = device.flush().problems[task_id.hex()]
    assert "is damaged" in problem
    assert "753951" not in problem


def test_an_unforeseen_error_is_a_sentence_and_stops_no_other() -> None:
    def fail(url: str, batch: bytes | None) -> bytes:
        raise RecursionError(f"{url} {batch!r}" + "x" * 10_000)

    scene = Scene(fail)
    task = scene.device.join(plain_bytes(published(mix=ALWAYS)[0]))
    scene.now = HOUR + 1.0
    flushed = scene.device.flush()
    assert list(flushed.problems) == [task]
    assert "unforeseen" in flushed.problem
    assert len(flushed.problem) <= errands.LONGEST_PROBLEM
    assert scene.arrived == [1]


def plain_bytes(task: Published) -> bytes:
    return json.dumps(plain(task)).encode()


@pytest.mark.parametrize("limit", [0, -1.0, float("nan"), float("inf"), "1", True])
def test_a_limit_that_is_none_is_refused(limit: Any) -> None:
    with pytest.raises(InputError, match="limit is"):
        Device.open(":memory:", Limits(2.0)).flush(limit=limit)


def test_slow_tasks_share_the_time_and_come_last_the_next_time() -> None:
    order: list[str] = []

    @dataclass(frozen=True)
    class Slow(Wire):
        def _exchange(self, url: SplitResult, batch: bytes | None) -> bytes:
            order.append(url.hostname or "")
            if url.hostname == "hostile":
                time.sleep(self.timeout)
                raise TimeoutError
            return super()._exchange(url, batch)

    scene = Scene()
    scene.device.transport = Slow(honest=scene.collector)
    for number in range(3):
        scene.device.join(plain_bytes(published(mix=ALWAYS, title=f"slow {number}")[0]))
    for period in (1, 2):
        scene.now = period * HOUR + 1.0
        began = time.monotonic()
        scene.device.flush(force=True, limit=0.8)
        assert time.monotonic() - began < 5.0
        assert scene.arrived == list(range(1, period + 1))
    assert order[4] == "honest"


# ---- many at once ----------------------------------------------------------------------------


def _said(rng: random.Random, task: bytes) -> Callable[[str, bytes | None], bytes]:
    """Return a server that answers with good documents that were changed."""

    def say(path: str, batch: bytes | None) -> bytes:
        if batch is not None:
            return written(mutated(RECEIPT, rng), rng)
        if path.endswith("/question"):
            return written(mutated(QUESTION, rng), rng)
        keys = json.loads(task)
        keys["keys"] = [[2, rng.randbytes(32).hex()]]
        return written(keys if rng.random() < 0.5 else mutated(keys, rng), rng)

    return say


def _one_more(scene: Scene, period: int, rng: random.Random) -> bool:
    """Join a hostile task, live through a period with it, and demand all that is promised."""
    start = int(scene.now) - rng.choice((0, 5, 300)) * HOUR
    document = rng.choice(DOCUMENTS)
    document = {**document, "spec": {**document["spec"], "start": max(0, start)}}
    if rng.random() < 0.8:
        document = mutated(document, rng)
    data = written(document, rng)
    task = ""
    begun = time.process_time()
    with contextlib.suppress(SfumatoError):
        task = scene.device.join(data)
    assert time.process_time() - begun < LONGEST_JOIN, data[:2000]
    object.__setattr__(scene.device.transport, "hostile", _said(rng, data))
    if task:
        assert observe_all(scene.device, task) < LONGEST_OBSERVE, data[:2000]
    scene.now = period * HOUR + 1.0
    began = time.process_time()
    flushed = scene.device.flush(force=True, limit=5.0)
    assert time.process_time() - began < 5.0, data[:2000]
    assert set(flushed.problems) <= {task}
    assert scene.arrived[-1] == period == len(scene.collector.seen)
    if task:
        assert observe_all(scene.device, task) < LONGEST_OBSERVE, data[:2000]
        scene.device.flush(force=True)
        scene.device.log()
        scene.device.leave(task)
    return bool(task)


def _many(seed: int, count: int) -> int:
    """Go through so many documents, a hundred for each device; return how many were joined."""
    rng = random.Random(seed)  # noqa: S311 -- hostile documents, not coins
    joined = 0
    for _ in range(0, count, 100):
        scene = Scene(periods=100)
        joined += sum(_one_more(scene, period, rng) for period in range(1, 101))
    return joined


def test_hostile_documents_stop_nobody() -> None:
    joined = _many(seed=1, count=500)
    assert 100 < joined < 450  # some can be joined, and some cannot


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_more_hostile_documents_stop_nobody(seed: int) -> None:
    assert _many(seed, count=4_000)
