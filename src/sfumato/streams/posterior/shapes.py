"""How curves may move: shapes of covariances between periods, of which only the size is unknown.

A shape is a square root L of a covariance K = L L', periods x anything. *Steps* add up to a random
walk. *Slopes* are steps of steps. *Jitter* is new in each period. A *static* curve has no columns
at all. Steps need not be equally large in all periods: *lively* ones follow what a first look at
the curves says of when they move, and *jumps* are steps that stand out among all others.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

__all__ = ["first_shapes", "learnt_shapes", "sizes"]

Floats = NDArray[np.float64]

JITTERS: Final = (1.0, 16.0, 256.0)
"""How many times as large as that of a step the variance of jitter beside steps is."""
LEARNT_JITTER: Final = 16.0
"""The same, beside steps whose sizes are learnt."""
LARGEST: Final = 3
"""Moves of one period have up to 4 ** this times the variance of its noise."""
REACH: Final = 8
"""No curve but a static one is smoothed over more than this part of the horizon."""
STANDS_OUT: Final = 9.0
"""A step so many times as large as the median, in squares, is a jump."""
CALMEST: Final = 0.3
"""Steps that look like none at all still have this part of the average variance."""
NEIGHBOURS: Final = 16
"""Liveliness is smoothed over this part of the horizon."""


def sizes(periods: int, unit: float) -> Floats:
    """Return the variances of moves that are tried, the static curve apart."""
    least = min(0, int(np.ceil(np.log2(REACH / periods))))
    return np.asarray(unit * 4.0 ** np.arange(least, LARGEST + 1))


def first_shapes(periods: int) -> list[Floats]:
    """Return the shapes that are tried before anything is known of when the curves move.

    Examples
    --------
    >>> [root.shape[1] for root in first_shapes(4)]
    [0, 4, 4, 4, 4, 4, 4]

    """
    steps = _summed(np.ones(periods))
    slopes = steps @ steps
    slopes *= np.sqrt(periods / (slopes[-1] @ slopes[-1]))
    jittery = [_with_jitter(steps, jitter) for jitter in JITTERS]
    return [np.zeros((periods, 0)), steps, slopes, *jittery, np.eye(periods)]


def learnt_shapes(curves: Floats) -> list[Floats]:
    """Return shapes whose steps are as large as those of some curves, periods x entries.

    The steps of the curves are squared and averaged over the entries. There are lively steps and
    jumps, each without jitter and with some.
    """
    squares = (np.diff(curves, axis=0) ** 2).mean(axis=1)
    if not squares.size or not squares.max() > 0:
        return []
    width = max(1, len(curves) // NEIGHBOURS)
    lively = _averaged(squares, width)
    lively = CALMEST + (1 - CALMEST) * lively / lively.mean()
    typical = max(float(np.median(squares)), 1e-9 * float(squares.max()))
    jumps = np.where(squares > STANDS_OUT * typical, squares / typical, 1.0)
    roots = [_summed(np.concatenate([[1.0], variances])) for variances in (lively, jumps)]
    return [*roots, *(_with_jitter(root, LEARNT_JITTER) for root in roots)]


def _summed(variances: Floats) -> Floats:
    """Return the shape of sums of independent steps of these variances."""
    return np.asarray(np.tril(np.ones((variances.size, variances.size))) * np.sqrt(variances))


def _with_jitter(root: Floats, variance: float) -> Floats:
    return np.asarray(np.linalg.cholesky(root @ root.T + variance * np.eye(len(root))))


def _averaged(values: Floats, width: int) -> Floats:
    """Return averages over so many neighbours; over fewer at the ends."""
    window = np.ones(width)
    total = np.convolve(values, window, mode="same")
    return np.asarray(total / np.convolve(np.ones_like(values), window, mode="same"))
