"""Times of the device's and the server's half: the best of a few runs, per person.

Processor time, which for one process and one thread is the time that passes on a machine with
nothing else to do: a ratio of two such times hardly depends on who else is at work.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import process_time
from typing import Final, TypeVar

__all__ = ["Times", "best", "seconds"]

ENOUGH: Final = 20.0  # seconds after which something slow is not repeated

Reports = TypeVar("Reports")


@dataclass(frozen=True)
class Times:
    """Seconds per person."""

    client: float
    server: float
    end_to_end: float


def best(
    n: int, client: Callable[[], Reports], server: Callable[[Reports], object], runs: int = 3
) -> Times:
    """Return the best times of some runs, in each of which n people report and are counted."""
    times: list[Times] = []
    while len(times) < runs and sum(n * t.end_to_end for t in times) < ENOUGH:
        start = process_time()
        reports = client()
        middle = process_time()
        server(reports)
        end = process_time()
        del reports
        times.append(Times((middle - start) / n, (end - middle) / n, (end - start) / n))
    return Times(
        min(t.client for t in times),
        min(t.server for t in times),
        min(t.end_to_end for t in times),
    )


def seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Return the best time of some runs."""
    times = []
    for _ in range(runs):
        start = process_time()
        work()
        times.append(process_time() - start)
    return min(times)
