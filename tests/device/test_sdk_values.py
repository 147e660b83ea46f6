"""No task and no value stops an app, and all kinds of values take part."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from tests.device.app import Clock, lived, opened, setting
from tests.device.collecting import HOUR, published

from sfumato.device import Delivery, Device, Limits
from sfumato.errors import (
    SfumatoError,
)

ODD: list[Any] = [
    *(None, -1, 0, 0.5, 1e300, math.inf, math.nan, 2**70, True, "x", "\0", [], [[]], {}),
    {"kind": "category", "items": 2**60},
]


@pytest.mark.parametrize(
    "name",
    [*published()[0].spec, "values.items", "values.kind"],
)
def test_a_task_with_nonsense_in_it_is_refused_or_does_no_harm(name: str) -> None:
    """Whatever a server publishes, an app is told when it joins, and never afterwards."""
    made, _ = published(mix="mix = {1 = 0.5, snapshot = 0.5}")
    plain = json.loads(made.encode())
    for odd in [*ODD, "missing"]:
        lying = json.loads(json.dumps(plain))
        *above, last = name.split(".")
        place = lying["spec"][above[0]] if above else lying["spec"]
        place.pop(last, None) if odd == "missing" else place.update({last: odd})
        clock = Clock()
        device = Device.open(":memory:", Limits(2.0), Deaf(), clock)
        try:
            device.join(json.dumps(lying).encode())
        except SfumatoError:
            assert device.left == 2.0
            assert device.journal.tasks() == []
            continue
        spent = 2.0 - device.left
        assert spent == lying["spec"]["epsilon"] > 0
        for now in (0.0, HOUR, 1e9):
            clock.now = now
            device.observe("a")
            device.flush()


class Deaf:
    """A server that takes anything and says nothing of use."""

    def fetch(self, url: str) -> bytes:
        return url.encode()

    def send(self, url: str, batch: bytes) -> Delivery:
        assert url
        assert batch
        return Delivery({-1: "stale", 10**9: "stale"})


@pytest.mark.parametrize(
    "values",
    [
        '{kind = "category", items = ["a", "b"]}',
        '{kind = "binary"}',
        '{kind = "set", items = ["x", "y", "z"]}',
        '{kind = "attributes", attributes = {p = 2, q = ["m", "n"]}}',
        '{kind = "moves", items = ["up", "down"]}',
    ],
)
def test_no_value_of_an_app_stops_it(values: str) -> None:
    collector, clock = setting(values=values)
    device = opened(":memory:", collector, clock)
    device.join(collector.task)
    odd: list[Any] = [
        *(None, b"a", 1.5, math.nan, math.inf, 2**70, object(), [], {}, {"a"}, [["x"]], type),
        *({"p": 1}, {"p": [], "q": {}}, {1: 2, "q": 3}, {"x": object()}, [object()], 1j),
        *(np.array([1, 2]), np.float64(1), np.ones((2, 2)), np.datetime64("2020-01-01")),
        *([1, "a"], [1, 2**80], [None, None], [math.nan, 0], iter("xy"), lambda: 1, "a" * 10**5),
    ]
    for place, value in enumerate(odd):
        device.observe(value)
        clock.now = place * 600.0
    device.flush()
    assert device.left == 1.0


@pytest.mark.parametrize(
    ("values", "seen"),
    [
        ('{kind = "binary"}', [0, 1, True, 0]),
        ('{kind = "set", items = ["x", "y", "z"]}', [{"x"}, {"x", "z"}, [], {"y"}]),
        ('{kind = "attributes", attributes = {p = 2, q = ["m", "n"]}}', [{"p": 1, "q": "m"}] * 4),
        ('{kind = "moves", items = ["up", "down"]}', [[1, 0], [0, 0], [0, -1], [0, 0]]),
    ],
)
def test_all_kinds_of_values_take_part(values: str, seen: list[Any]) -> None:
    collector, clock = setting(values=values, periods=4)
    for number in range(4):
        device = opened(":memory:", collector, clock)
        device.join(collector.task)
        lived(device, clock, seen)
        assert device.flush().waiting == 0, number
    assert collector.seen
