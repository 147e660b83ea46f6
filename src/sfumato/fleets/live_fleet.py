"""Thousands of devices in one process, each with its own journal, that live through a task.

The devices are those that an app would embed; only their clock and their transport are simulated.
The clock stands still during the work of a period, so that all devices are in the same one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np

from sfumato.arrays import Array
from sfumato.core.stream import Stream
from sfumato.datasets.flights import PLACES, read_favourites
from sfumato.device import Delivery, Device, Flushed, Limits
from sfumato.device.part import Part
from sfumato.device.transport import Unreachable
from sfumato.errors import ConfigurationError, InputError, SfumatoError
from sfumato.fleets.gateway import Gateway
from sfumato.simulation import Recorded, observed_by
from sfumato.wire.published import Published

__all__ = ["LiveFleet", "Pace", "Tick", "pace", "replayed"]

MEMORY: Final = ":memory:"
GOLDEN: Final = (5**0.5 - 1) / 2
LATENCY: Final = 0.3
"""Seconds after which a collector has surely closed a round and opened the next."""


@dataclass(frozen=True)
class Tick:
    """The result of one period of a fleet.

    Parameters
    ----------
    period
        The period that has ended.
    sent, refused, waiting
        The numbers of reports that were acknowledged, refused, and not accepted yet.
    seconds
        The time that the devices took.
    reasons
        The number of refused reports for each reason.
    problems
        The number of reports that did not arrive for each cause.

    """

    period: int
    sent: int
    refused: int
    waiting: int
    seconds: float
    reasons: Counter[str] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)


class LiveFleet:
    """Devices that take part in one task and replay one stream each.

    Parameters
    ----------
    published
        The task.
    streams
        The encoded values, with one row for each device and one column for each period.
    folder
        The folder of the journals; without one they are in memory.
    gateway
        The gateway that the devices share.

    """

    def __init__(
        self,
        published: Published,
        streams: Array,
        folder: Path | None = None,
        gateway: Gateway | None = None,
    ) -> None:
        self.observed, part = observed_by(published.spec), Part.of(published)
        self.periods = int(published.spec["periods"])
        if streams.shape[1] < self.periods:
            raise ConfigurationError(
                f"the streams have {streams.shape[1]} periods; the task has {self.periods}."
            )
        self.published = published
        self.rounds = max(1, part.stream.rounds)
        self.streams = streams
        self.gateway = gateway or Gateway()
        self._start, self._seconds = published.spec["start"], published.spec["period_seconds"]
        self.now = float(self._start)
        # A device asks for what a task costs; this one's owner allows it, and nothing more.
        dearest = max(offer.epsilon for offer in part.stream.offers)
        limits = Limits(dearest, unsealed=True, windows=True)
        # What all devices of a process know about a task is the same, and read once.
        known: dict[bytes, Any] = {published.task_id: part}
        names = [
            MEMORY if folder is None else folder / f"{index}.journal"
            for index in range(len(streams))
        ]
        self.devices = [Device.open(name, limits, self.gateway, lambda: self.now) for name in names]
        for device in self.devices:
            device.parts.built = known
        self._tiers = _tiers(part.stream, len(self.devices))
        self._lasts = part.stream.lasts
        self._folder = folder
        self.absent: Counter[str] = Counter()
        """The number of devices that could not join for each reason."""
        self._observed = 0

    def __len__(self) -> int:
        return len(self.devices)

    def join(self) -> Iterator[int]:
        """Let one device after the other join; yield the number of those that have tried.

        Devices that cannot join are left out and counted in ``absent``; if none can, InputError is
        raised.
        """
        members, streams = [], []
        for index, device in enumerate(self.devices):
            try:
                device.join(self.published, self._tiers[index])
            except SfumatoError as error:
                self.absent[str(error)] += 1
                device.close()
            else:
                members.append(device)
                streams.append(index)
            yield index + 1
        tried, self.devices = len(self.devices), members
        self.streams = self.streams[streams]
        if not members:
            reason, count = self.absent.most_common(1)[0]
            kept = "" if self._folder is None else f" New devices need an empty {self._folder}."
            raise InputError(
                f"none of {tried} devices can join; {count} of them say: {reason}{kept}"
            )

    def run(
        self,
        first: int = 1,
        last: int | None = None,
        *,
        clock: Callable[[], float] = time.time,
        wait: Callable[[float], object] = time.sleep,
    ) -> Iterator[Tick]:
        """Live through the periods in real time; yield the result of each when it has ended.

        A fleet that is late by more than a period goes on with the current one; the devices catch
        up on the periods between with the values that they had.
        """
        period, last = first, last or self.periods
        while period <= last:
            begins = self._start + (period - 1) * self._seconds
            late = int((clock() - begins) // self._seconds)
            if late > 1 and period < last:
                period = min(period + late, last)
                continue
            wait(max(0.0, begins - clock()))
            self.observe(period)
            ticks = []
            for number in range(self.rounds):  # when a period has ended; later questions after it
                after = self.published.spec["grace"] * number / self.rounds
                opened = begins + self._seconds + after + (LATENCY if self.rounds > 1 else 0.0)
                wait(max(0.0, opened - clock()))
                ticks.append(self.flush(period))
            yield _together(ticks)
            period += 1

    def observe(self, period: int) -> None:
        """Let each device observe its value of a period, if that has changed."""
        self.now = self._start + (period - 1) * self._seconds
        column = self.streams[:, period - 1]
        cells = column.reshape(len(self), -1)
        if not self._lasts:
            news = np.flatnonzero(cells.any(axis=1))
        elif self._observed:
            before = self.streams[:, self._observed - 1].reshape(len(self), -1)
            news = np.flatnonzero((cells != before).any(axis=1))
        else:
            news = np.arange(len(self))
        self._observed = period
        for index in news.tolist():
            self.devices[index].observe(self.observed.said(column[index]), strict=True)

    def flush(self, period: int) -> Tick:
        """Let all devices send the reports that are due at the end of a period."""
        began = time.perf_counter()
        self.now = self._start + period * self._seconds
        # Whoever has something to send hands it to the gateway, and then asks what became of it.
        first = [device.flush(force=True) for device in self.devices]
        self.gateway.deliver()
        done = [
            device.flush(force=True) if before.waiting else before
            for device, before in zip(self.devices, first, strict=True)
        ]
        return Tick(
            period,
            *_added(done),
            seconds=time.perf_counter() - began,
            reasons=self.gateway.refused,
            problems=self.gateway.problems + _troubles(first),
        )

    def close(self) -> None:
        """Close the gateway and all journals."""
        self.gateway.close()
        for device in self.devices:
            device.close()


def replayed(published: Published, devices: int, seed: int, recorded: Array | None = None) -> Array:
    """Return a stream of values for each device of a task.

    Parameters
    ----------
    published
        The task.
    devices
        The number of devices.
    seed
        The seed of all draws.
    recorded
        Streams to draw from, with replacement. Without them, those of planes are used if the task
        asks for the places of planes; else the streams are made up.

    """
    if recorded is None and published.spec["values"].get("items") == list(PLACES):
        recorded = read_favourites(int(published.spec["periods"]))
    if recorded is None:
        return observed_by(published.spec).made_up(devices, seed).streams()
    return Recorded(recorded, devices, seed).streams()


@dataclass(frozen=True)
class Pace:
    """The seconds that one device takes to join, and to live through a period."""

    join: float
    period: float


def pace(published: Published, streams: Array, periods: int = 2) -> Pace:
    """Measure how fast the devices of a task are on this machine at the moment."""
    fleet = LiveFleet(published, streams, gateway=Gateway(_Nowhere()))
    began = time.perf_counter()
    for _ in fleet.join():
        pass
    joined = time.perf_counter()
    for period in range(1, periods + 1):
        fleet.observe(period)
        fleet.flush(period)
    ended = time.perf_counter()
    fleet.close()
    return Pace((joined - began) / len(fleet), (ended - joined) / len(fleet) / periods)


class _Nowhere:
    """A transport that accepts everything and keeps nothing."""

    def fetch(self, url: str) -> bytes:
        raise Unreachable(url)

    def send(self, url: str, batch: bytes) -> Delivery:
        del url, batch
        return Delivery()


def _tiers(stream: Stream, devices: int) -> list[int]:
    """Return the tier that each device picks, in the proportions that the task expects."""
    bounds = np.cumsum(stream.picks)[:-1]
    # Any prefix of the fleet has the proportions, nearly: the fraction of a golden step is even.
    points = np.arange(devices) * GOLDEN % 1.0
    return [int(tier) for tier in np.searchsorted(bounds, points, side="right")]


def _together(ticks: list[Tick]) -> Tick:
    """Return the result of a period from those of its rounds."""
    return Tick(
        ticks[-1].period,
        sum(tick.sent for tick in ticks),
        sum(tick.refused for tick in ticks),
        ticks[-1].waiting,
        seconds=sum(tick.seconds for tick in ticks),
        reasons=sum((tick.reasons for tick in ticks), Counter()),
        problems=sum((tick.problems for tick in ticks), Counter()),
    )


def _added(done: list[Flushed]) -> tuple[int, int, int]:
    return sum(f.sent for f in done), sum(f.refused for f in done), sum(f.waiting for f in done)


def _troubles(asked: list[Flushed]) -> Counter[str]:
    """Return the number of devices that could not answer a question for each cause."""
    return Counter(done.problem for done in asked if done.problem and not done.waiting)
