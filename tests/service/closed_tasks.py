"""Tasks all of whose periods have closed, with reports, for tests of what is read of them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from sfumato import catalog, seeded
from sfumato.service import Collector, RunningTask
from sfumato.store import Filled, SQLiteStore

__all__ = ["closed_task"]


def closed_task(path: Path, periods: int, items: int, devices: int = 20) -> str:
    """Publish a task in a store, with reports, and close all its periods; return its name.

    Anybody may read it. Its periods have a second each.
    """
    asked: dict[str, Any] = {
        "title": f"{periods} periods of {items} items",
        "epsilon": 2.0,
        "periods": periods,
        "period": "1 second",
        "changes": 2,
        "values": {"kind": "category", "items": items},
    }
    store = SQLiteStore(path)
    try:
        start = int(time.time()) - periods - 60
        now = [float(start)]
        collector = Collector(store, "http://127.0.0.1", lambda: now[0])
        running = collector.publish(catalog.task(asked), start, grace=1, sealed=False, public=True)
        for period, contents in _contents(running, devices).items():
            counts = running.judge.count(period, contents)
            n = len(contents) // running.layout.content_dtype.itemsize
            filled = Filled(running.task_id, 0, period, n, os.urandom(16 * n), contents, counts)
            store.commit([filled])
        now[0] += periods + 30
        while not running.is_over:
            collector.close_due()
        return running.name
    finally:
        store.close()


def _contents(running: RunningTask, devices: int) -> dict[int, bytes]:
    """Return the contents of what devices send that never change, by period."""
    rng = seeded(1)
    sent: dict[int, bytes] = {}
    for number in range(devices):
        device = running.protocol.device(rng)
        for _ in range(running.periods):
            message = device.observe(number % 3, rng)
            if message is not None:
                span, period, block = message.place
                content = running.layout.content(span, block, message.payload)
                sent[period] = sent.get(period, b"") + content
    return sent
