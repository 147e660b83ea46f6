"""A collector in the same process: it opens what devices send and remembers all of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sfumato import catalog
from sfumato.catalog import parse
from sfumato.device import Delivery
from sfumato.device.transport import Unreachable
from sfumato.streams.registry import spec_of, stream_of
from sfumato.wire.published import Published
from sfumato.wire.reports import Batch, Layout
from sfumato.wire.sealing import OVERHEAD, new_key
from sfumato.wire.unsealing import open_sealed

HOUR = 3600


def published(
    values: str = '{kind = "category", items = ["a", "b", "c"]}',
    epsilon: float = 1.0,
    periods: int = 8,
    title: str = "t",
    mix: str = "",
) -> tuple[Published, Any]:
    """Return a task that begins at time 0 with periods of an hour, and its private key."""
    task = parse(
        f'title = "{title}"\nepsilon = {epsilon}\nperiods = {periods}\nperiod = "1 hour"\n'
        f"changes = 4\nvalues = {values}\n{mix}"
    )
    key = new_key()
    spec = spec_of(task, catalog.stream(task), start=0)
    return Published(spec, {1: key.public_key().public_bytes_raw()}, "http://collector"), key


@dataclass
class Collector:
    """What a device talks to."""

    task: Published
    key: Any
    reachable: bool = True
    refuse: dict[int, str] = field(default_factory=dict)
    seen: list[tuple[int, bytes, bytes]] = field(default_factory=list)
    lost: int = 0

    def fetch(self, url: str) -> bytes:
        """Hand out the task."""
        if not self.reachable:
            raise Unreachable("nobody is there")
        assert url.startswith("http")
        return self.task.encode()

    def send(self, url: str, batch: bytes) -> Delivery:
        """Open and remember every report: period, id, content."""
        assert url == self.task.endpoint
        if not self.reachable:
            raise Unreachable("nobody is there")
        protocol = stream_of(self.task.spec)
        reports = Batch.decode(batch, Layout(protocol.payload, OVERHEAD)).reports
        refused = {}
        for place, report in enumerate(reports):
            name, period = report["id"].tobytes(), int(report["period"])
            if period in self.refuse:
                refused[place] = self.refuse[period]
                continue
            content = open_sealed(
                report["sealed"].tobytes(), self.key, self.task.context, name, period
            )
            self.seen.append((period, name, content))
        if self.lost:  # the answer does not get back
            self.lost -= 1
            raise Unreachable("the line went dead")
        return Delivery(refused)
