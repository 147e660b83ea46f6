"""Shapes of motion: covariances between periods, known up to their size.

A shape is a square root L of a covariance K = L L', periods x anything. *Steps* add up to a random
walk. *Slopes* are steps of steps. *Jitter* is new in each period. A *static* curve has no columns.
Steps may differ in size between periods: *lively* steps follow the motion that a first round has
found, and *jumps* are steps that are much larger than all others.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np

from sfumato.arrays import Floats

__all__ = ["Shape", "first_shapes", "learnt_shapes", "sizes"]


Shape = Callable[[], Floats]
"""A function that returns a shape, which takes as much memory as a matrix of all periods."""

JITTERS: Final = (1.0, 16.0, 256.0)
"""The variances of jitter beside steps, relative to that of a step."""
LEARNT_JITTER: Final = 16.0
"""The variance of jitter beside learnt steps, relative to that of a step."""
LARGEST: Final = 3
"""The largest variance of a period's move is 4 to this power times the variance of its noise."""
REACH: Final = 8
"""A moving curve is smoothed over at most the horizon divided by this number."""
STANDS_OUT: Final = 9.0
"""A squared step that is this many times the median is a jump."""
CALMEST: Final = 0.3
"""The smallest variance of a lively step, relative to the average."""
NEIGHBOURS: Final = 16
"""Liveliness is averaged over the horizon divided by this number."""


def sizes(periods: int, unit: float) -> Floats:
    """Return the variances of moves to try, without that of the static curve."""
    least = min(0, int(np.ceil(np.log2(REACH / periods))))
    return np.asarray(unit * 4.0 ** np.arange(least, LARGEST + 1))


def first_shapes(periods: int) -> list[Shape]:
    """Return the shapes of the first round, which need no knowledge of the curves.

    Examples
    --------
    >>> [shape().shape[1] for shape in first_shapes(4)]
    [0, 4, 4, 4, 4, 4, 4]

    """
    alike = np.ones(periods)
    return [
        partial(np.zeros, (periods, 0)),
        partial(_summed, alike),
        partial(_slopes, periods),
        *(partial(_jittery, alike, jitter) for jitter in JITTERS),
        partial(np.eye, periods),
    ]


def learnt_shapes(curves: Floats) -> list[Shape]:
    """Return shapes whose steps are as large as those of given curves, periods x entries.

    The steps of the curves are squared and averaged over the entries. There are lively steps and
    jumps, each with and without jitter.
    """
    squares = (np.diff(curves, axis=0) ** 2).mean(axis=1)
    if not squares.size or not squares.max() > 0:
        return []
    width = max(1, len(curves) // NEIGHBOURS)
    lively = _averaged(squares, width)
    lively = CALMEST + (1 - CALMEST) * lively / lively.mean()
    typical = max(float(np.median(squares)), 1e-9 * float(squares.max()))
    jumps = np.where(squares > STANDS_OUT * typical, squares / typical, 1.0)
    steps = [np.concatenate([[1.0], variances]) for variances in (lively, jumps)]
    return [
        *(partial(_summed, each) for each in steps),
        *(partial(_jittery, each, LEARNT_JITTER) for each in steps),
    ]


def _summed(variances: Floats) -> Floats:
    """Return the shape of sums of independent steps with these variances."""
    return np.asarray(np.tril(np.ones((variances.size, variances.size))) * np.sqrt(variances))


def _slopes(periods: int) -> Floats:
    """Return the shape of sums of sums of independent steps."""
    steps = _summed(np.ones(periods))
    slopes = steps @ steps
    return np.asarray(slopes * np.sqrt(periods / (slopes[-1] @ slopes[-1])))


def _jittery(variances: Floats, jitter: float) -> Floats:
    """Return the shape of sums of independent steps, with jitter beside them."""
    root = _summed(variances)
    return np.asarray(np.linalg.cholesky(root @ root.T + jitter * np.eye(len(root))))


def _averaged(values: Floats, width: int) -> Floats:
    """Return averages over ``width`` neighbours; over fewer at the ends."""
    window = np.ones(width)
    total = np.convolve(values, window, mode="same")
    return np.asarray(total / np.convolve(np.ones_like(values), window, mode="same"))
