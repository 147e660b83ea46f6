"""What PostgreSQL costs beyond a file: ``python -m benchmarks.stores``.

The same batches of unsealed reports go through a collector into a file and into a database, until
their period has closed: decoded, judged, counted and committed, a batch to a transaction; then the
ids are merged, copies are dropped, and what is not kept is erased. One report in 64 is a copy that
came before a restart, so that only the close can find it. The processor time of the collector and
of all processes of the database counts. *Log* is what the database writes ahead, over the bytes of
ids and contents. Each figure is the median of some rounds.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, Final

import psycopg

from benchmarks import collector
from benchmarks.postgres_server import PostgresServer
from benchmarks.processor_time import processor_seconds
from benchmarks.stations import ONE_PLACE
from sfumato import catalog
from sfumato.service.collector import Collector
from sfumato.store import SQLiteStore, Store
from sfumato.store.postgres import PostgresStore
from sfumato.wire.reports import Batch

__all__ = ["main", "measure"]

MOST_COST: Final = 1.5
MOST_LOG: Final = 2.0
SIZE: Final = 16_000
BATCHES: Final = 64
WEEK: Final = 604_800


@dataclass(frozen=True)
class _Taken:
    """What some reports have taken.

    Parameters
    ----------
    committed
        The seconds of processor time until all were committed.
    closed
        The seconds of processor time until their period had closed.
    log
        The bytes that were written ahead.
    bytes
        The bytes of ids and contents.

    """

    committed: float
    closed: float
    log: int
    bytes: int


def measure(batches: int = BATCHES, size: int = SIZE, rounds: int = 3) -> dict[str, Any]:
    """Return the costs of a report in both stores, and their ratios."""
    file, database = [], []
    with tempfile.TemporaryDirectory() as name, PostgresServer() as server:
        for place in range(rounds):
            path = Path(name) / f"{place}.db"
            file.append(_taken(partial(SQLiteStore, path), batches, size))
            server.empty()
            database.append(_taken(partial(PostgresStore, server.dsn), batches, size, server))
    n = batches * size
    return {
        "reports": n,
        "size": size,
        **_costs(
            "committed", [each.committed for each in file], [each.committed for each in database], n
        ),
        **_costs("closed", [each.closed for each in file], [each.closed for each in database], n),
        "log_bytes": median(each.log for each in database) / n,
        "report_bytes": database[0].bytes / n,
        "log": median(each.log / each.bytes for each in database),
    }


def _costs(until: str, file: list[float], database: list[float], n: int) -> dict[str, float]:
    """Return what a report has taken until some moment: both costs, and their ratio."""
    return {
        f"file_{until}_microseconds": 1e6 * median(file) / n,
        f"database_{until}_microseconds": 1e6 * median(database) / n,
        until: median(there / here for here, there in zip(file, database, strict=True)),
    }


def _taken(
    opened: Callable[[], Store], batches: int, size: int, server: PostgresServer | None = None
) -> _Taken:
    """Take reports of a period, of which the last batch is a copy of parts of all others."""
    now = [WEEK + 1.0]
    store = opened()
    served = Collector(store, clock=lambda: now[0])
    running = served.publish(catalog.task(ONE_PLACE), 0, grace=60, sealed=False)
    bodies = collector.batches(running, batches - 1, size, period=1)
    copies = _copies(bodies, size, running.layout.report_dtype.itemsize)
    log, began = _log(server), _spent(server)
    for body in bodies:
        served.take(running, body)
    spent = _spent(server) - began
    store.close()
    store = opened()
    served = Collector(store, clock=lambda: now[0])
    running = served.running_tasks[running.task_id]
    began = _spent(server)
    accepted = served.take(running, copies).accepted
    if accepted != size:
        raise RuntimeError(f"{accepted} of {size} copies were taken as new after a restart.")
    committed = spent + _spent(server) - began
    now[0] += 60.0
    [(_, release)] = served.close_due(patience=1e9)
    closed = spent + _spent(server) - began
    written = _log(server) - log
    if running.participation()[1] != (batches - 1) * size:
        raise RuntimeError(f"{release.n} reports count; each should have counted once.")
    store.close()
    each = 16 + running.layout.content_dtype.itemsize
    return _Taken(committed, closed, written, batches * size * each)


def _copies(bodies: Sequence[bytes], size: int, each: int) -> bytes:
    """Return a batch of reports that others have as well: the first ones of each."""
    head, share = len(bodies[0]) - size * each, size // len(bodies) + 1
    reports = b"".join(body[head : head + share * each] for body in bodies)
    if Batch.head(bodies[0])[2] != size:
        raise RuntimeError("A batch has another number of reports than was asked for.")
    return bodies[0][:head] + reports[: size * each]


def _spent(server: PostgresServer | None) -> float:
    return time.process_time() + (processor_seconds(server.pid) if server else 0.0)


def _log(server: PostgresServer | None) -> int:
    """Return how many bytes a database has written ahead."""
    if server is None:
        return 0
    with psycopg.connect(server.dsn) as connection:
        query = "SELECT CAST(pg_current_wal_lsn() - '0/0' AS BIGINT)"
        ((written,),) = connection.execute(query).fetchall()
    return int(written)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.stores", description=__doc__)
    parser.add_argument("--batches", type=int, default=BATCHES, help="default %(default)s")
    parser.add_argument("--size", type=int, default=SIZE, help="reports of a batch; %(default)s")
    parser.add_argument("--rounds", type=int, default=3, help="default %(default)s")
    parser.add_argument("--json", action="store_true", help="print nothing but JSON")
    parser.add_argument("--check", action="store_true", help="exit with 1 unless the limits hold")
    given = parser.parse_args(arguments)
    found = measure(given.batches, given.size, given.rounds)
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        print(
            f"{found['reports']:,} reports in batches of {found['size']:,}, in µs of a processor\n"
            f"{'':24} {'file':>8} {'database':>9} {'ratio':>6}\n"
            f"{'until committed':24} {found['file_committed_microseconds']:8.2f} "
            f"{found['database_committed_microseconds']:9.2f} {found['committed']:6.2f}\n"
            f"{'until the period closed':24} {found['file_closed_microseconds']:8.2f} "
            f"{found['database_closed_microseconds']:9.2f} {found['closed']:6.2f} "
            f"(at most {MOST_COST})\n"
            f"log: {found['log_bytes']:.1f} bytes of a report with {found['report_bytes']:.0f} "
            f"bytes of id and content: {found['log']:.2f} (at most {MOST_LOG})"
        )
    holds = max(found["committed"], found["closed"]) <= MOST_COST and found["log"] <= MOST_LOG
    return 1 if given.check and not holds else 0


if __name__ == "__main__":
    sys.exit(main())
