"""Endless streams: what a simulated period of a million devices takes, method by method.

``python -m benchmarks.windows`` drives methods through some periods of made-up people on a hundred
items and prints, for each, processor time per period in multiples of np.bincount over as many
symbols in the same run, what a thousand periods would take, and the peak of memory. It ends with
exit code 1 unless a thousand periods take less than 3 minutes and memory stays below 4 GB.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from time import process_time
from typing import Final

import numpy as np

from benchmarks.clock import seconds
from benchmarks.stream import peak
from sfumato.simulation import simulate
from sfumato.simulation.drifting import Drifting
from sfumato.streams.window import METHODS, Window

__all__ = ["main"]

PERIODS: Final = 1000
LONGEST: Final = 180.0
LARGEST: Final = 4e9


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.windows", description=__doc__)
    parser.add_argument("methods", nargs="*", metavar="METHOD", help="default: all")
    parser.add_argument("--devices", type=int, default=1_000_000, help="default %(default)s")
    parser.add_argument("--items", type=int, default=100, help="default %(default)s")
    parser.add_argument("--window", type=int, default=20, help="default %(default)s")
    parser.add_argument("--periods", type=int, default=60, help="default %(default)s")
    given = parser.parse_args(arguments)
    people = Drifting(given.items, given.devices, given.periods)
    symbols = people.values(1).astype(np.int64)
    counting = seconds(lambda: np.bincount(symbols, minlength=given.items))
    print(f"{'method':<14}{'x bincount':>12}{PERIODS:>8} periods{'memory':>12}")
    longest = 0.0
    for method in given.methods or METHODS:
        protocol = Window(given.window, 1.0, given.devices, domain=given.items, method=method)
        start = process_time()
        simulate(protocol, people, seed=1)
        each = (process_time() - start) / given.periods
        longest = max(longest, each * PERIODS)
        print(
            f"{method:<14}{each / counting:>12.0f}{each * PERIODS:>14.0f} s{peak() / 1e6:>9.0f} MB"
        )
    holds = longest < LONGEST and peak() < LARGEST
    print(f"Limits: {LONGEST:.0f} s and {LARGEST / 1e9:g} GB {'hold' if holds else 'DO NOT HOLD'}.")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
