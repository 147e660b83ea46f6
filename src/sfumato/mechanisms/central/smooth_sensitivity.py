"""A private quantile by smooth sensitivity, plain and with PAK's safety term."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from sfumato.arrays import Ints
from sfumato.core.field_checks import check_number
from sfumato.core.noise import NoiseLaw, exact_epsilon, short_rate
from sfumato.errors import ConfigurationError
from sfumato.randomness import Source

__all__ = ["SmoothQuantile", "smooth_sensitivity"]

_SLACK: Final = 2.0**-28
"""The relative increase of the sensitivity, which covers the rounding of floats."""
_CLOSER: Final = 2.0**-40
"""The decrease of b, because the noise of neighbours, and its rates, may be rounded differently."""
_WIDEST: Final = 2.0**51
"""The widest noise that any values may need; the source of coins can do twice as much."""


def smooth_sensitivity(ordered: Ints, bound: int, rank: int, b: float) -> float:
    """Return max of (x_j - x_i) e^(-b (j - i - 1)) over 0 <= i <= rank <= j <= m + 1, i < j.

    Here x_0 is 0 and x_(m+1) is the bound, the farthest values that changed numbers can take. For
    each j the best i maximises a line in x_j whose slope grows with i, so one upper hull and one
    walk along it serve all j, in O(m). Of equal values the innermost one is best, so only distinct
    values are considered.

    Examples
    --------
    >>> smooth_sensitivity(np.array([1, 2, 3, 4]), 10, 2, 0.5)
    2.9430355293715387

    """
    x = np.concatenate([[0], ordered, [bound]])
    x = (x - x[rank]).astype(np.float64)  # so that no two large numbers are subtracted below
    i = np.flatnonzero(np.diff(x[: rank + 1], append=math.inf))
    j = rank + np.flatnonzero(np.diff(x[rank:], prepend=-math.inf))
    slopes = np.exp(b * (i - rank))
    hull: list[tuple[float, float]] = []
    for slope, offset in zip(slopes.tolist(), (-slopes * x[i]).tolist(), strict=True):
        while hull and (
            (slope == hull[-1][0] and offset >= hull[-1][1])
            or (len(hull) > 1 and _hidden(hull[-2], hull[-1], (slope, offset)))
        ):
            hull.pop()
        if not hull or slope > hull[-1][0]:
            hull.append((slope, offset))
    best, index = 0.0, 0
    fades = np.exp(-b * (j - rank - 1))
    for u, fade in zip(x[j].tolist(), fades.tolist(), strict=True):
        while index + 1 < len(hull) and _at(hull[index + 1], u) >= _at(hull[index], u):
            index += 1
        best = max(best, _at(hull[index], u) * fade)
    return best


def _at(line: tuple[float, float], u: float) -> float:
    return line[0] * u + line[1]


def _hidden(
    left: tuple[float, float], middle: tuple[float, float], right: tuple[float, float]
) -> bool:
    """Return whether the middle line is nowhere above both others."""
    return (right[1] - left[1]) * (middle[0] - left[0]) >= (middle[1] - left[1]) * (
        right[0] - left[0]
    )


@dataclass(frozen=True)
class SmoothQuantile:
    """The p-quantile of integers, with discrete Laplace noise scaled to its smooth sensitivity.

    With S the smooth sensitivity at b = ln(1 + epsilon / (2 ln(1/delta))), plus one unit for
    rounding to integers, and a = epsilon / 2, the plain quantile is x_P + (S/a) Z. PAK adds a
    safety term, so that the result is below the true quantile only with probability ``beta``: x_P +
    (K S/a) (Z + G), where G is the (1 - beta)-quantile of Z and K = 1/(1 - (e^b - 1) G/a) accounts
    for the sensitivity of the term itself.

    Parameters
    ----------
    epsilon, delta
        The privacy of the quantile.
    p
        The quantile, between 0 and 1.
    beta
        The probability that the result is too small; None for no safety term.

    Guarantee
    ---------
    (epsilon, delta)-DP for integers between 0 and the bound, one of which may change.

    Examples
    --------
    >>> from sfumato.randomness import seeded
    >>> quantile = SmoothQuantile(epsilon=1.0, delta=1e-6, p=0.5)
    >>> quantile.release(np.arange(10_000), 10_000, seeded(1))
    5016

    References
    ----------
    Nissim, Raskhodnikova, Smith, "Smooth Sensitivity and Sampling in Private Data Analysis"
    (2007); Perrier, Asghar, Kaafar, "Private Continual Release of Real-Valued Data Streams"
    (2019).

    """

    epsilon: float
    delta: float
    p: float
    beta: float | None = None

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless all fields are allowed."""
        exact_epsilon(self.epsilon)
        fields = (("delta", self.delta), ("p", self.p), ("beta", self.beta))
        for name, value in fields:
            if value is not None:
                check_number(name, value, above=0, below=1)
        if self.delta > (most := math.exp(-max(1.0, self.a))):
            raise ConfigurationError(
                f"delta is {self.delta}; it must be at most {most:.3g} at epsilon {self.epsilon:g}."
            )
        if self.beta is not None and self.beta > 0.5:
            raise ConfigurationError(f"beta is {self.beta}; it must be at most 0.5.")
        if math.expm1(self.b) * self.safety >= self.a:
            raise ConfigurationError(
                f"delta is {self.delta} and beta {self.beta}; the safety term needs a smaller "
                "delta or a larger beta."
            )

    @property
    def a(self) -> float:
        """The factor a = epsilon / 2: the scale of the noise is the smooth sensitivity over a."""
        return self.epsilon / 2

    @property
    def b(self) -> float:
        """The rate at which the influence of more distant neighbours decays."""
        return math.log1p(self.epsilon / (2 * math.log(1 / self.delta)))

    @property
    def safety(self) -> float:
        """G, the quantile of the noise that the safety term adds; 0 without that term."""
        return 0.0 if self.beta is None else -math.log(2 * self.beta)

    @property
    def _pays(self) -> float:
        """K, the factor of the noise that the sensitivity of the safety term asks for."""
        return 1 / (1 - math.expm1(self.b) * self.safety / self.a)

    def _check_bound(self, bound: int) -> None:
        """Raise ConfigurationError if any values could need wider noise than there is.

        This looks at public numbers only: a refusal that depended on values would tell of them.
        """
        widest = self._pays * (bound + 1) / self.a
        if widest > _WIDEST:
            raise ConfigurationError(
                f"bound is {bound} at epsilon {self.epsilon:g}; the noise could spread over "
                f"{widest:.3g} units, and 2^51 is the most, so use a larger unit."
            )

    def law(self, values: Ints, bound: int) -> tuple[int, NoiseLaw]:
        """Return the centre of the result and the law of the noise around it."""
        self._check_bound(bound)
        ordered = np.sort(values)
        rank = max(1, math.ceil(self.p * ordered.size))
        smooth = smooth_sensitivity(ordered, bound, rank, self.b - _CLOSER)
        scale = self._pays * (smooth * (1 + _SLACK) + 1) / self.a
        centre = int(ordered[rank - 1]) + round(scale * self.safety)
        return centre, NoiseLaw(short_rate(1 / Fraction(scale)))

    def release(self, values: Ints, bound: int, rng: Source) -> int:
        """Return the private quantile, which may lie outside of 0..bound."""
        centre, law = self.law(values, bound)
        return centre + int(rng.discrete_laplace(law.rate, 1)[0])
