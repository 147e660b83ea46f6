"""A device with an honest task and a hostile one, and what a hostile server may publish."""

from __future__ import annotations

import gc
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import SplitResult

from tests.device.collecting import Collector, published

from sfumato import catalog
from sfumato.catalog import parse
from sfumato.device import Delivery, Device, Http, Limits
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


def plain_bytes(task: Published) -> bytes:
    return json.dumps(plain(task)).encode()
