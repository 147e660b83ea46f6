"""The unit costs of this machine: ``./run bench --units``.

What one upload, one round and one more tally cost is measured on real processes, on loopback, with
uploads at random moments, so many a second. Reports are not sealed, of one task, and go to one
collector (``./run bench --capacity`` predicts other runs from that). What is done to many reports
at once is measured in this process.
"""

from __future__ import annotations

import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np
from scipy.optimize import nnls

from benchmarks import bulk, collector, shuffler
from benchmarks.processor_time import resident_bytes
from benchmarks.stations import (
    ONE_PLACE,
    SEVERAL_PLACES,
    URL,
    Run,
    Station,
    collectors,
    database,
    shuffling,
    singles,
)
from sfumato.planner import UnitCosts
from sfumato.planner.joining import Rounds

__all__ = ["measure"]

SLOW: Final = 100.0
MIDDLE: Final = 350.0
FAST: Final = 1200.0
"""The rates of uploads, per second, from which a round is told from what is in it."""
SECONDS: Final = 5.0
IDLE: Final = 4.0
WEEK: Final = 604_800
SPARK: Final = 3.0
"""How many times as much processor time Spark takes for counting, where it was measured."""

Notice = Callable[[str], None]


def measure(notice: Notice = lambda _: None, share: float = 1.0) -> UnitCosts:
    """Return the unit costs of this machine.

    Parameters
    ----------
    notice
        Called with what is being measured.
    share
        The share of the usual time that is taken; smaller ones are for tests.

    """
    costs: dict[str, float] = {"spark_factor": SPARK}
    notice("reports in bulk")
    with tempfile.TemporaryDirectory() as folder:
        costs |= bulk.reports(Path(folder), share)
        costs |= bulk.shuffled(Path(folder), share)
    notice("uploads to a collector")
    with collectors() as station:
        costs |= _with_file(station, share)
    notice("connections for workers")
    with collectors(workers=2) as station:
        run = _paced(station, ONE_PLACE, FAST / 2, share, kept=False)
        costs["handed_connection"] = run.spent["listener"] / run.uploads
    notice("uploads to a shuffler")
    with shuffling() as station:
        costs |= _shuffler(station, share, costs)
    notice("uploads to a collector with a database")
    with database() as server:
        with tempfile.TemporaryDirectory() as folder:
            costs |= bulk.database(Path(folder), server, share)
        server.empty()
        with collectors(1, server) as station:
            costs |= _with_database(station, share, costs)
    return UnitCosts(machine=machine(), measured=datetime.now(UTC).date().isoformat(), **costs)


def machine() -> str:
    """Return what this machine is, in a few words."""
    name = ""
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = (line.partition(":") for line in info.read_text().splitlines())
        name = next((text.strip() for key, _, text in lines if key.strip() == "model name"), "")
    cores = os.cpu_count() or 1
    shown = name or platform.machine()
    return f"{shown}, {cores} core{'s' * (cores != 1)}, Python {platform.python_version()}"


def _paced(
    station: Station, task: dict[str, Any], rate: float, share: float, *, kept: bool = True
) -> Run:
    """Send reports of a period that has begun, of a new task."""
    start = int(time.time()) - (collector.PERIOD - 1) * WEEK - 3600
    title = f"Units {time.monotonic_ns()}"
    running = station.published(
        task | {"title": title}, sealed=False, start=start, grace=collector.PERIOD * WEEK
    )
    uploads = singles(running, max(20, int(rate * SECONDS * share)), collector.PERIOD, 1)
    return station.run(running, uploads, rate, kept=kept)


def _idle(station: Station, role: str, share: float) -> float:
    """Return the share of a core that the processes of a role take while nobody sends."""
    before = station.spent()[role]
    time.sleep(IDLE * share)
    return (station.spent()[role] - before) / (IDLE * share) / len(station.processes[role])


def _with_file(station: Station, share: float) -> dict[str, float]:
    idle = _idle(station, "collectors", share)
    runs = [_paced(station, ONE_PLACE, rate, share) for rate in (SLOW, MIDDLE, FAST)]
    spent = [run.spent["collectors"] - idle * run.seconds for run in runs]
    request, fixed = _apart([(run.uploads, run.rounds) for run in runs], spent)
    gathered = [(run.uploads / run.rounds - 1) / run.rate for run in runs]
    new = _paced(station, ONE_PLACE, FAST / 2, share, kept=False)
    costly = (new.spent["collectors"] - idle * new.seconds - fixed * new.rounds) / new.uploads
    many = _paced(station, SEVERAL_PLACES, FAST / 3, share)
    rest = many.spent["collectors"] - idle * many.seconds - request * many.uploads
    return {
        "collector_idle": idle,
        "collector_bytes": float(resident_bytes(station.processes["collectors"][0])),
        "request_kept": request,
        "request_new": max(costly, request),
        "round_sqlite": fixed,
        "place_sqlite": max((rest / many.rounds - fixed) / _further(many), 0.0),
        "gather_wall": sum(gathered) / len(gathered),
    }


def _apart(counts: Sequence[tuple[float, float]], spent: Sequence[float]) -> tuple[float, float]:
    """Return what an upload and what a round take, from the numbers of both in some runs.

    All runs weigh alike, and nothing takes less than no time.
    """
    shares = np.array(counts) / np.maximum(spent, 1e-9)[:, None]
    (upload, round_), _ = nnls(shares, np.ones(len(shares)))
    return float(upload), float(round_)


def _further(run: Run) -> float:
    """Return how many tallies beyond the first a round adds to, on average, of four alike."""
    together = run.uploads / run.rounds
    return float(4 * (1 - 0.75**together) - 1)


def _with_database(station: Station, share: float, costs: dict[str, float]) -> dict[str, float]:
    idle, request = costs["collector_idle"], costs["request_kept"]
    runs = [_paced(station, ONE_PLACE, rate, share) for rate in (SLOW, FAST / 2)]
    rounds = sum(run.rounds for run in runs)
    spent = sum(
        run.spent["collectors"] - idle * run.seconds - request * run.uploads for run in runs
    )
    served = sum(run.spent["database"] for run in runs)
    many = _paced(station, SEVERAL_PLACES, FAST / 3, share)
    rest = many.spent["collectors"] - idle * many.seconds - request * many.uploads
    further = _further(many)
    return {
        "round_postgres": max(spent / rounds, 0.0),
        "database_round": served / rounds,
        "place_postgres": max((rest / many.rounds - spent / rounds) / further, 0.0),
        "database_place": max(
            (many.spent["database"] / many.rounds - served / rounds) / further, 0.0
        ),
    }


def _shuffler(station: Station, share: float, costs: dict[str, float]) -> dict[str, float]:
    idle = _idle(station, "shufflers", share)
    table = {"url": URL, "epsilon": 2.0, "delta": 1e-6, "min_batch": 100}
    task = ONE_PLACE | {"shuffle": table}
    runs = []
    for rate in (SLOW, MIDDLE, FAST / 2):
        running = station.published(
            task | {"title": f"Units {rate:g}"}, sealed=True, start=int(time.time()), grace=600
        )
        uploads = _any_content(running, max(20, int(rate * SECONDS * share)))
        runs.append(station.run(running, uploads, rate, kept=True))
    spent = [
        run.spent["shufflers"] - idle * run.seconds - costs["shuffler_report"] * run.uploads
        for run in runs
    ]
    # How many rounds it writes is for nobody to see.
    gathered, hold = costs["shuffler_gather_wall"], costs["hold_wall"]
    rounds = Rounds(0.0, 0.0, gathered + hold, 0.0, wall=hold)
    counts = [(run.uploads, run.uploads / rounds.size(run.rate)) for run in runs]
    request, fixed = _apart(counts, spent)
    return {
        "shuffler_idle": idle,
        "shuffler_bytes": float(resident_bytes(station.processes["shufflers"][0])),
        "shuffler_request": request,
        "shuffler_round": fixed,
    }


def _any_content(running: Any, count: int) -> list[bytes]:
    """Return uploads of one report each; what is sealed in them does not matter to a shuffler."""
    return shuffler.bodies(running, count)


def lines(units: UnitCosts) -> Iterator[str]:
    """Yield the unit costs in words."""
    for name, value in asdict(units).items():
        if not isinstance(value, float):
            yield f"{name:24} {value}"
        elif name.endswith(("_bytes", "_idle", "_factor")):
            yield f"{name:24} {value:15,.4g}"
        else:
            yield f"{name:24} {1e6 * value:15,.3f} us"
