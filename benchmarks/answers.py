"""How long an analyst waits for an answer about a hundred million reports.

``python -m benchmarks.answers`` writes tallies of so many reports, of 64 items over 1,024 periods,
into a store of its own, opens a collector on it, and asks every question three times: when nothing
of the task has been read, as after a start; just after a period has closed and the collector has
prepared its answers; and again. ``--check`` ends with exit code 1 unless each answer takes at most
200 ms of processor time, or 20 times as much as it takes to read the tallies. Events, bands, other
levels and answers under a prior are held to it once they are prepared, and the others always; but a
filtered sum that ends earlier is read anew from the reports due by then, and is only shown.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Any, Final
from urllib.parse import parse_qsl

import numpy as np

from sfumato import catalog
from sfumato.core.stream import Timestep
from sfumato.core.tally import Place, Tallies, Tally
from sfumato.service import Collector, RunningTask, query_parameters
from sfumato.store import Release, SQLiteStore
from sfumato.store.records import Filled
from sfumato.streams.weave import Weave

__all__ = ["fill", "main"]

REPORTS: Final = 1e8
LIMIT: Final = 0.2
READINGS: Final = 20
START: Final = 1_000_000
ALWAYS, PREPARED, NEVER = "always", "once prepared", "never"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.answers", description=__doc__)
    parser.add_argument("--periods", type=int, default=1024, help="default %(default)s")
    parser.add_argument("--items", type=int, default=64, help="default %(default)s")
    parser.add_argument("--check", action="store_true", help="fail unless the limits hold")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteStore(Path(folder) / "collector.db")
        fill(store, given.periods, given.items)
        later = START + 3600.0 * (given.periods + 1)
        (running,) = Collector(store, "http://here", lambda: later).running_tasks.values()
        readings = [_seconds(lambda: store.tallies(running.task_id)) for _ in range(3)]
        most = max(LIMIT, READINGS * min(readings))
        print(
            f"The tallies are read in {min(readings):.3f} s of processor time; limit {most:.2f} s."
            f"\n\n{'at first':>9} {'prepared':>9} {'again':>9}  question"
        )
        asked = [*_questions(given.periods)]
        query_parameters.answer(running, {"query": "prefix", "last": "2"})  # what is loaded once
        over = [text for text, held in asked if not _measured(running, text, most, held)]
        store.close()
    print(f"\nLimits {'DO NOT HOLD: ' + '; '.join(over) if over else 'hold'}.")
    return 1 if over and given.check else 0


def _questions(periods: int) -> Iterator[tuple[str, str]]:
    """Yield each question, and when it is held to its limit."""
    middle = max(2, periods // 2)
    for query in (
        "query=curve&item=2",
        "query=curve",
        f"query=mean&period={periods}",
        f"query=range&first=2&last={periods}&average=true",
        f"query=range&first=2&last={middle}",
        f"query=prefix&last={periods}",
        f"query=difference&before=2&after={periods}",
        f"query=top&k=5&period={periods}",
        f"query=mean&period={periods}&decoder=smoothed",
        f"query=range&first=2&last={periods}&decoder=smoothed",
    ):
        yield query, ALWAYS
    for query in (
        "query=events&item=2&above=0.1",
        "query=curve&item=2&simultaneous=true",
        "query=curve&item=2&level=0.8",
        "query=curve&item=2&decoder=smoothed",
        f"query=mean&period={periods}&decoder=filtered",
        "query=curve&item=2&decoder=filtered",
        f"query=range&first=2&last={periods}&decoder=filtered",
        f"query=range&first=2&last={periods}&decoder=posterior",
        f"query=range&first=2&last={middle}&decoder=posterior",
        "query=curve&item=2&decoder=posterior",
    ):
        yield query, PREPARED
    yield f"query=range&first=2&last={middle}&decoder=filtered", NEVER


def _measured(running: RunningTask, text: str, most: float, held: str) -> bool:
    """Ask a question three times; print how long it took, and return whether limits hold."""
    question = dict(parse_qsl(text))
    for _ in range(2):
        running.prepare()  # what nobody has asked for since is forgotten
    first = _seconds(lambda: query_parameters.answer(running, question))
    running.prepare()
    later = [_seconds(lambda: query_parameters.answer(running, question)) for _ in range(2)]
    print(f"{first:9.3f} {later[0]:9.3f} {later[1]:9.3f}  {text}", flush=True)
    return held == NEVER or (max(later) < most and (first < most or held == PREPARED))


def _seconds(work: Any) -> float:
    start = process_time()
    work()
    return process_time() - start


def fill(store: SQLiteStore, periods: int, items: int) -> None:
    """Publish a task, and write what devices would have sent in all its periods."""
    values = {"kind": "category", "items": items}
    task = {"title": "Big", "epsilon": 1.0, "period": "1 hour", "changes": 8, "values": values}
    collector = Collector(store, "http://here", lambda: float(START))
    running = collector.publish(
        catalog.task(task | {"periods": periods}), START, grace=5, sealed=False, public=True
    )
    stream: Any = running.protocol
    tallies = _tallies(stream)
    store.commit(
        [Filled(running.task_id, 0, period, 0, b"", b"", own) for period, own in tallies.items()]
    )
    curator, n = stream.curator(), 0
    for period in range(1, periods + 1):
        step = Timestep(curator, period)
        estimate = step.answer(step.brought(Tallies(tallies.get(period))))
        assert estimate is not None  # noqa: S101 -- a horizon asks nothing
        n += sum(tally.n for tally in tallies.get(period, {}).values())
        variances = estimate.covariance.variances()
        known = np.where(np.isfinite(variances), estimate.values, np.nan)
        store.close_period(running.task_id, Release(period, n, known, variances))


def _tallies(stream: Weave) -> dict[int, dict[Place, Tally]]:
    """Return tallies of reports that are nothing but noise, by period."""
    rng = np.random.default_rng(1)
    edges = [(thread, end, p) for thread, p in stream.threads() for _, end in stream.edges(thread)]
    whole = sum(share for _, _, share in edges)
    tallies: dict[int, dict[Place, Tally]] = {}
    for thread, end, share in edges:
        n = max(1, int(REPORTS * share / whole))
        shape: tuple[int, ...] = (2, stream.values.width)
        if thread.is_snapshot:
            shape = stream.snapshots[thread.block].mechanism.tally_shape
        place = Place(thread.span, end, thread.block)
        tally = Tally(n, rng.integers(int(n * 0.4), int(n * 0.5) + 1, shape))
        own = tallies.setdefault(end, {})
        own[place] = own[place] + tally if place in own else tally
    return tallies


if __name__ == "__main__":
    sys.exit(main())
