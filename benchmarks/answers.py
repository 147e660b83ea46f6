"""How long an analyst waits for an answer about a hundred million reports.

``python -m benchmarks.answers`` writes tallies of so many reports, of 64 items over 1,024 periods,
into a store of its own, opens a collector on it, and asks every question twice: just after a period
has closed, and again. It ends with exit code 1 unless each usual question that is asked again takes
at most 200 ms of processor time, or 20 times as much as it takes to read the tallies. Events, bands
and curves of another level need the errors of all periods together and take longer: they are shown,
and nothing is claimed of them.
"""

from __future__ import annotations

import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any, Final

import numpy as np

from sfumato import catalog
from sfumato.core.stream import Timestep
from sfumato.core.tally import Place, Tallies, Tally
from sfumato.service import Collector, RunningTask, query_parameters
from sfumato.store import Release, SQLiteStore
from sfumato.store.interface import Filled
from sfumato.streams.weave import Weave

__all__ = ["main"]

REPORTS: Final = 1e8
LIMIT: Final = 0.2
READINGS: Final = 20
START: Final = 1_000_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.answers", description=__doc__)
    parser.add_argument("--periods", type=int, default=1024, help="default %(default)s")
    parser.add_argument("--items", type=int, default=64, help="default %(default)s")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteStore(Path(folder) / "collector.db")
        _fill(store, given.periods, given.items)
        later = START + 3600.0 * (given.periods + 1)
        (running,) = Collector(store, "http://here", lambda: later).running_tasks.values()
        readings = [_seconds(lambda: store.tallies(running.task_id)) for _ in range(3)]
        most = max(LIMIT, READINGS * min(readings))
        print(
            f"The tallies are read in {min(readings):.3f} s of processor time; limit {most:.2f} s."
        )
        holds = True
        for question in _questions(given.periods):
            first, again = (_seconds(lambda: _ask(running, question)) for _ in range(2))  # noqa: B023
            holds &= again < most or not _is_usual(question)
            asked = " ".join(f"{name}={value}" for name, value in question.items())
            print(f"{asked}: {first:.3f} s, again {again:.3f} s")
        store.close()
    print(f"Limits {'hold' if holds else 'DO NOT HOLD'}.")
    return 0 if holds else 1


def _questions(periods: int) -> list[dict[str, str]]:
    last = str(periods)
    return [
        {"query": "curve", "item": "3"},
        {"query": "curve"},
        {"query": "mean", "period": last},
        {"query": "range", "first": "2", "last": last, "average": "true"},
        {"query": "prefix", "last": last},
        {"query": "difference", "before": "2", "after": last},
        {"query": "top", "k": "5", "period": last},
        {"query": "mean", "period": last, "decoder": "smoothed"},
        {"query": "events", "item": "3", "above": "0.1"},
        {"query": "curve", "item": "3", "simultaneous": "true"},
        {"query": "curve", "item": "3", "level": "0.8"},
    ]


def _is_usual(question: Mapping[str, str]) -> bool:
    """Return whether an answer needs no errors of all periods together."""
    return question["query"] != "events" and not {"simultaneous", "level"} & set(question)


def _ask(running: RunningTask, question: Mapping[str, str]) -> Any:
    return query_parameters.answer(running, question)


def _seconds(work: Any) -> float:
    start = process_time()
    work()
    return process_time() - start


def _fill(store: SQLiteStore, periods: int, items: int) -> None:
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
