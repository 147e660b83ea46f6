"""What it takes to decode a whole horizon, period by period, as each one closes.

``python -m benchmarks.decoding`` closes all periods of two horizons, 128 periods of 12 items and
1024 of 64, by the very curator of the service, and then reads their joint posterior. It prints the
processor seconds of each and ends with exit code 1 unless all are below their limits.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from time import process_time
from typing import Any, Final

import numpy as np

from sfumato.core.stream import replay
from sfumato.core.tally import Tallies, Tally
from sfumato.streams.kinds import Category
from sfumato.streams.weave import Weave

__all__ = ["main"]

REPORTS: Final = 1000
"""So many in each tally."""
HORIZONS: Final = {(128, 12): (0.2, 1.0), (1024, 64): (10.0, 20.0)}
"""Seconds that closing all periods and reading their posterior may take, by periods and items."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.decoding", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=3, help="default %(default)s; the best counts"
    )
    given = parser.parse_args(arguments)
    holds = True
    for (periods, items), limits in HORIZONS.items():
        protocol = Weave.best(Category(items), periods, 8, 1.0)
        tallies = _tallies(protocol)
        for name, measured, limit in zip(
            ("closed", "posterior"), (_closed, _read), limits, strict=True
        ):
            taken = min(measured(protocol, tallies) for _ in range(given.rounds))
            holds &= taken < limit
            print(f"{periods} periods of {items} items, {name}: {taken:.2f} s; limit {limit:g} s")
    print(f"Limits {'hold' if holds else 'DO NOT HOLD'}.")
    return 0 if holds else 1


def _closed(protocol: Weave, tallies: list[Tallies[Any]]) -> float:
    """Return the seconds that closing all periods takes, one after the other."""
    curator = protocol.curator()
    start = process_time()
    replay(curator, tallies)
    return process_time() - start


def _read(protocol: Weave, tallies: list[Tallies[Any]]) -> float:
    """Return the seconds that the joint posterior of all periods takes."""
    whole: Tallies[Any] = Tallies(
        {place: tally for some in tallies for place, tally in some.items()}
    )
    start = process_time()
    protocol.decoded(whole, protocol.periods).curves("posterior")
    return process_time() - start


def _tallies(protocol: Weave) -> list[Tallies[Any]]:
    """Return tallies of reports that are nothing but noise, one for each period."""
    rng = np.random.default_rng(1)
    found: list[dict[Any, Tally]] = [{} for _ in range(protocol.periods)]
    for thread, _ in protocol.threads():
        for _, end in protocol.edges(thread):
            if thread.is_snapshot:
                shape = protocol.snapshots[thread.block].mechanism.tally_shape
            else:
                shape = (2, protocol.values.width)
            sums = rng.integers(0, REPORTS // 2, shape)
            found[end - 1][thread.span, end, thread.block] = Tally(REPORTS, sums)
    return [Tallies(each) for each in found]


if __name__ == "__main__":
    sys.exit(main())
