"""What is done to many reports at once, measured in this process: parts of the unit costs."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks import collector, shuffler
from benchmarks.processor_time import processor_seconds
from benchmarks.stations import ONE_PLACE
from sfumato import OLH, catalog, seeded
from sfumato.service.collector import Collector
from sfumato.shuffler.holding import Holding
from sfumato.shuffler.mixing import Shuffler
from sfumato.shuffler.uploads import GATHER
from sfumato.store import SQLiteStore, Store
from sfumato.store.id_set import IdSet
from sfumato.store.merging import leading
from sfumato.store.postgres import PostgresStore

__all__ = ["database", "reports", "shuffled"]

SIZE: Final = 10_000
BATCHES: Final = 40
SCANS: Final = 20
WIDE: Final = 256
NARROW: Final = 16
WEEK: Final = 604_800
SLEEPY: Final = 1e-4
"""The seconds by which a sleep of some milliseconds is usually longer."""


def reports(folder: Path, share: float) -> dict[str, float]:
    """Return the costs of seals, of reports among many, of their ids, and of closing a period."""
    size = max(200, int(SIZE * share))
    narrow, few, closing, scan = _taken(SQLiteStore(folder / "narrow.db"), NARROW, size)
    wide, *_ = _taken(SQLiteStore(folder / "wide.db"), WIDE, size)
    entry = max((wide - narrow) / (WIDE - NARROW), 0.0)
    store = SQLiteStore(folder / "sealed.db")
    running = _published(Collector(store), NARROW, sealed=True)
    body = collector.batches(running, 1, max(100, int(4000 * share)), period=1)
    seal = collector.opening(running, body) / max(100, int(4000 * share))
    store.close()
    return {
        "seal": seal,
        "report": max(narrow - NARROW * entry, 0.0),
        "entry": entry,
        "hashed_entry": _hashed(size),
        "close": few,
        "close_report": closing,
        "scan_report": scan,
        "engine_report": max(_recounted(folder, size) - NARROW * entry, 0.0),
        "id_bytes": _id_bytes(),
    }


def database(folder: Path, server: Any, share: float) -> dict[str, float]:
    """Return the costs of a report among many in the processes of a database."""
    del folder
    size = max(200, int(SIZE * share))
    moments: list[float] = []
    _taken(
        PostgresStore(server.dsn),
        NARROW,
        size,
        lambda: moments.append(processor_seconds(server.pid)),
    )
    before, taken, scanned, closed = moments
    n = size * BATCHES
    return {
        "database_report": (taken - before) / n,
        "database_close_report": (closed - scanned) / n,
        "database_scan_report": (scanned - taken) / n / SCANS,
    }


def _published(collector_: Collector, items: int, *, sealed: bool = False, **more: Any) -> Any:
    task = ONE_PLACE | {"values": {"kind": "category", "items": items}, "title": f"{items} items"}
    return collector_.publish(catalog.task(task | more), 0, grace=60, sealed=sealed)


def _taken(
    store: Store, items: int, size: int, mark: Callable[[], None] = lambda: None
) -> tuple[float, float, float, float]:
    """Return the seconds of a report among many, of a close, of a report in it, and of a scan."""
    now = [WEEK + 1.0]
    served = Collector(store, clock=lambda: now[0])
    running = _published(served, items)
    bodies = collector.batches(running, BATCHES, size, period=1)
    few = collector.batches(running, 1, 100, seed=2, period=2)
    mark()
    began = time.process_time()
    for body in bodies:
        served.take(running, body)
    taken = time.process_time() - began
    mark()
    began = time.process_time()
    for _ in range(SCANS):
        _scanned(store, running)
    scan = (time.process_time() - began) / SCANS
    mark()
    closing = _closed(served, now, 1)
    mark()
    served.take(running, few[0])
    least = _closed(served, now, 2)
    store.close()
    n = BATCHES * size
    return taken / n, least, max(closing - least, 0.0) / n, scan / n


def _scanned(store: Store, running: Any) -> int:
    """Read all ids of a period, and find those in a range, as a close does with many."""
    low, high = np.uint64(1 << 62), np.uint64(1 << 63)
    found = 0
    for ids in store.ids(running.task_id, 1):
        words = leading(ids)
        found += len(words[(words >= low) & (words <= high)])
    return found


def _closed(served: Collector, now: list[float], period: int) -> float:
    now[0] = period * WEEK + 61.0
    began = time.process_time()
    released = served.close_due(patience=1e9)
    spent = time.process_time() - began
    if [release.period for _, release in released] != [period]:
        raise RuntimeError(f"period {period} did not close.")
    now[0] = (period + 1) * WEEK + 1.0
    return spent


def _recounted(folder: Path, size: int) -> float:
    """Return the seconds for reading a report of a log that is kept, and counting it."""
    now = [WEEK + 1.0]
    store = SQLiteStore(folder / "kept.db")
    served = Collector(store, clock=lambda: now[0])
    running = _published(served, NARROW, keep="for ever")
    for body in collector.batches(running, BATCHES, size, period=1):
        served.take(running, body)
    _closed(served, now, 1)
    began = time.process_time()
    counted = store.recount(running.task_id, running.judge.count)
    spent = time.process_time() - began
    store.close()
    if counted.total().n != BATCHES * size:
        raise RuntimeError(f"{counted.total().n} of {BATCHES * size} reports were counted.")
    return spent / (BATCHES * size)


def _hashed(size: int) -> float:
    mechanism = OLH(1.0, WIDE)
    sent = mechanism.randomize(np.arange(size) % WIDE, seeded(1))
    mechanism.tally(sent)
    began = time.process_time()
    mechanism.tally(sent)
    return (time.process_time() - began) / size / WIDE


def _id_bytes() -> float:
    """Return the memory of an id, where the set has just grown."""
    seen, rng, most = IdSet(), np.random.default_rng(1), 0.0
    for _ in range(40):
        seen.add(rng.integers(1, 1 << 64, 20_000, dtype=np.uint64))
        most = max(most, seen.nbytes / len(seen)) if len(seen) > 200_000 else most
    return most


def shuffled(folder: Path, share: float) -> dict[str, float]:
    """Return the costs of a report among many at a shuffler, of its id, and of one write."""
    now = [1e9]
    running = shuffler.published(folder, "http://here.example", 10**9)
    holding = Holding(folder / "held.db")
    mixing = Shuffler(holding, "http://here.example", "http://127.0.0.1:9", lambda: now[0])
    task = mixing.learn(running.published)
    count = max(400, int(20_000 * share))
    taken = [mixing.read(task, body) for body in shuffler.bodies(running, count)]
    walls = []
    for each in taken[:50]:
        began = time.perf_counter()
        mixing.hold([each])
        walls.append(time.perf_counter() - began)
    began = time.process_time()
    for start in range(50, count, 2000):
        mixing.hold(taken[start : start + 2000])
    now[0] += 2 * WEEK
    mixing.mix_due()
    for batch in holding.batches():
        np.frombuffer(batch.reports, dtype=task.layout.report_dtype)
        holding.handed_on(batch, shuffler.all_counted(batch.n))
    spent = time.process_time() - began
    holding.close()
    ids = {bytes(range(i % 200, i % 200 + 8)) + i.to_bytes(8, "big") for i in range(150_000)}
    return {
        "shuffler_report": spent / (count - 50),
        "hold_wall": float(np.median(walls)),
        "shuffler_gather_wall": GATHER + SLEEPY,
        "shuffler_id_bytes": sys.getsizeof(ids) / len(ids) + sys.getsizeof(bytes(16)),
    }
