"""In which crowd a report hides: how many are there for sure, and how many of them are on its side.

Everything here errs towards fewer people: more of them never tell more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sfumato.accounting.shuffle.bounds import check_people
from sfumato.core.exact import is_finite_number
from sfumato.errors import ConfigurationError

__all__ = ["Crowd"]

_SHARE_OF_DELTA: Final = 0.01


@dataclass(frozen=True)
class Crowd:
    """The people whose reports are shuffled together.

    Parameters
    ----------
    n
        How many reports there are: those of a batch that is never released with fewer or, with
        ``dropout`` or ``share``, people who were asked.
    colluding
        The largest fraction of them that may tell their own reports to the observer.
    dropout
        The chance with which a person, independently and whatever they hold, does not report.
    share
        The chance with which a person is in the bucket in question, such as that of a level of a
        hierarchy: only reports of one bucket mix.

    Examples
    --------
    >>> Crowd(20_000, colluding=0.1).honest(1e-6)
    (18000, 0.0)
    >>> Crowd(20_000, dropout=0.1).honest(1e-6)
    (17738, 1e-08)

    """

    n: int
    colluding: float = 0.0
    dropout: float = 0.0
    share: float = 1.0

    def __post_init__(self) -> None:
        """Refuse what is no crowd."""
        check_people(self.n)
        for name in ("colluding", "dropout"):
            given = getattr(self, name)
            if not is_finite_number(given) or not 0 <= given < 1:
                raise ConfigurationError(
                    f"{name} is {given!r}; a fraction from 0 to below 1 is expected."
                )
        if not is_finite_number(self.share) or not 0 < self.share <= 1:
            raise ConfigurationError(
                f"share is {self.share!r}; a fraction above 0 and up to 1 is expected."
            )

    def honest(self, delta: float) -> tuple[int, float]:
        """Return how many people hide a report, and with what probability there are fewer.

        That probability is zero if the batch is guaranteed, else a hundredth of delta. (Of those
        who may be absent the number is bounded by Chernoff's inequality.)
        """
        left = self.n - math.floor(Fraction(self.colluding) * self.n)
        here = self.share * (1 - self.dropout)
        if here == 1 or left == 1:
            return max(left, 1), 0.0
        spent = delta * _SHARE_OF_DELTA
        if not spent:
            return 1, 0.0
        # The one in question reports; of the others, Binomial(left - 1, here) do.
        low, high = 0, left  # fewer than `low` others are rarer than `spent`
        while high - low > 1:
            middle = (low + high) // 2
            rare = _at_most(middle - 1, left - 1, here * (1 - 1e-15)) <= spent
            low, high = (middle, high) if rare else (low, middle)
        return low + 1, spent


def _at_most(k: int, n: int, chance: float) -> float:
    """Return a bound of P[Binomial(n, chance) <= k]: e^(-n D(k/n || chance))."""
    if k >= n * chance:
        return 1.0
    if k < 0:
        return 0.0
    found = k / n
    divergence = (1 - found) * math.log((1 - found) / (1 - chance))
    if k:
        divergence += found * math.log(found / chance)
    return math.exp(-n * divergence * (1 - 1e-9))
