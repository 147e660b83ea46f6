"""A gateway in front of a collector: it joins what many devices send into few batches.

It keeps nothing for good. A device's reports are taken along, and the device is told to try again;
when it does, it learns what the collector has said of them. What the collector has not
acknowledged, no device takes for sent.
"""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sfumato.device.transport import Delivery, Http, Transport, Unreachable
from sfumato.wire.reports import ID_BYTES, Batch

__all__ = ["Gateway"]

TOGETHER: Final = 1000
"""Reports of a batch."""
MOMENT: Final = 0.2
"""Seconds for which what was fetched is taken for the present."""

HEAD_BYTES: Final = len(Batch(bytes(32), 0, np.empty(0, dtype="V1")).encode())


@dataclass
class _Load:
    """Reports of one task under one key that leave together."""

    reports: list[bytes] = field(default_factory=list)

    def ids(self) -> list[bytes]:
        return [report[:ID_BYTES] for report in self.reports]

    def encode(self, task_id: bytes, key_id: int) -> bytes:
        size = len(self.reports[0])
        reports = np.frombuffer(b"".join(self.reports), dtype=f"V{size}")
        return Batch(task_id, key_id, reports).encode()


class Gateway:
    """What simulated devices of one process talk through.

    Parameters
    ----------
    upstream
        How the collector is reached.
    together
        How many reports make a batch.

    """

    def __init__(self, upstream: Transport | None = None, together: int = TOGETHER) -> None:
        self._upstream = upstream or Http()
        self._together = together
        self._loads: dict[tuple[str, bytes, int], _Load] = {}
        self._on_the_way: list[tuple[bytes, _Load, Future[Delivery]]] = []
        self._said: dict[bytes, str | None] = {}
        self._told: dict[str, tuple[float, bytes]] = {}
        self._keys: dict[bytes, int | None] = {}
        self._posts = ThreadPoolExecutor(2, "gateway")
        self.problems: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def fetch(self, url: str) -> bytes:
        """Return what is at an address; all devices that ask within a moment are told the same."""
        now = time.monotonic()
        at, said = self._told.get(url, (-MOMENT, b""))
        if now - at >= MOMENT:
            at, said = self._told[url] = (now, self._upstream.fetch(url))
        return said

    def send(self, url: str, batch: bytes) -> Delivery:
        """Say what became of a device's reports, or take them along and have it try again."""
        task_id, key_id, count = Batch.head(batch)
        size = (len(batch) - HEAD_BYTES) // count
        reports = [batch[at : at + size] for at in range(HEAD_BYTES, len(batch), size)]
        names = [report[:ID_BYTES] for report in reports]
        if all(name in self._said for name in names):
            said = [self._said.pop(name) for name in names]
            refused = {place: why for place, why in enumerate(said) if why is not None}
            return Delivery(refused, self._keys.get(task_id))
        place = (url, task_id, key_id)
        load = self._loads.setdefault(place, _Load())
        load.reports += reports
        if len(load.reports) >= self._together:
            self._post(*place, self._loads.pop(place))
        raise Unreachable("the gateway has taken it along")

    def deliver(self) -> None:
        """Send the rest, and wait for what the collector says of everything.

        Then ``refused`` counts what it has refused, by its reasons, and ``problems`` what it has
        not taken in, by what went wrong.
        """
        for place, load in self._loads.items():
            self._post(*place, load)
        self._loads = {}
        on_the_way, self._on_the_way = self._on_the_way, []
        self.problems, self.refused = Counter(), Counter()
        for task_id, load, answer in on_the_way:
            try:
                outcome = answer.result()
            except Unreachable as error:  # the devices still have them, and come again
                self.problems[str(error)] += len(load.reports)
                continue
            self._keys[task_id] = outcome.key_id
            self.refused.update(outcome.refused.values())
            self._said |= {name: outcome.refused.get(at) for at, name in enumerate(load.ids())}

    def _post(self, url: str, task_id: bytes, key_id: int, load: _Load) -> None:
        body = load.encode(task_id, key_id)
        answer = self._posts.submit(self._upstream.send, url, body)
        self._on_the_way.append((task_id, load, answer))

    def close(self) -> None:
        """Let go of the threads."""
        self._posts.shutdown()
