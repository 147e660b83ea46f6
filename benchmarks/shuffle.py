"""What a bound of the shuffle model costs, and how close it is.

``python -m benchmarks.shuffle`` computes the rigorous bounds and their lower bounds at several
numbers of people, from nothing but the mechanism's parameters, and prints the processor time of
both (in multiples of one real Fourier transform of 2^20 numbers in the same run, and in seconds),
how far eight times as many nodes and slices would move the value, how far it is from the lower
bound, and the memory of it all. It ends with exit code 1 unless every value takes at most 100 such
transforms (some 1.5 seconds), moves by less than 1%, is within 2% of the lower bound (hashes: for
every hash), and the process stays below 500 MB.
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
from sfumato.accounting.shuffle import Amplified, amplify, best, delta_above
from sfumato.accounting.shuffle.covered import covered_epsilon
from sfumato.accounting.shuffle.excess import excess
from sfumato.core.contrast import Contrasts
from sfumato.core.mechanism import Mechanism

__all__ = ["main"]

POINTS: Final = [
    (10**4, 1.0, 1e-6),
    (10**5, 2.0, 1e-6),
    (10**6, 1.0, 1e-8),
    (10**6, 4.0, 1e-6),
    (10**9, 1.0, 1e-8),
]
SLOWEST: Final = 100.0
MOVED: Final = 0.01
APART: Final = 0.02
MANY: Final = 10**9
LARGEST: Final = 500e6


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, and return the exit code."""
    parser = ArgumentParser(prog="python -m benchmarks.shuffle", description=__doc__)
    parser.add_argument("--points", type=int, default=len(POINTS), help="default: all")
    parser.add_argument("--curve", type=int, default=50, help="points of a curve; default: 50")
    given = parser.parse_args(arguments)
    numbers = np.random.default_rng(1).random(1 << 20)
    unit = seconds(lambda: np.fft.rfft(numbers))
    print(f"One transform takes {1e3 * unit:.1f} ms.")
    print("mechanism      n  epsilon  bound             value  transforms  seconds  moved      gap")
    holds = True
    for n, epsilon, delta in POINTS[: given.points]:
        for mechanism in _mechanisms(epsilon):
            holds &= _row(mechanism, n, delta, unit)
    curve = seconds(lambda: _curve(Concord(1.0, 256, 8), given.curve), runs=1)
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    holds &= peak <= LARGEST
    print(
        f"A curve of {given.curve} points takes {curve:.2f} s; "
        f"the process took {peak / 1e6:.0f} MB."
    )
    verdict = "hold" if holds else "DO NOT HOLD"
    print(
        f"Limits: {SLOWEST:g} transforms, {MOVED:.0%} moved, {APART:.0%} apart, "
        f"{LARGEST / 1e6:g} MB {verdict}."
    )
    return 0 if holds else 1


def _mechanisms(epsilon: float) -> list[Mechanism]:
    sparse = [kind(epsilon, 256, 8) for kind in (Collision, CoCo, ExSub, Concord)]
    return [GRR(epsilon, 16), *sparse]


def _row(mechanism: Mechanism, n: int, delta: float, unit: float) -> bool:
    """Print one line for each bound by a mechanism's own law; return whether the limits hold."""
    found: list[Amplified] = []

    def value() -> None:
        found[:] = amplify(mechanism, n, delta, ["blanket", "covered_blanket"])

    took = seconds(value, runs=1)
    known = {f"{each.name}_blanket".lstrip("_"): each for each in mechanism.contrasts()}
    usable = [one for one in found if one.epsilon is not None]
    least = min(one.epsilon or 0.0 for one in usable if not one.assumes)
    holds = took <= SLOWEST * unit
    for one in usable:
        value_, lower = one.epsilon or 0.0, one.lower or 0.0
        moved = _moved(known.get(one.bound), mechanism, one)
        holds &= abs(moved) <= MOVED
        apart = value_ / lower - 1
        holds &= apart <= APART or bool(one.assumes) or value_ > least
        print(
            f"{mechanism.name:<10}{n:>6.0e}{mechanism.epsilon:>9g}  {one.bound:<16}{value_:>7.5f}"
            f"{took / unit:>12.2f}{took:>9.3f}{moved:>8.0e}{apart:>9.3%}"
        )
    return holds


def _moved(contrasts: Contrasts | None, mechanism: Mechanism, found: Amplified) -> float:
    """Return by which share of itself epsilon (or delta) changes with eight times the nodes."""
    epsilon = found.epsilon or 0.0
    if contrasts is None:
        cover = mechanism.contrasts()[0].cover
        if cover is None or found.n < MANY:
            return 0.0
        finer = covered_epsilon(cover, found.n, found.delta, mechanism.epsilon, fineness=8)
        return epsilon / finer - 1
    usual = delta_above(contrasts.bounding, found.n, epsilon)
    contrast = contrasts.bounding[0]
    values = contrast.first - np.exp(epsilon) * contrast.second
    exact = excess(values, contrast.chances, found.n, smoothing=0.01 / 8).high / found.n
    return usual / exact - 1


def _curve(mechanism: Mechanism, points: int) -> None:
    for n in np.geomspace(100, 1e9, points).astype(int).tolist():
        best(mechanism, n, 1e-6)


if __name__ == "__main__":
    sys.exit(main())
