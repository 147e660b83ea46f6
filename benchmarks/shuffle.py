"""What a bound of the shuffle model costs, and how close it is.

``python -m benchmarks.shuffle`` computes the rigorous bounds and their lower bounds at several
numbers of people and prints the processor time of one value (in multiples of one real Fourier
transform of 2^20 numbers in the same run, and in seconds), how far a line of integration eight
times as fine would move it, how far it is from the lower bound, and the memory of it all. It ends
with exit code 1 unless every value takes at most 10 such transforms, moves by less than 1%, and the
process stays below 500 MB.
"""

from __future__ import annotations

import resource
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Final

import numpy as np

from benchmarks.clock import seconds
from sfumato import GRR, CoCo, Collision, Concord, ExSub
from sfumato.accounting.shuffle import amplify, delta_above, profile
from sfumato.accounting.shuffle.excess import excess
from sfumato.core.mechanism import Mechanism

__all__ = ["main"]

POINTS: Final = [
    (10**4, 1.0, 1e-6),
    (10**5, 2.0, 1e-6),
    (10**6, 1.0, 1e-8),
    (10**6, 4.0, 1e-6),
    (10**9, 1.0, 1e-8),
]
SLOWEST: Final = 10.0
MOVED: Final = 0.01
LARGEST: Final = 500e6


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.shuffle", description=__doc__)
    parser.add_argument("--points", type=int, default=len(POINTS), help="default: all")
    given = parser.parse_args(arguments)
    numbers = np.random.default_rng(1).random(1 << 20)
    unit = seconds(lambda: np.fft.rfft(numbers))
    print(f"One transform takes {1e3 * unit:.1f} ms.")
    print("mechanism      n  epsilon  bound             value  transforms  seconds  moved      gap")
    holds = True
    for n, epsilon, delta in POINTS[: given.points]:
        for mechanism in _mechanisms(epsilon):
            holds &= _row(mechanism, n, delta, unit)
    curve = seconds(lambda: _curve(GRR(1.0, 16)), runs=1)
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    holds &= peak <= LARGEST
    print(f"A curve of 50 points takes {curve:.2f} s; the process took {peak / 1e6:.0f} MB.")
    verdict = "hold" if holds else "DO NOT HOLD"
    print(f"Limits: {SLOWEST:g} transforms, {MOVED:.0%} moved, {LARGEST / 1e6:g} MB {verdict}.")
    return 0 if holds else 1


def _mechanisms(epsilon: float) -> list[Mechanism]:
    sparse = [kind(epsilon, 256, 8) for kind in (Collision, CoCo, ExSub, Concord)]
    return [GRR(epsilon, 16), *sparse]


def _row(mechanism: Mechanism, n: int, delta: float, unit: float) -> bool:
    """Print one line for each blanket bound of a mechanism; return whether the limits hold."""
    known = mechanism.contrasts()
    holds = True
    for index, found in enumerate(amplify(mechanism, n, delta, ["blanket"])):
        bounding = known[index].bounding
        took = seconds(
            lambda bounding=bounding: profile.epsilon_above(bounding, n, delta, mechanism.epsilon),  # type: ignore[misc]
            runs=3,
        )
        value, lower = found.epsilon or 0.0, found.lower or 0.0
        moved = _moved(mechanism, index, n, value)
        holds &= took <= SLOWEST * unit and abs(moved) <= MOVED
        print(
            f"{mechanism.name:<10}{n:>6.0e}{mechanism.epsilon:>9g}  {found.bound:<16}{value:>7.5f}"
            f"{took / unit:>12.2f}{took:>9.3f}{moved:>8.0e}{value / lower - 1:>9.3%}"
        )
    return holds


def _moved(mechanism: Mechanism, index: int, n: int, epsilon: float) -> float:
    """Return by which share of itself delta changes on a line eight times as fine."""
    bounding = mechanism.contrasts()[index].bounding
    usual = delta_above(bounding, n, epsilon)
    contrast = bounding[0]
    values = contrast.first - np.exp(epsilon) * contrast.second
    finer = excess(values, contrast.chances, n, smoothing=0.01 / 8).high / n
    return usual / finer - 1


def _curve(mechanism: Mechanism) -> None:
    bounding = mechanism.contrasts()[0].bounding
    for n in np.geomspace(100, 1e9, 50).astype(int).tolist():
        profile.epsilon_above(bounding, n, 1e-6, mechanism.epsilon)


if __name__ == "__main__":
    sys.exit(main())
