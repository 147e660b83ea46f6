"""The distribution behind reports, with and without a matrix, to the same likelihood.

``python -m benchmarks.em`` fits 65,536 Square Wave reports into 1024 buckets twice in one process
and one thread: as sfumato does, and by expectation maximization on a dense numpy matrix of the
same law with the same stopping rule. It prints how much longer the matrix takes, and ends with
exit code 1 unless that is 20 times or more.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from time import process_time
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.clock import seconds
from sfumato import SquareWave, Tally, seeded
from sfumato.mechanisms.density.distribution import tolerance

__all__ = ["dense_fit", "dense_law", "main"]

Floats = NDArray[np.float64]

LIMIT: Final = 20.0


def dense_law(mechanism: SquareWave) -> Floats:
    """Return the probability of each place (rows) for people spread evenly over each bucket."""
    points = np.array(
        [mechanism.law(value).probabilities for value in mechanism.inputs()], dtype=np.float64
    )
    return np.ascontiguousarray((points[1:] + points[:-1]).T / 2)


def dense_fit(law: Floats, counts: Floats, within: float, *, smooth: bool) -> tuple[Floats, int]:
    """Return the shares and the number of steps: the textbook's way, two products a step."""
    size = law.shape[1]
    shares, before = np.full(size, 1 / size), -np.inf
    for step in range(10_000):
        chances = law @ shares
        likelihood = counts @ np.log(chances)
        if abs(likelihood - before) < within:
            return shares, step
        before = likelihood
        shares = shares * ((counts / chances) @ law) / counts.sum()
        if smooth:
            padded = np.pad(shares, 1)
            shares = (padded[:-2] + 2 * shares + padded[2:]) / 4
            shares[[0, -1]] *= 4 / 3  # one neighbour less
            shares = shares / shares.sum()
    return shares, 10_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.em", description=__doc__)
    parser.add_argument("--n", type=int, default=65_536, help="reports (default %(default)s)")
    parser.add_argument("--grid", type=int, default=1024, help="buckets (default %(default)s)")
    parser.add_argument("--epsilon", type=float, default=1.0, help="default %(default)s")
    given = parser.parse_args(arguments)
    mechanism = SquareWave(given.epsilon, 0.0, 1.0, grid=given.grid)
    values = seeded(1).simulator().beta(2, 5, size=given.n)
    tally = mechanism.tally(mechanism.randomize(values, seeded(2)))
    law = dense_law(mechanism)
    worst = np.inf
    print(
        f"n = {given.n:,}, {given.grid} buckets, {mechanism.size} places, epsilon {given.epsilon:g}"
    )
    for smooth in (True, False):
        ratio = _compare(mechanism, tally, law, smooth=smooth)
        worst = min(worst, ratio)
    print(f"Limit: {worst:.3g} {'>=' if worst >= LIMIT else '<'} {LIMIT:g}.")
    return 0 if worst >= LIMIT else 1


def _compare(mechanism: SquareWave, tally: Tally, law: Floats, *, smooth: bool) -> float:
    counts = tally.sums.astype(np.float64)
    within = tolerance(mechanism, smooth=smooth)
    ours = seconds(lambda: mechanism.distribution(tally, smooth=smooth), runs=3)
    found = mechanism.distribution(tally, smooth=smooth)
    start = process_time()
    shares, steps = dense_fit(law, counts, within, smooth=smooth)
    theirs = process_time() - start
    apart = abs(float(counts @ np.log(law @ shares)) - found.log_likelihood)
    at_most = np.abs(shares - found.shares).max()
    print(
        f"{'smooth' if smooth else 'plain':>6}: {ours:.3f} s in {found.iterations} steps; "
        f"dense {theirs:.3f} s in {steps} steps, {theirs / ours:.1f} times as long; "
        f"log-likelihoods differ by {apart:.1e}, shares by {at_most:.1e}"
    )
    return theirs / ours


if __name__ == "__main__":
    sys.exit(main())
