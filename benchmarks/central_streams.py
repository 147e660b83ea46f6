"""Errors of shuffled streams at equal central privacy: ``python -m benchmarks.central_streams``.

n times the squared error of the mean of a binary item, on average over all periods, for devices
that make all the changes they may. *000, as printed*: subsets of two symbols on the levels of its
hierarchy, one path of nodes, at the local epsilon that its own theorem allows (which is not proven,
and is stated up to log 3); *quiet* is the same if no device makes a change. *Corrected*: the same
hierarchy without its useless top level, with the best sizes and a proven bound, read along one path
and by least squares. *Ours*: what a task with this ``shuffle`` runs; *chaff*: what it runs with up
to four meaningless messages beside each device's own, for batches that a shuffler can mix.
"""

from __future__ import annotations

import json
import math
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from sfumato import catalog
from sfumato.accounting.shuffle import Requirement
from sfumato.accounting.shuffle.closed import online_printed
from sfumato.streams.amplification import shuffled
from sfumato.streams.kinds import Binary
from sfumato.streams.weave import Weave
from sfumato.streams.weave.strands import PrintedExSub
from sfumato.streams.weave.threads import Thread
from sfumato.wire.reports import MOST_REPORTS

__all__ = ["Row", "main", "rows"]

DELTA: Final = 1e-6
CHANGES: Final = 8
LIMIT: Final = 8.0
MESSAGES: Final = 4
MOST_MIXED: Final = MOST_REPORTS // 2
PEOPLE: Final = (10_000, 100_000, 1_000_000)
EPSILONS: Final = (0.25, 1.0)
PERIODS: Final = (32, 128)


@dataclass(frozen=True)
class Row:
    """The errors under one promise, and the local epsilons of our streams."""

    periods: int
    epsilon: float
    people: int
    printed: float
    printed_quiet: float
    path: float
    least_squares: float
    ours: float
    local_epsilon: float
    chaff: float
    dummies: float


def rows(
    periods: Sequence[int] = PERIODS,
    epsilons: Sequence[float] = EPSILONS,
    people: Sequence[int] = PEOPLE,
) -> Iterator[Row]:
    """Yield a row for each horizon, central epsilon and number of people."""
    for horizon in periods:
        for epsilon in epsilons:
            for n in people:
                required = Requirement(epsilon, DELTA, n)
                spans = [1 << level for level in range(horizon.bit_length() - 1)]
                even = (1 / len(spans),) * len(spans)
                design = (Binary(), horizon, CHANGES, LIMIT, tuple(spans), even, "exsub")
                levels = shuffled(Weave(*design, aligned=True), required)
                ours = Weave.chosen(_task(horizon, required))
                chaff, dummies = math.nan, math.nan
                if n <= MOST_MIXED:
                    more = {"chaff": {"messages": MESSAGES}}
                    chaffed = Weave.chosen(_task(horizon, required, **more))
                    chaff, dummies = chaffed.expected_variance(), getattr(chaffed, "dummies", 0.0)
                printed, quiet = _printed(horizon, required)
                yield Row(
                    horizon,
                    epsilon,
                    n,
                    printed,
                    quiet,
                    _along_a_path(levels),
                    levels.expected_variance(),
                    ours.expected_variance(),
                    ours.epsilon,
                    chaff,
                    dummies,
                )


def _task(periods: int, required: Requirement, **more: Any) -> dict[str, Any]:
    shuffle = {"epsilon": required.epsilon, "delta": DELTA, "min_batch": required.min_batch}
    task = {
        "title": "a binary item",
        "epsilon": LIMIT,
        "periods": periods,
        "period": "1 hour",
        "changes": CHANGES,
        "values": {"kind": "binary"},
        "shuffle": {"url": "http://shuffler.example", **shuffle},
        **more,
    }
    return dict(catalog.task(task).plain())


def _printed(periods: int, required: Requirement) -> tuple[float, float]:
    """Return the errors of the printed protocol at the epsilon of its own theorem.

    The first is for devices that make all their changes, the second for those that make none.
    """

    def central(epsilon: float) -> float:
        entries = periods + CHANGES
        return online_printed(epsilon, required.min_batch, DELTA, entries, CHANGES)

    low, high = 0.0, math.log(3)
    while high - low > 1e-6:
        middle = (low + high) / 2
        low, high = (middle, high) if central(middle) <= required.epsilon else (low, middle)
    stream = Weave.papers(Binary(), periods, CHANGES, low)
    moments, quiet = {}, {}
    for span in stream.spans:
        law = PrintedExSub(low, periods // span, CHANGES, subset_size=2).probabilities
        zero = 2 * law.p_false / law.contrast**2
        other = (law.p_true + law.p_reverse) / law.contrast**2
        density = min(CHANGES * span / periods, 1.0)
        moments[span], quiet[span] = zero + density * (other - zero), zero
    return _path(stream, moments), _path(stream, quiet)


def _along_a_path(stream: Weave) -> float:
    moments = {span: stream.strand(Thread(span, 0)).variance for span in stream.spans}
    return _path(stream, moments)


def _path(stream: Weave, moments: dict[int, float]) -> float:
    """Return the mean error of prefixes, each of which is a sum of the largest nodes it has."""
    shares = dict(zip(stream.spans, stream.shares, strict=True))
    total = 0.0
    for end in range(1, stream.periods + 1):
        rest = end
        for span in sorted(stream.spans, reverse=True):
            nodes, rest = divmod(rest, span)
            total += nodes * moments[span] / shares[span]
    return total / stream.periods


def main(words: Sequence[str] | None = None) -> int:
    """Print the table."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--periods", type=int, nargs="*", default=PERIODS)
    parser.add_argument("--epsilons", type=float, nargs="*", default=EPSILONS)
    parser.add_argument("--people", type=int, nargs="*", default=PEOPLE)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(words)
    if not asked.json:
        print(
            f"{'T':>4} {'epsilon':>8} {'people':>10} {'000':>9} {'quiet':>9} {'one path':>9} "
            f"{'fitted':>9} {'ours':>9} {'local':>6} {'chaff':>9} {'dummies':>8}"
        )
    for row in rows(asked.periods, asked.epsilons, asked.people):
        if asked.json:
            print(json.dumps(asdict(row)))
            continue
        kinds = (row.printed, row.printed_quiet, row.path, row.least_squares, row.ours)
        errors = " ".join(f"{each:9.4g}" for each in kinds)
        print(
            f"{row.periods:4} {row.epsilon:8g} {row.people:10,} {errors} {row.local_epsilon:6.3f} "
            f"{row.chaff:9.4g} {row.dummies:8.3f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
