"""Bounds in closed form from the literature: looser than the exact expectation, but fast.

Hoeffding's and Bennett's are for the privacy blanket: a share gamma of each report does not depend
on what the person holds. With L = gamma G on that share (mean 1 - e^c = -a) and M ~ Binomial(n,
gamma) such reports, delta(c) <= E[(L_1 + ... + L_M)_+]/(gamma n). For a fixed M the mean is an
integral of the tail, which Hoeffding's or Bennett's inequality bounds; the mean over M is exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from sfumato.core.contrast import Contrast

__all__ = [
    "bennett",
    "blanket_general",
    "clones_beyond_tail",
    "clones_closed",
    "clones_tail",
    "erlingsson",
    "hoeffding",
    "online_clones",
    "online_printed",
    "stronger_clones_closed",
]

_SLACK: Final = 1 + 1e-9  # far above the rounding errors of a dozen operations


def hoeffding(contrasts: Sequence[Contrast], n: int, delta: float, most: float) -> float:
    """Return the epsilon that Hoeffding's inequality gives, at most ``most``."""
    return _least(lambda epsilon: max(_hoeffding(c, n, epsilon) for c in contrasts), delta, most)


def bennett(contrasts: Sequence[Contrast], n: int, delta: float, most: float) -> float:
    """Return the epsilon that Bennett's inequality gives, at most ``most``."""
    return _least(lambda epsilon: max(_bennett(c, n, epsilon) for c in contrasts), delta, most)


def blanket_general(local: float, n: int, delta: float) -> float:
    """Return the epsilon that Hoeffding's inequality gives for every mechanism of a local epsilon.

    A share e^-local of each report does not depend on what the person holds, and L ranges over
    (e^c + 1)(e^local - e^-local) at most: the parameters of every mechanism, taken for this one.
    """
    gamma, reach = math.exp(-local), math.exp(local) - math.exp(-local)
    return _least(lambda c: _by_range(gamma, (math.exp(c) + 1) * reach, n, c), delta, local)


def _hoeffding(contrast: Contrast, n: int, epsilon: float) -> float:
    gamma = float(contrast.chances.sum()) * (1 - contrast.error)
    values = contrast.first - math.exp(epsilon) * contrast.second
    return _by_range(gamma, gamma * float(values.max() - values.min()), n, epsilon)


def _by_range(gamma: float, width: float, n: int, epsilon: float) -> float:
    """Return delta by Hoeffding's inequality, for a range of L and a share that everybody sends."""
    width *= _SLACK
    a = math.expm1(epsilon)
    hidden = math.log1p(gamma * math.expm1(-2 * (a / width) ** 2))
    return width * width / (4 * a * gamma * n) * math.exp(n * hidden) * _SLACK


def _bennett(contrast: Contrast, n: int, epsilon: float) -> float:
    gamma = float(contrast.chances.sum()) * (1 - contrast.error)
    values = contrast.first - math.exp(epsilon) * contrast.second
    a = math.expm1(epsilon)
    largest = (gamma * float(values.max()) + a) * _SLACK
    spread = (gamma * float(contrast.chances @ (values * values)) - a * a) * _SLACK
    if largest <= 0 or spread <= 0:
        return 0.0
    u = a * largest / spread
    tail = (1 + u) * math.log1p(u) - u
    hidden = math.log1p(gamma * math.expm1(-spread / largest**2 * tail))
    return largest / (gamma * n * math.log1p(u)) * math.exp(n * hidden) * _SLACK


def _least(delta_at: Callable[[float], float], delta: float, most: float) -> float:
    """Return the smallest epsilon up to ``most`` at which delta holds, by bisection."""
    low, high = 0.0, most
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if middle > 0 and delta_at(middle) <= delta else (middle, high)
    return high


def erlingsson(epsilon: float, n: int, delta: float) -> float:
    """Return 12 epsilon sqrt(log(1/delta)/n)."""
    return 12 * epsilon * math.sqrt(math.log(1 / delta) / n)


def clones_closed(epsilon: float, n: int, delta: float) -> float:
    """Return epsilon by the closed form of "Hiding Among the Clones"."""
    e = math.exp(epsilon)
    few = 8 * math.sqrt(e * math.log(4 / delta) / n) + 8 * e / n
    return math.log1p((e - 1) / (e + 1) * few)


def stronger_clones_closed(epsilon: float, n: int, delta: float) -> float:
    """Return epsilon by the closed form of "Stronger Privacy Amplification by Shuffling"."""
    e = math.exp(epsilon)
    few = 4 * math.sqrt(2 * math.log(4 / delta) / ((e + 1) * n)) + 4 / n
    return math.log1p((e - 1) * few)


def online_clones(epsilon: float, n: int, delta: float, dimension: int, sparsity: int) -> float:
    """Return how many clones online shuffling is printed to have, but for half of delta."""
    e, d, s = math.exp(epsilon), dimension, sparsity
    # All 4 C(d, 2) subsets weigh 1 or e^-epsilon; ``missed`` of them hit no symbol of the input.
    missed = math.comb(d - s, 2) * 4 + (d - s) * s * 2 + math.comb(s, 2)
    norm = 2 * d * (d - 1) - (1 - 1 / e) * missed
    pair = (s + (2 * d - s - e - 2) * (1 / e - 1 / e**2)) / norm
    together = n * d * (d - 1) / (2 * e) * pair**2
    return clones_beyond_tail(epsilon, n, delta) + together


def online_printed(epsilon: float, n: int, delta: float, dimension: int, sparsity: int) -> float:
    """Return epsilon by the printed closed form of online shuffling, for subsets of two symbols."""
    return _with_clones(epsilon, online_clones(epsilon, n, delta, dimension, sparsity), delta)


def clones_beyond_tail(epsilon: float, n: int, delta: float) -> float:
    """Return how many reports are clones at least, but for half of delta, as papers print it."""
    clones = n / math.exp(epsilon)
    return clones - math.sqrt(3 * clones * math.log(4 / delta))


def clones_tail(epsilon: float, n: int, delta: float) -> float:
    """Return epsilon by the tail of the number of clones, as papers print it for comparison."""
    return _with_clones(epsilon, clones_beyond_tail(epsilon, n, delta), delta)


def _with_clones(epsilon: float, clones: float, delta: float) -> float:
    """Return epsilon if there are at least so many clones, up to half of delta."""
    e = math.exp(epsilon)
    root = math.sqrt(math.log(4 / delta) * clones / 2)
    return math.log1p((e - 1) / (e + 1) * (2 * root + 1) / (clones / 2 - root))
