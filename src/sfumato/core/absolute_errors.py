"""Expected sums and maxima of absolute errors that are normal."""

from __future__ import annotations

from functools import cache
from math import erf, prod, sqrt

import numpy as np

from sfumato.arrays import Floats

__all__ = ["largest", "largest_of"]


@cache
def largest(count: int) -> tuple[float, float]:
    """Return mean and deviation of the largest absolute value of some standard normal numbers.

    Examples
    --------
    >>> [round(number, 4) for number in largest(1)]
    [0.7979, 0.6028]

    """
    x = np.linspace(0.0, 10.0, 8001)
    below = np.array([erf(each / sqrt(2)) for each in x.tolist()]) ** count
    mean = float(np.trapezoid(1 - below, x))
    square = float(np.trapezoid(2 * x * (1 - below), x))
    return mean, sqrt(square - mean**2)


def largest_of(deviations: Floats) -> float:
    """Return the mean of the largest absolute value of independent normals, by their deviations.

    Examples
    --------
    >>> round(largest_of(np.ones(3)), 4), round(largest(3)[0], 4)
    (1.3264, 1.3264)

    """
    x = np.linspace(0.0, 8.0 * float(deviations.max()), 801)
    below = [
        prod(erf(each / (sqrt(2) * own)) for own in deviations.tolist()) for each in x.tolist()
    ]
    return float(np.trapezoid(1 - np.array(below), x))
