"""Projections on the convex sets that shares lie in: a box, a simplex, a capped simplex.

A projection on a convex set brings any point at least as near to every point of the set, so the
distance to the truth never grows, whatever the noise was.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sfumato.arrays import Floats
from sfumato.core.field_checks import check_number
from sfumato.errors import ConfigurationError, InputError

__all__ = ["at_most", "capped_simplex", "clip", "norm_sub", "simplex"]


def clip(values: ArrayLike, cap: float = 1.0) -> Floats:
    """Return each value cut to [0, cap]: the nearest point of the box.

    Every value moves on its own. Negative values become zero, so the sum grows: with many rare
    items the clipped shares sum to far more than one. Intervals clipped to [0, cap] cover as often
    as before.

    Examples
    --------
    >>> clip([0.7, -0.1, 1.2]).tolist()
    [0.7, 0.0, 1.0]

    """
    return np.clip(_checked(values), 0.0, check_number("cap", cap, above=0))


def norm_sub(values: ArrayLike, total: float = 1.0) -> Floats:
    """Return max(value + delta, 0) with the one delta for which the results sum to the total.

    This is the same point as :func:`simplex`. There the smallest squared distance under x >= 0
    and sum x = total has the Lagrange conditions x_v - value_v = delta + mu_v with mu_v >= 0 and
    mu_v x_v = 0: either x_v = value_v + delta > 0 or x_v = 0 >= value_v + delta, which says
    x_v = max(value_v + delta, 0). The distance is strictly convex, so there is one such point.

    Cutting negative values away *before* the first shift gives another, worse answer when the
    values sum to less than the total. Bias and intervals: see :func:`simplex`.

    Examples
    --------
    >>> norm_sub([0.3, -0.01]).round(3).tolist()
    [0.655, 0.345]

    References
    ----------
    Wang, Lopuhaä-Zwakenberg, Li, Škorić, Li, "Locally Differentially Private Frequency Estimation
    with Consistency" (2020).

    """
    return simplex(values, total)


def simplex(values: ArrayLike, total: float = 1.0) -> Floats:
    """Return the nearest values that are not negative and sum to the total, in O(d log d).

    This is the usual last step for shares of items if everybody holds exactly one item. Positive
    values are all shifted by the same amount, mostly downwards, to make up for the negative ones
    that are cut: large shares come out a little too small and zero shares a little too large.
    Intervals cut to [0, total] cover as often as before.

    Examples
    --------
    >>> simplex([0.7, 0.5, -0.1]).round(3).tolist()
    [0.6, 0.4, 0.0]

    """
    total = check_number("total", total, above=0)
    return capped_simplex(values, total, cap=total)  # no value can exceed the total anyway


def capped_simplex(values: ArrayLike, total: float, cap: float = 1.0) -> Floats:
    """Return the nearest values in [0, cap] that sum to the total, in O(d log d).

    This is for sets of items: each item has a share between 0 and 1, and the shares sum to the size
    of a set. The result is clip(value - shift, 0, cap) with the one shift that gives the total, by
    the same conditions as in :func:`norm_sub`. The sum falls with the shift, linearly between the
    shifts at which an item reaches 0 or the cap; these are sorted, bisection finds two neighbours,
    and the shift between them follows. Shares near 0 and near the cap are biased inwards, and all
    others are shifted by the same amount. Intervals cut to [0, cap] cover as often as before, if
    the total is right.

    Examples
    --------
    >>> capped_simplex([1.4, 0.9, 0.2, -0.1], total=2).round(3).tolist()
    [1.0, 0.85, 0.15, 0.0]

    """
    cap = check_number("cap", cap, above=0)
    y = _checked(values)
    most = cap * y.size
    if not _number(total) or not 0 <= total <= most:
        raise ConfigurationError(
            f"total is {total!r}; {y.size} values of at most {cap:g} can sum to 0..{most:g}."
        )
    y = y - _corner(y, total, cap)  # measured from this shift, the significant digits are kept
    corner = _corner(y, total, cap)
    full = y - cap >= corner
    free = (y >= corner) & ~full
    shift = y[free].sum() + cap * np.count_nonzero(full) - total
    shift /= max(np.count_nonzero(free), 1)
    return np.where(full, cap, np.where(free, np.clip(y - shift, 0.0, cap), 0.0))


def at_most(values: ArrayLike, total: float, cap: float = 1.0) -> Floats:
    """Return the nearest values in [0, cap] that sum to the total or to less.

    This is for people who hold *at most* ``total`` items each, so that the shares sum to at most
    that number. Values clipped to [0, cap] are the nearest unless they sum to more than the total;
    then the nearest ones sum to it exactly, see :func:`capped_simplex`.

    Examples
    --------
    >>> at_most([0.9, 0.2, -0.1], total=2).tolist()
    [0.9, 0.2, 0.0]
    >>> at_most([1.4, 0.9, 0.2, -0.1], total=2).round(3).tolist()
    [1.0, 0.85, 0.15, 0.0]

    """
    cut = clip(values, cap)
    if _number(total) and cut.sum() <= total:
        return cut
    return capped_simplex(values, total, cap)


def _corner(y: Floats, total: float, cap: float) -> float:
    """Return the first corner with too small a sum: a shift at which a value reaches 0 or the cap.

    If no sum is too small, return the last of these shifts, which leaves nothing.
    """
    corners = np.unique(np.concatenate([y - cap, y]))
    before, after = -1, corners.size - 1
    while after - before > 1:
        middle = (before + after) // 2
        enough = np.clip(y - corners[middle], 0.0, cap).sum() >= total
        before, after = (middle, after) if enough else (before, middle)
    return float(corners[after])


def _number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _checked(values: ArrayLike) -> Floats:
    array = np.asarray(values)
    if array.dtype.kind not in "iuf" or array.ndim != 1 or not array.size:
        raise InputError(
            f"values have dtype {array.dtype} and shape {array.shape}; "
            "a flat array of one or more numbers is expected."
        )
    if not np.isfinite(array).all():
        index = int(np.argmin(np.isfinite(array)))
        raise InputError(f"values[{index}] is {array[index]}; finite numbers are expected.")
    return array.astype(np.float64)
