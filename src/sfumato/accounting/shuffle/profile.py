"""Privacy profiles of one report among many: delta at an epsilon, epsilon at a delta.

One person's report hides among n - 1 others. If every other report is of kind y with probability
q(y), then the shuffled reports for two inputs a and b of that one person differ by exactly

    delta(epsilon) = (1/n) E[(G_1 + ... + G_n)_+],  G = (P_a(y) - e^epsilon P_b(y))/q(y)  w.p. q(y),

and if q is only a part of what the others send (a *blanket*: q(y) <= P_x(y) for every x), this is
an upper bound, since everything else they send could even be shown to the observer. (Balle, Bell,
Gascon, Nissim, "The Privacy Blanket of the Shuffle Model", 2019.)

Rounding is outward: for an upper bound, values of G are rounded up and probability is moved towards
larger values; for a lower bound both go the other way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from sfumato.accounting.shuffle.excess import excess
from sfumato.arrays import Floats, Ints
from sfumato.core.contrast import Contrast

__all__ = [
    "both_ways",
    "delta_above",
    "delta_below",
    "epsilon_above",
    "epsilon_below",
    "rounded",
    "smoothing_for",
    "solved",
]


_UNIT: Final = 2.0**-53
_KINDS: Final = 160
_PRECISION: Final = 1e-9


def delta_above(contrasts: Sequence[Contrast], n: int, epsilon: float) -> float:
    """Return a number at or above the worst delta of these contrasts, in both orders."""
    return max(_delta(contrast, n, epsilon, up=True) for contrast in both_ways(contrasts))


def delta_below(contrasts: Sequence[Contrast], n: int, epsilon: float) -> float:
    """Return a number at or below the worst delta of these contrasts, in both orders."""
    deltas = (_delta(contrast, n, epsilon, up=False) for contrast in both_ways(contrasts))
    return max(deltas, default=0.0)


def epsilon_above(contrasts: Sequence[Contrast], n: int, delta: float, most: float) -> float:
    """Return an epsilon that is enough for all these contrasts at this delta; at most ``most``.

    A contrast that is no worse than the earlier ones costs a single evaluation. With delta 0
    shuffling promises nothing beyond local privacy, because all reports may be of one kind.
    """
    if not delta:
        return most
    epsilon = 0.0
    for contrast in both_ways(contrasts):
        if epsilon < most and _delta(contrast, n, epsilon, up=True) > delta:
            epsilon = _crossing(contrast, n, delta, epsilon, most, up=True)[1]
    return epsilon


def epsilon_below(contrasts: Sequence[Contrast], n: int, delta: float, most: float) -> float:
    """Return an epsilon that one of these contrasts violates at this delta; 0 if none is known."""
    if not delta:
        return max((_pure(contrast) for contrast in both_ways(contrasts)), default=0.0)
    epsilon = 0.0
    for contrast in both_ways(contrasts):
        # Most pairs are no worse than those before, and a rough computation shows that.
        rough = 5 * smoothing_for(n)
        if epsilon >= most or (
            epsilon and _delta(contrast, n, epsilon, up=True, smoothing=rough) <= delta
        ):
            continue
        if _delta(contrast, n, epsilon, up=False) > delta:
            epsilon = _crossing(contrast, n, delta, epsilon, most, up=False)[0]
    return epsilon


def _crossing(
    contrast: Contrast, n: int, delta: float, low: float, most: float, *, up: bool
) -> tuple[float, float]:
    """Return two close epsilons between which a contrast's delta falls below this one."""

    def roughly(epsilon: float) -> float:
        return _delta(contrast, n, epsilon, up=up, smoothing=5 * smoothing_for(n))

    def closely(epsilon: float) -> float:
        return _delta(contrast, n, epsilon, up=up)

    start = guess(contrast, n, delta)
    _, near, slope = solved(roughly, delta, low, most, start, precision=1e-4)
    bracket = solved(closely, delta, low, most, near, precision=_PRECISION, slope=slope)
    return bracket[0], bracket[1]


def both_ways(contrasts: Sequence[Contrast]) -> list[Contrast]:
    """Return the contrasts in both orders; symmetric ones come once."""
    ordered = []
    for contrast in contrasts:
        ordered.append(contrast)
        if not contrast.symmetric:
            ordered.append(contrast.swapped)
    return ordered


def _pure(contrast: Contrast) -> float:
    """Return the loss if all reports are of the kind that reveals most."""
    ratio = float((contrast.first / contrast.second).max()) * (1 - 4 * contrast.error)
    return max(0.0, math.log(ratio) * (1 - 8 * _UNIT))


def smoothing_for(n: int) -> float:
    """Return the smoothing of the integral; sums over few people are less smooth and need less."""
    return 0.01 if n > 50 else 0.005


def guess(contrast: Contrast, n: int, delta: float) -> float:
    """Return the epsilon at which a normal sum would have about this delta."""
    variance = float(contrast.chances @ (contrast.first - contrast.second) ** 2)
    return math.sqrt(max(-math.log(max(delta, 1e-300)), 1.0) * variance / n)


def _delta(
    contrast: Contrast, n: int, epsilon: float, *, up: bool, smoothing: float | None = None
) -> float:
    values, chances = rounded(contrast, epsilon, up=up)
    mean = excess(values, chances, n, smoothing or smoothing_for(n))
    return mean.high / n * (1 + 4 * _UNIT) if up else mean.low / n * (1 - 4 * _UNIT)


def rounded(contrast: Contrast, epsilon: float, *, up: bool) -> tuple[Floats, Floats]:
    """Return values and probabilities of G, rounded so that mean positive parts grow or shrink."""
    side = 1.0 if up else -1.0
    error = contrast.error + 16 * _UNIT
    # A larger e^epsilon makes delta smaller.
    factor = math.exp(epsilon) * (1 - side * 8 * _UNIT)
    values = contrast.first * (1 + side * error) - factor * contrast.second * (1 - side * error)
    values += side * 4 * _UNIT * (contrast.first + factor * contrast.second)
    values, chances = _coarse(values, contrast.chances, up=up)
    return values, _moved(values, chances, error, side)


def _moved(values: Floats, chances: Floats, error: float, side: float) -> Floats:
    """Return the chances with their possible error moved to the largest (or smallest) value."""
    moved = chances * (1 - error)
    target = int(np.argmax(side * values))
    # G is zero with the probability that is not listed; the true chances sum to at most 1.
    moved[target] += 2 * error * float(chances.sum())
    over = float(moved.sum()) * (1 + len(moved) * _UNIT) - 1
    for index in np.argsort(side * values):
        if over <= 0:
            break
        if index != target:
            taken = min(over, float(moved[index]))
            moved[index] -= taken
            over -= taken
    return moved


def _coarse(values: Floats, chances: Floats, *, up: bool) -> tuple[Floats, Floats]:
    """Return a law with few values and the same mean, larger (or smaller) in convex order."""
    if len(values) <= _KINDS:
        return values, chances
    order = np.argsort(values)
    x, w = values[order], chances[order]
    knots = np.unique(np.append(x[:: math.ceil(len(x) / (_KINDS // 2))], x[-1]))
    cell = np.clip(np.searchsorted(knots, x, side="right") - 1, 0, len(knots) - 2)
    if up:  # each value is split between the two knots beside it
        share = (x - knots[cell]) / (knots[cell + 1] - knots[cell])
        spread = _added(cell + 1, w * share, len(knots))
        return knots, spread + _added(cell, w * (1 - share), len(knots))
    mass = _added(cell, w, len(knots))  # the values of a cell become their mean
    mean = _added(cell, w * x, len(knots)) / np.where(mass > 0, mass, 1)
    return mean[mass > 0], mass[mass > 0]


def _added(cell: Ints, weights: Floats, size: int) -> Floats:
    total = np.zeros(size)
    np.add.at(total, cell, weights)
    return total


def solved(
    delta_at: Callable[[float], float],
    delta: float,
    low: float,
    high: float,
    guess: float,
    *,
    precision: float,
    slope: float | None = None,
) -> tuple[float, float, float | None]:
    """Return the two ends of a short interval of epsilons in which delta is reached, and a slope.

    At the first end ``delta_at`` is still above delta, at the second it is not; the arguments
    ``low`` and ``high`` are such ends already. The square root of -log(delta) is nearly linear in
    epsilon, so secants find the crossing in a few steps; each goes a little too far, so that the
    two ends approach it from both sides. The slope of the last one is returned as well.
    """

    def height(epsilon: float) -> float:
        delta_there = delta_at(epsilon)
        return math.sqrt(max(-math.log(delta_there), 0.0)) if delta_there > 0 else math.inf

    goal = math.sqrt(-math.log(delta)) if delta else math.inf
    last, last_height = (low, height(low)) if slope is None else (math.nan, math.nan)
    tried = guess if low < guess < high else (low + high) / 2
    for _ in range(200):
        tried_height = height(tried)
        holds = tried_height >= goal and tried_height > 0
        low, high = (low, tried) if holds else (tried, high)
        if high - low <= precision * high:
            break
        if not math.isnan(last):
            slope = (tried_height - last_height) / (tried - last)
        last, last_height = tried, tried_height
        if slope is not None and math.isfinite(slope) and slope > 0:
            root = tried + (goal - tried_height) / slope
            tried = root * (1 - precision / 3) if holds else root * (1 + precision / 3)
        else:
            tried = math.nan
        tried = tried if low < tried < high else (low + high) / 2
    return low, high, slope
