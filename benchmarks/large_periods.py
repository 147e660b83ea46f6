"""Periods of very many reports: ``python -m benchmarks.large_periods``.

*Ids*: the memory of several workers, each with its share of the ids of an open period, as a
collector keeps them. *Ready*: the seconds from the start of a collector on a file whose open period
has very many reports until it has acknowledged another one. *Close*: the longest time for which a
report of another task waits while such a period closes in the same collector. *Export*: the
processor time and the memory of `sfumato export` for the same reports after their period has
closed, and of a tenth of them; DuckDB and Polars count what it wrote. *Delete*: the longest time
for which a report of another task waits while the task of such an open period is deleted.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final

import duckdb
import numpy as np
import polars as pl

from benchmarks import collector
from benchmarks.stations import ONE_PLACE
from sfumato import catalog
from sfumato.service.collector import Collector
from sfumato.service.running_task import RunningTask
from sfumato.store import Filled, SeenIds, SQLiteStore

__all__ = ["main", "measure"]

MOST_MEMORY: Final = 2.5e9
MOST_SECONDS: Final = 4.0
MOST_WAIT: Final = 1.0
MOST_EXPORT: Final = 0.5e-6
MOST_GROWTH: Final = 1.2
IDS: Final = 100_000_000
REPORTS: Final = 10_000_000
WORKERS: Final = 3
"""So many workers have room for as many ids, as they are."""
TOGETHER: Final = 65_536
PERIOD: Final = 1
WEEK: Final = 604_800
TASK: Final = ONE_PLACE | {"keep": "for ever"}


def measure(ids: int = IDS, reports: int = REPORTS) -> dict[str, float]:
    """Return seconds and bytes of all five."""
    found = {"ids_bytes": float(_workers_bytes(ids))}
    with tempfile.TemporaryDirectory() as name:
        few = _exported(Path(name) / "few.db", reports // 10)
        many = _exported(Path(name) / "many.db", reports)
    return found | {
        "ready_seconds": many["ready_seconds"],
        "close_seconds": many["close_seconds"],
        "wait_seconds": many["wait_seconds"],
        "delete_seconds": many["delete_seconds"],
        "delete_wait_seconds": many["delete_wait_seconds"],
        "export_seconds": many["seconds"] / many["reports"],
        "export_bytes": many["bytes"],
        "export_growth": many["bytes"] / few["bytes"],
        "reports": many["reports"],
    }


# ---- ids in memory -------------------------------------------------------------------------------


def _workers_bytes(ids: int) -> int:
    """Return the most memory that all workers have had together."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(WORKERS, maxtasksperchild=1) as pool:
        return sum(pool.map(_worker_bytes, [ids // WORKERS + 1] * WORKERS, chunksize=1))


def _worker_bytes(ids: int) -> int:
    """Return the most memory that a process has had that counts so many reports."""
    seen, rng, task = SeenIds(), np.random.default_rng(), bytes(32)
    for start in range(0, ids, TOGETHER):
        n = min(TOGETHER, ids - start)
        seen.refuse_full(task, n)
        words = seen.words(rng.bytes(16 * n))
        seen.add(task, PERIOD, words[seen.fresh(task, PERIOD, words)])
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


# ---- a file with many reports --------------------------------------------------------------------


def _exported(path: Path, reports: int) -> dict[str, float]:
    """Fill a file, start a collector on it, let the period close, and export it."""
    start = int(time.time()) - WEEK + 3600
    running = _filled(path, start, reports)
    ready = _ready(path, running)
    deleted = _deleted(Path(shutil.copyfile(path, path.with_suffix(".copy"))))
    store = SQLiteStore(path)
    served = Collector(store, clock=lambda: start + WEEK + 61.0)
    with _other_task(store, served) as waits:
        began = time.perf_counter()
        ((_, release),) = served.close_due(patience=1e9)
        closed = time.perf_counter() - began
    store.close()
    target = path.with_suffix(".parquet")
    seconds, most = _command("export", str(target), "--store", str(path))
    query = f"SELECT CAST(sum(n) AS BIGINT), sum(octet_length(contents)) FROM '{target}'"  # noqa: S608
    counted = duckdb.connect().execute(query).fetchall()
    size = running.layout.content_dtype.itemsize
    n = reports + 1
    if counted != [(n, n * size)] or release.n != n:
        raise RuntimeError(f"{release.n} reports count; DuckDB reads {counted}.")
    if pl.scan_parquet(target).select(pl.col("n").sum()).collect().item() != n:
        raise RuntimeError("Polars does not read all reports.")
    ready_and_closed = {"close_seconds": closed, "wait_seconds": max(waits), "ready_seconds": ready}
    return {"reports": n, "seconds": seconds, "bytes": most} | ready_and_closed | deleted


def _deleted(path: Path) -> dict[str, float]:
    """Delete the task of a file; return the seconds that it takes, and that others wait."""
    store = SQLiteStore(path)
    served = Collector(store)
    (running,) = served.running_tasks.values()
    with _other_task(store, served) as waits:
        began = time.perf_counter()
        served.delete(running)
        store.erase_left(running.task_id)
        deleted = time.perf_counter() - began
    store.close()
    return {"delete_seconds": deleted, "delete_wait_seconds": max(waits)}


@contextmanager
def _other_task(store: SQLiteStore, served: Collector) -> Iterator[list[float]]:
    """Count single reports of another task meanwhile; give the seconds that each has taken."""
    other = served.publish(catalog.task(TASK | {"title": "other"}), int(served.clock()), grace=60)
    content, over, waits = bytes(other.layout.content_dtype.itemsize), Event(), [0.0]

    def count() -> None:
        while not over.wait(0.01):
            began = time.perf_counter()
            report = Filled(other.task_id, 0, PERIOD, 1, os.urandom(16), content, {})
            store.commit([report])
            waits.append(time.perf_counter() - began)

    thread = Thread(target=count)
    thread.start()
    try:
        yield waits
    finally:
        over.set()
        thread.join()
        store.delete_task(other.task_id)
        store.erase_left(other.task_id)


def _filled(path: Path, start: int, reports: int) -> RunningTask:
    """Fill a file with reports of an open period; return its task."""
    store = SQLiteStore(path)
    served = Collector(store, clock=lambda: start + WEEK - 3600.0)
    running = served.publish(catalog.task(TASK), start, grace=60, sealed=False, public=True)
    for seed, first in enumerate(range(0, reports, TOGETHER)):
        (body,) = collector.batches(running, 1, min(TOGETHER, reports - first), seed, PERIOD)
        served.take(running, body)
    store.close()
    return running


def _ready(path: Path, running: RunningTask) -> float:
    """Return the seconds from the start of a collector until a report is acknowledged."""
    (body,) = collector.batches(running, 1, 1, 1 << 20, PERIOD)
    began = time.perf_counter()
    with collector.serving(path.parent, str(path)) as (url, process, _):
        collector.uploaded(url, process, running, [body])
        return time.perf_counter() - began


def _command(*words: str) -> tuple[float, int]:
    """Run a command; return its processor time and the most memory it has had."""
    measured = (
        "import resource, subprocess, sys\n"
        "subprocess.run([sys.executable, '-m', 'sfumato', *sys.argv[1:]], check=True,"
        " stdout=subprocess.DEVNULL)\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(used.ru_utime + used.ru_stime, 1024 * used.ru_maxrss)"
    )
    command = [sys.executable, "-c", measured, *words]
    said = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    seconds, most = said.stdout.split()
    return float(seconds), int(most)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.large_periods", description=__doc__)
    parser.add_argument("--ids", type=int, default=IDS, help="default %(default)s")
    parser.add_argument("--reports", type=int, default=REPORTS, help="default %(default)s")
    parser.add_argument("--json", action="store_true", help="print nothing but JSON")
    parser.add_argument("--check", action="store_true", help="exit with 1 unless the limits hold")
    given = parser.parse_args(arguments)
    found: dict[str, Any] = measure(given.ids, given.reports)
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        print(
            f"{given.ids:,} ids in {WORKERS} workers   {found['ids_bytes'] / 1e9:8.2f} GB "
            f"(at most {MOST_MEMORY / 1e9})\n"
            f"{found['reports']:,} reports: ready after {found['ready_seconds']:.2f} s, an upload "
            f"included (at most {MOST_SECONDS})\n"
            f"closed within {found['close_seconds']:.1f} s; a report of another task waits "
            f"{found['wait_seconds']:.2f} s at most (at most {MOST_WAIT})\n"
            f"deleted within {found['delete_seconds']:.1f} s; a report of another task waits "
            f"{found['delete_wait_seconds']:.2f} s at most (at most {MOST_WAIT})\n"
            f"export, of a processor  {1e6 * found['export_seconds']:8.2f} µs for a report "
            f"(at most {1e6 * MOST_EXPORT})\n"
            f"export, memory          {found['export_bytes'] / 1e6:8.0f} MB, "
            f"{found['export_growth']:.2f} times that for a tenth (at most {MOST_GROWTH})"
        )
    holds = found["ids_bytes"] <= MOST_MEMORY and found["ready_seconds"] < MOST_SECONDS
    holds = holds and found["export_seconds"] <= MOST_EXPORT
    holds = holds and max(found["wait_seconds"], found["delete_wait_seconds"]) <= MOST_WAIT
    return 1 if given.check and not (holds and found["export_growth"] <= MOST_GROWTH) else 0


if __name__ == "__main__":
    sys.exit(main())
