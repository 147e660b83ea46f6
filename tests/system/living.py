"""Some devices that live fast, in a process that may be killed at any moment.

Whatever is about to leave a device is first written to a file beside its journal: what a server
could have seen, whether or not it answered.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from sfumato.device import Delivery, Device, Http, Limits
from sfumato.wire.published import Published

__all__ = ["Overheard", "value"]

PAUSE = 0.02


def value(name: str, period: int) -> int:
    """Return what a device sees in a period, whoever asks and however often."""
    return period // 7 % 2 if name < "2" else 1


@dataclass(frozen=True)
class Overheard:
    """By HTTP, with a record of every batch that is about to leave."""

    record: int
    inner: Http

    def fetch(self, url: str) -> bytes:
        """Return a published task."""
        return self.inner.fetch(url)

    def send(self, url: str, batch: bytes) -> Delivery:
        """Write a batch down, then hand it over."""
        os.write(self.record, len(batch).to_bytes(4, "little") + batch)
        return self.inner.send(url, batch)


class Living:
    """One device and its own time, which goes on where its journal ends."""

    def __init__(self, path: Path, task: Published) -> None:
        record = os.open(path.with_suffix(".sent"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self.name = path.stem
        self.now = 0.0
        limits = Limits(1.0, unsealed=True)
        self.device = Device.open(path, limits, Overheard(record, Http(5.0)), lambda: self.now)
        self.device.join(task)
        self.start, self.seconds = task.spec["start"], task.spec["period_seconds"]

    @property
    def period(self) -> int:
        """The last period that is in the journal."""
        return int(self.device.journal.tasks()[0].state["period"])

    def step(self) -> None:
        """Live through one more period."""
        coming = self.period + 1
        self.now = self.start + (coming - 1) * self.seconds
        self.device.observe(value(self.name, coming))
        self.now += self.seconds
        if self.device.flush(force=True).problem:
            time.sleep(PAUSE)

    def rest(self) -> bool:
        """Send what waits; return whether nothing does any more."""
        self.now = self.start + self.period * self.seconds
        return not self.device.flush(force=True).waiting


def main(folder: str, last: str) -> None:
    """Live until killed; with ``last``, only send what waits."""
    task = Published.parse(Path(folder, "task.json").read_bytes())
    living = [Living(path, task) for path in sorted(Path(folder).glob("*.journal"))]
    if last == "rest":
        while sum(not each.rest() for each in living):
            time.sleep(PAUSE)
        return
    while True:
        for each in living:
            each.step()


if __name__ == "__main__":
    main(*sys.argv[1:])
