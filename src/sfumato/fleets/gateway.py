"""A gateway in front of a collector: it joins the reports of many devices into few batches.

It stores nothing on disk. It keeps a device's reports and tells the device to try again; when the
device does, it learns how the collector has answered. A report that the collector has not
acknowledged is never counted as sent.
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
"""The number of reports in a batch."""
MOMENT: Final = 0.2
"""The seconds for which a fetched answer is used again."""

HEAD_BYTES: Final = len(Batch(bytes(32), 0, np.empty(0, dtype="V1")).encode())


@dataclass
class _Load:
    """Reports of one task, under one key, that are sent together."""

    reports: list[bytes] = field(default_factory=list)

    def ids(self) -> list[bytes]:
        return [report[:ID_BYTES] for report in self.reports]

    def encode(self, task_id: bytes, key_id: int) -> bytes:
        size = len(self.reports[0])
        reports = np.frombuffer(b"".join(self.reports), dtype=f"V{size}")
        return Batch(task_id, key_id, reports).encode()


class Gateway:
    """The transport that the devices of one process share.

    Parameters
    ----------
    upstream
        The transport to the collector.
    together
        The number of reports in a batch.

    """

    def __init__(self, upstream: Transport | None = None, together: int = TOGETHER) -> None:
        self._upstream = upstream or Http()
        self._together = together
        self._loads: dict[tuple[str, bytes, int], _Load] = {}
        self._on_the_way: list[tuple[bytes, _Load, Future[Delivery]]] = []
        self._answers: dict[bytes, str | None] = {}
        self._fetched: dict[str, tuple[float, bytes]] = {}
        self._keys: dict[bytes, int | None] = {}
        self._posts = ThreadPoolExecutor(2, "gateway")
        self.problems: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def fetch(self, url: str) -> bytes:
        """Return the content of an address; within a moment it is fetched only once."""
        now = time.monotonic()
        at, content = self._fetched.get(url, (-MOMENT, b""))
        if now - at >= MOMENT:
            at, content = self._fetched[url] = (now, self._upstream.fetch(url))
        return content

    def send(self, url: str, batch: bytes) -> Delivery:
        """Return what became of a device's reports, or keep them and raise Unreachable."""
        task_id, key_id, count = Batch.head(batch)
        size = (len(batch) - HEAD_BYTES) // count
        reports = [batch[at : at + size] for at in range(HEAD_BYTES, len(batch), size)]
        names = [report[:ID_BYTES] for report in reports]
        if all(name in self._answers for name in names):
            reasons = [self._answers.pop(name) for name in names]
            refused = {target: why for target, why in enumerate(reasons) if why is not None}
            return Delivery(refused, self._keys.get(task_id))
        target = (url, task_id, key_id)
        load = self._loads.setdefault(target, _Load())
        load.reports += reports
        if len(load.reports) >= self._together:
            self._post(*target, self._loads.pop(target))
        raise Unreachable("the gateway has taken it along")

    def deliver(self) -> None:
        """Send the reports that are left, and wait for the answers to all of them.

        Afterwards ``refused`` has the number of refused reports for each reason, and ``problems``
        the number of reports that did not arrive for each cause.
        """
        for target, load in self._loads.items():
            self._post(*target, load)
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
            self._answers |= {name: outcome.refused.get(at) for at, name in enumerate(load.ids())}

    def _post(self, url: str, task_id: bytes, key_id: int, load: _Load) -> None:
        body = load.encode(task_id, key_id)
        answer = self._posts.submit(self._upstream.send, url, body)
        self._on_the_way.append((task_id, load, answer))

    def close(self) -> None:
        """Stop the threads."""
        self._posts.shutdown()
