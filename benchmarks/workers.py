"""What a second worker brings: ``python -m benchmarks.workers``.

The same number of recorded uploads of 1,000 sealed reports goes to a collector that is one process,
and to one of two workers, over connections that are kept. Their processor time per report, with
that of the process that listens, is compared; then how evenly the two share the work; and how fast
they are, in multiples of two processes that open as many seals and do nothing else. Each figure is
the median of some rounds, in which all take turns. Needs two cores that have nothing else to do.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from benchmarks import collector
from benchmarks.processor_time import children, processor_seconds
from benchmarks.stations import Station, collectors
from sfumato.service.running_task import RunningTask
from sfumato.wire.sealing import Context, new_key, seal
from sfumato.wire.unsealing import open_sealed

__all__ = ["main", "measure"]

MOST_COST: Final = 1.15
LEAST_SHARE: Final = 0.45
LEAST_RATE: Final = 0.85
WORKERS: Final = 2
BATCHES: Final = 48
FEW: Final = 500
"""The number of different seals that are opened again and again where nothing else is done."""


@dataclass(frozen=True)
class _Taken:
    """What a collector took for some uploads: seconds, processor time, and that by worker."""

    seconds: float
    spent: float
    shares: tuple[float, ...]


def measure(batches: int = BATCHES, size: int = collector.SIZE, rounds: int = 3) -> dict[str, Any]:
    """Return the costs of a report with one process and with two, and their ratios."""
    one, two, bare = [], [], []
    with collectors() as single, collectors(workers=WORKERS) as several:
        for seed in range(rounds):
            one.append(_taken(single, batches, size, seed))
            two.append(_taken(several, batches, size, seed))
            bare.append(_opened(_published(several, seed), batches * size))
    n = batches * size
    return {
        "reports": n,
        "one_microseconds": 1e6 * median(each.spent for each in one) / n,
        "two_microseconds": 1e6 * median(each.spent for each in two) / n,
        "cost": median(there.spent / here.spent for here, there in zip(one, two, strict=True)),
        "share": median(min(each.shares) / sum(each.shares) for each in two),
        "one_per_second": n / median(each.seconds for each in one),
        "two_per_second": n / median(each.seconds for each in two),
        "opened_per_second": n / median(bare),
        "rate": median(least / each.seconds for each, least in zip(two, bare, strict=True)),
    }


def _published(station: Station, seed: int) -> RunningTask:
    start = int(time.time()) - (collector.PERIOD - 1) * collector.WEEK - 3600
    task = collector.TASK | {"title": f"Round {seed}"}
    grace = collector.PERIOD * collector.WEEK
    return station.published(task, sealed=True, start=start, grace=grace)


def _taken(station: Station, batches: int, size: int, seed: int) -> _Taken:
    """Send recorded uploads to a collector."""
    running = _published(station, seed)
    bodies = collector.batches(running, batches, size, seed)
    (process,) = station.processes["collectors"]
    workers = children(process)
    before = [processor_seconds(each) for each in workers]
    wall, spent = collector.uploaded(station.urls[0], process, running, bodies)
    after = [processor_seconds(each) for each in workers]
    shares = tuple(late - early for early, late in zip(before, after, strict=True))
    return _Taken(wall, spent, shares)


def _opened(running: RunningTask, count: int) -> float:
    """Return the seconds in which two processes open as many seals and do nothing else."""
    context = multiprocessing.get_context("spawn")
    ready, moments = context.Barrier(WORKERS), context.SimpleQueue()
    given = running.published.context, running.layout.content_dtype.itemsize, count // WORKERS
    processes = [
        context.Process(target=_open, args=(ready, moments, *given)) for _ in range(WORKERS)
    ]
    for process in processes:
        process.start()
    pairs = [moments.get() for _ in processes]
    for process in processes:
        process.join()
    return float(max(ended for _, ended in pairs) - min(began for began, _ in pairs))


def _open(ready: Any, moments: Any, context: Context, size: int, count: int) -> None:
    """Open seals to a key of its own as soon as the other process is ready; say when, and until."""
    key = new_key()
    few = [
        seal(bytes(size), key.public_key(), context, bytes(16), collector.PERIOD)
        for _ in range(FEW)
    ]
    ready.wait()
    began = time.monotonic()
    for place in range(count):
        open_sealed(few[place % FEW], key, context, bytes(16), collector.PERIOD)
    moments.put((began, time.monotonic()))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.workers", description=__doc__)
    parser.add_argument("--batches", type=int, default=BATCHES, help="default %(default)s")
    help_ = "reports of a batch; %(default)s"
    parser.add_argument("--size", type=int, default=collector.SIZE, help=help_)
    parser.add_argument("--rounds", type=int, default=3, help="default %(default)s")
    parser.add_argument("--json", action="store_true", help="print nothing but JSON")
    parser.add_argument("--check", action="store_true", help="exit with 1 unless the limits hold")
    given = parser.parse_args(arguments)
    found = measure(given.batches, given.size, given.rounds)
    if given.json:
        print(json.dumps(found, indent=2))
    else:
        print(
            f"one process        {found['one_microseconds']:8.1f} µs of a processor for a report\n"
            f"two workers        {found['two_microseconds']:8.1f} µs\n"
            f"  ratio            {found['cost']:8.2f} (at most {MOST_COST})\n"
            f"smaller share      {found['share']:8.2f} of the work (at least {LEAST_SHARE})\n"
            f"one process        {found['one_per_second']:8,.0f} reports/s\n"
            f"two workers        {found['two_per_second']:8,.0f} reports/s\n"
            f"two that only open {found['opened_per_second']:8,.0f} seals/s\n"
            f"  ratio            {found['rate']:8.2f} (at least {LEAST_RATE})"
        )
    holds = found["cost"] <= MOST_COST and found["share"] >= LEAST_SHARE
    holds = holds and found["rate"] >= LEAST_RATE
    return 1 if given.check and not holds else 0


if __name__ == "__main__":
    sys.exit(main())
