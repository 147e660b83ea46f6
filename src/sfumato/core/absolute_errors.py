"""Expected sums and maxima of absolute errors that are normal."""

from __future__ import annotations

from functools import cache
from math import erf, sqrt

import numpy as np

__all__ = ["largest"]


@cache
def largest(count: int) -> tuple[float, float]:
    """Return mean and deviation of the largest of so many absolute values of standard normals.

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
