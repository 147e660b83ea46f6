"""An app on a device, with a clock that the test turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.device.collecting import HOUR, Collector, published

from sfumato.device import Device, Limits

ALWAYS = "mix = {1 = 1.0}"


class Clock:
    """A clock that the test turns."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def setting(**task: Any) -> tuple[Collector, Clock]:
    made, key = published(**task)
    return Collector(made, key), Clock()


def opened(path: str | Path, collector: Collector, clock: Clock, epsilon: float = 2.0) -> Device:
    return Device.open(path, Limits(epsilon), collector, clock)


def lived(device: Device, clock: Clock, values: list[Any], first: int = 0) -> None:
    """Observe one value in each period, flushing after each."""
    for period, value in enumerate(values, start=first):
        clock.now = period * HOUR + 10.0
        device.observe(value)
        clock.now = (period + 1) * HOUR + 1.0
        device.flush()


VALUES = ["a", "a", "b", "b", "b", "c", "c", "c"]
