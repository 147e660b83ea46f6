"""FutureRand: a sign for every entry, and flips of the non-zeros' signs drawn beforehand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from math import ceil, comb, exp, floor, lgamma, log, sqrt
from typing import ClassVar, Final, Literal, Self

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.exact import exp_below
from sfumato.core.field_checks import check_one_of
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse.rivals.signs import SignVector
from sfumato.mechanisms.sparse.sparse_mechanism import weight_above
from sfumato.randomness import ONE

__all__ = ["FutureRand"]

_STEPS: Final = 1_000


def _annulus(small: float, sparsity: int) -> range:
    """Return the numbers of flips that are kept, for coins of epsilon ``small``."""
    p = 1 / (exp(small) + 1)
    least = sparsity * p - 2 * sqrt(sparsity)
    most = sparsity / small * (log(2) - log(1 + exp(-small)))
    return range(max(ceil(least), 0), min(floor(most), sparsity) + 1)


@lru_cache(maxsize=256)
def _log_ways(sparsity: int) -> Floats:
    """Return the logarithms of the numbers of ways to flip 0, 1, ..., s of s signs."""
    sizes = np.array([lgamma(k + 1) for k in range(sparsity + 1)])
    return np.asarray(sizes[-1] - sizes - sizes[::-1])


@lru_cache(maxsize=256)
def _calibrated(epsilon: float, sparsity: int) -> float:
    """Return the epsilon of the coins with the largest contrast among those that keep epsilon.

    The loss is not monotone in it, because the annulus changes in steps; so many are tried, and
    more of them near the best.
    """
    step = epsilon / _STEPS
    best = max(_contrast(small, epsilon, sparsity) for small in step * np.arange(1, _STEPS + 1))
    near = best[1] + step * np.linspace(-1, 1, _STEPS // 2)
    return max(best, *(_contrast(small, epsilon, sparsity) for small in near if small > 0))[1]


def _contrast(small: float, epsilon: float, sparsity: int) -> tuple[float, float]:
    """Return the contrast with coins of epsilon ``small`` (0 if it exceeds epsilon), and these."""
    flips = np.arange(sparsity + 1)
    ways = _log_ways(sparsity)
    kept = _annulus(small, sparsity)
    one = -small * flips - sparsity * np.log1p(exp(-small))
    outside = np.ones(sparsity + 1, dtype=bool)
    outside[kept.start : kept.stop] = False
    if outside.any():
        mass = np.logaddexp.reduce((ways + one)[outside])
        one[outside] = mass - np.logaddexp.reduce(ways[outside])
    fits = one.max() - one.min() <= epsilon * (1 - 1e-9)
    contrast = float(np.exp(ways + one) @ (1 - 2 * flips / sparsity))
    return contrast if fits else 0.0, float(small)


@dataclass(frozen=True)
class FutureRand(SignVector):
    """The signs of all non-zeros are flipped by s coins, whose number of flips is kept in a range.

    Before the first entry s coins of a small epsilon are tossed. If the number of flips is outside
    of a range around its mean, the flips are replaced by a uniform draw among all that are outside.
    Each non-zero is sent with its flip, each zero as a fair sign.

    Parameters
    ----------
    constants
        The epsilon of the coins: epsilon/(5 sqrt(s)) as printed, or the calibrated one, which has
        the least error among those whose exact loss is at most epsilon.

    Guarantee
    ---------
    epsilon-LDP for the whole vector. The exact loss with the printed constants is a sixth to a half
    of epsilon.

    Error
    -----
    Variance 1/c^2 - x^2 for every entry x, with c the mean of 1 - 2 flips/s.

    Cost
    ----
    One bit for each entry; device and server O(d) per report.

    Examples
    --------
    >>> printed, calibrated = (FutureRand(1.0, 64, 8, constants=c) for c in CONSTANTS)
    >>> f"{1 / printed.probabilities.contrast:.1f} {1 / calibrated.probabilities.contrast:.1f}"
    '37.3 12.0'

    References
    ----------
    Ohrimenko, Wirth, Wu, "Randomize the Future: Asymptotically Optimal Locally Private Frequency
    Estimation Protocol for Longitudinal Data" (2022).

    """

    constants: Literal["printed", "calibrated"] = "printed"

    name: ClassVar[str] = "futurerand"
    summary: ClassVar[str] = "a rival for sparse signed vectors: a sign per entry, flips in a range"

    @classmethod
    def examples(cls) -> Iterator[Self]:
        """Yield small instances for checks."""
        yield cls(8.0, 2, 2)
        yield cls(2.0, 3, 2, constants="calibrated")

    def _check_options(self) -> None:
        check_one_of("constants", self.constants, CONSTANTS)
        if self.worst_ratio > exp_below(self.epsilon):
            raise ConfigurationError(
                f"constants are printed; for epsilon {self.epsilon:g} and sparsity {self.sparsity} "
                "they exceed epsilon, the calibrated ones do not."
            )

    @cached_property
    def coin_epsilon(self) -> float:
        """The epsilon of one of the s coins."""
        if self.constants == "printed":
            return self.epsilon / (5 * sqrt(self.sparsity))
        return _calibrated(self.epsilon, self.sparsity)

    @cached_property
    def kept_share(self) -> float:
        """The probability that the flips of the coins are within the range, and thus kept."""
        s, flips = self.sparsity, np.arange(self.sparsity + 1)
        tossed = _log_ways(s) - self.coin_epsilon * flips - s * np.log1p(exp(-self.coin_epsilon))
        kept = _annulus(self.coin_epsilon, s)
        return float(np.exp(tossed[kept.start : kept.stop]).sum())

    @property
    def underspends(self) -> str:
        """Why some of epsilon is left: the numbers of flips are whole, the constants coarse."""
        return "the range of flips is chosen so that epsilon is kept, and not so that it is spent"

    @cached_property
    def sign_weights(self) -> tuple[int, ...]:
        """The weight of one outcome of the coins, or that of a uniform one outside of the range."""
        s, low = self.sparsity, weight_above(-Fraction(self.coin_epsilon))
        tossed = [ONE ** (s - flips) * low**flips for flips in range(s + 1)]
        ways = [comb(s, flips) for flips in range(s + 1)]
        kept = _annulus(self.coin_epsilon, s)
        outside = [flips for flips in range(s + 1) if flips not in kept]
        count = sum(ways[flips] for flips in outside) or 1
        mass = sum(ways[flips] * tossed[flips] for flips in outside)
        by_flips = [count * tossed[f] if f in kept else mass for f in range(s + 1)]
        return tuple(by_flips[::-1])


CONSTANTS: Final = ("printed", "calibrated")
