"""What several promises add up to, if nothing is known of them but their epsilon and delta.

A promise (epsilon, delta) is no weaker than this: with probability delta everything is told, else
one of two answers comes, which are e^epsilon to 1 for either input. So the losses of several
promises are sums of such steps up or down, whoever chooses the next one by what came before.
(Kairouz, Oh, Viswanath, "The Composition Theorem for Differential Privacy", 2015.)
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Final

import numpy as np

from sfumato.core.guarantee import rounded_up

__all__ = ["together", "told_of_all"]

_POINTS: Final = 1 << 12
_ROUNDED: Final = 1e-12
_LARGEST: Final = 300.0
"""The largest sum of epsilons that is worth a closer look."""


def together(promises: Iterable[tuple[float, float]], spare: float) -> tuple[float, float]:
    """Return the epsilon and delta that hold for all of some promises together.

    Parameters
    ----------
    promises
        The epsilon and delta of each.
    spare
        How much delta may be added to what the promises have themselves.

    Examples
    --------
    >>> epsilon, delta = together([(0.1, 1e-9)] * 100, 1e-6)
    >>> f"{epsilon:.2f} {delta:.2g}"
    '4.78 1.1e-06'

    """
    listed = [(float(epsilon), float(delta)) for epsilon, delta in promises]
    whole = math.fsum(epsilon for epsilon, _ in listed)
    lost = -math.expm1(math.fsum(math.log1p(-delta) for _, delta in listed))
    if not spare or not 0 < whole < _LARGEST:
        return whole, lost * (1 + _ROUNDED)
    width = whole / _POINTS
    losses, reach = np.ones(1), 0
    for epsilon, _ in listed:
        # A step is as long as a whole number of widths, at least: that can only tell more.
        step = math.ceil(epsilon / width * (1 - _ROUNDED))
        up = 1 / (1 + math.exp(-step * width))
        grown = np.zeros(len(losses) + 2 * step)
        grown[2 * step :] += up * losses
        grown[: len(losses)] += (1 - up) * losses
        losses, reach = grown, reach + step
    points = width * np.arange(-reach, reach + 1)
    above = np.cumsum(losses[::-1])[::-1]
    weighed = np.cumsum((losses * np.exp(-points))[::-1])[::-1]
    over = above - np.exp(points) * weighed + _ROUNDED > spare
    first = int(np.flatnonzero(over)[-1]) + 1 if over.any() else reach
    epsilon = max(0.0, float(points[min(first, 2 * reach)]))
    total = (lost + spare) * (1 + _ROUNDED)
    return (epsilon, total) if epsilon < whole else (whole, lost * (1 + _ROUNDED))


def told_of_all(promises: Collection[tuple[float, float]], *, windows: bool = False) -> str:
    """Return what holds of all tasks that a device is in, as a sentence.

    Parameters
    ----------
    promises
        The epsilon and delta of each task: about mixed reports if its reports are shuffled, and
        else the local epsilon and 0.
    windows
        Whether some tasks promise something for each window only.

    Examples
    --------
    >>> told_of_all([(0.5, 1e-6), (1.0, 0.0)])
    'epsilon 1.5 and delta 1.01e-06 hold against who sees of shuffled tasks no more than mixed ...'

    """
    epsilon, delta = together(promises, sum(delta for _, delta in promises))
    limited = ", for what differs within one window of those that have one" if windows else ""
    return (
        f"epsilon {rounded_up(epsilon, 4)} and delta {rounded_up(delta, 3)} hold against who sees "
        f"of shuffled tasks no more than mixed reports{limited}"
    )
