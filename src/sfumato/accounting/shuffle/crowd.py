"""The crowd that hides a report: how many people are certain to report, and are honest.

All numbers are rounded towards fewer people, because more people never reveal more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sfumato.accounting.shuffle.bounds import check_people
from sfumato.core.field_checks import check_number

__all__ = ["Crowd"]

_SHARE_OF_DELTA: Final = 0.01


@dataclass(frozen=True)
class Crowd:
    """The people whose reports are shuffled together.

    Parameters
    ----------
    n
        The smallest number of reports in a batch or, with ``dropout`` or ``share``, the number of
        people who were asked.
    colluding
        The largest fraction of these people who may reveal their own reports to the observer.
    dropout
        The probability that a person does not report, independently of everything else.
    share
        The probability that a person is in the same bucket, such as a level of a hierarchy; only
        the reports of one bucket are mixed.

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
        """Raise ConfigurationError unless all fields are in their ranges."""
        check_people(self.n)
        for name in ("colluding", "dropout"):
            check_number(name, getattr(self, name), least=0, below=1)
        check_number("share", self.share, above=0, most=1)

    def honest(self, delta: float) -> tuple[int, float]:
        """Return a number of people who hide a report, and the probability that there are fewer.

        The probability is zero if the size of the batch is guaranteed, and a hundredth of delta
        otherwise. (If people may be absent, Chernoff's inequality bounds their number.)
        """
        left = self.n - math.floor(Fraction(self.colluding) * self.n)
        here = self.share * (1 - self.dropout)
        if here == 1 or left == 1:
            return max(left, 1), 0.0
        spent = delta * _SHARE_OF_DELTA
        if not spent:
            return 1, 0.0
        # The hidden person reports; of the others, Binomial(left - 1, here) do.
        low, high = 0, left  # the probability of fewer than `low` others is below `spent`
        while high - low > 1:
            middle = (low + high) // 2
            rare = _at_most(middle - 1, left - 1, here * (1 - 1e-15)) <= spent
            low, high = (middle, high) if rare else (low, middle)
        return low + 1, spent


def _at_most(k: int, n: int, chance: float) -> float:
    """Return Chernoff's bound e^(-n D(k/n || chance)) of P[Binomial(n, chance) <= k]."""
    if k >= n * chance:
        return 1.0
    if k < 0:
        return 0.0
    share = k / n
    divergence = (1 - share) * math.log((1 - share) / (1 - chance))
    if k:
        divergence += share * math.log(share / chance)
    return math.exp(-n * divergence * (1 - 1e-9))
