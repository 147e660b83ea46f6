"""Times of the device's and the server's half: the best of a few runs, per person."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Final, TypeVar

__all__ = ["Times", "best", "seconds"]

ENOUGH: Final = 20.0  # seconds of runs after which a slow one is not repeated

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
        start = perf_counter()
        reports = client()
        middle = perf_counter()
        server(reports)
        end = perf_counter()
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
        start = perf_counter()
        work()
        times.append(perf_counter() - start)
    return min(times)
