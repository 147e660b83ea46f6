"""Joint estimates of a key's share and of its values, and of their ratio.

A report supports a key as plus (A = 1), as minus (B = 1), or as neither. With X = A - B and
Z = A + B - 2 p_false, X / contrast is an unbiased estimate of a person's value (zero without the
key), and Z / presence of whether the person has the key. Both come from the same two counts: X^2,
Z^2 and XZ all have known means, so the law of any combination is known, and with it that of

    T(m) = X / contrast - m Z / presence,

whose mean is zero at the mean m of the values of those who hold the key. The interval of m contains
every m for which the mean of T is within z of *its own* standard deviations of zero (Fieller 1954):
it needs no division by a small share, and it is the whole range if nothing is known.

People's keys are fixed, and each value is rounded to plus or minus by a coin. The values of one key
are assumed to be equal, which is the worst case: intervals cover slightly more often than their
level if values are spread out and epsilon is large.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sfumato.arrays import Floats, Ints
from sfumato.core.estimate import Estimate, checked_level
from sfumato.core.intervals import z_score
from sfumato.mechanisms.sparse.sparse_mechanism import EntryLaw

__all__ = ["ConditionalMean", "Joint"]


@dataclass(frozen=True, eq=False)
class Joint:
    """Estimates of each key's share and mean value, with their joint law.

    Parameters
    ----------
    law
        The law of the mechanism's reports, for one entry.
    n
        How many reports there are.
    share, value
        Unbiased estimates of the share of people who hold each key, and of the sum of their values
        divided by n.

    """

    law: EntryLaw
    n: int
    share: Floats
    value: Floats

    @classmethod
    def of(cls, law: EntryLaw, n: int, counts: Ints) -> Joint:
        """Return the estimates from the counts of reports that support each key as plus, minus."""
        plus, minus = counts / n
        share = (plus + minus - 2 * law.p_false) / law.presence
        return cls(law, n, share, (plus - minus) / law.contrast)

    @property
    def likely_share(self) -> Floats:
        """The estimated share, clipped to [0, 1]."""
        return np.clip(self.share, 0.0, 1.0)

    @property
    def ratio(self) -> Floats:
        """The mean value of those who hold each key, in [-1, 1]; nan if nobody seems to."""
        some = np.where(self.share > 0, self.share, np.nan)
        return np.clip(self.value / some, -1.0, 1.0)

    def _moments(self) -> tuple[Floats, float, Floats]:
        """Return E[X^2] / contrast^2, E[XZ] / (contrast presence value), E[Z^2] / presence^2."""
        law, share = self.law, self.likely_share
        absent, held = law.value_variances()
        square = (1 - share) * absent + share * (held + 1)
        none = 2 * law.p_false
        sent = none + share * law.presence
        # (A + B)^2 + (A - B)^2 = 2 (A + B)
        both = 2 * sent - square * law.contrast**2 - 2 * none * sent + none**2
        return square, (1 - none) / law.presence, both / law.presence**2

    def variance_of(self, value: float, share: float) -> Floats:
        """Return the variance of value * (estimated value) + share * (estimated share)."""
        xx, xz, zz = self._moments()
        held = self.likely_share
        middle = np.nan_to_num(self.ratio)
        total = value**2 * xx + 2 * value * share * xz * middle * held + share**2 * zz
        return np.maximum(total - held * (value * middle + share) ** 2, 0.0) / self.n

    def ratio_variance(self) -> Floats:
        """Return the variance of the ratio for keys that are not rare; at most 1."""
        xx, xz, zz = self._moments()
        middle = np.nan_to_num(self.ratio)
        noise = xx + middle**2 * (zz - 2 * self.likely_share * xz)
        with np.errstate(divide="ignore"):
            return np.clip(noise / (self.n * self.likely_share**2), 0.0, 1.0)

    def ratio_interval(self, level: float) -> tuple[Floats, Floats]:
        """Return the smallest and largest ratios in [-1, 1] that the counts do not reject.

        If nobody seems to hold the key, these are -1 and 1.
        """
        xx, xz, zz = self._moments()
        k = z_score(level) ** 2 / self.n
        # (value - m share)^2 <= k (xx + m^2 (zz - 2 share xz)), as a m^2 - 2 b m + c <= 0.
        a = self.share**2 - k * (zz - 2 * self.likely_share * xz)
        b = self.value * self.share
        c = self.value**2 - k * xx
        root = np.sqrt(np.maximum(b * b - a * c, 0.0))
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.sort([(b - root) / a, (b + root) / a], axis=0)
        inside = (a > 0) & (self.share > 0)
        low = np.where(inside, np.clip(ends[0], -1, 1), -1.0)
        high = np.where(inside, np.clip(ends[1], -1, 1), 1.0)
        # If the parabola opens downwards, the ratios between the roots are rejected, at one end at
        # most.
        outside = (a < 0) & (self.share > 0) & (b * b > a * c)
        low = np.where(outside & (ends[0] < -1) & (ends[1] < 1), np.maximum(ends[1], -1.0), low)
        high = np.where(outside & (ends[1] > 1) & (ends[0] > -1), np.minimum(ends[0], 1.0), high)
        middle = self.ratio
        return np.fmin(low, middle), np.fmax(high, middle)


@dataclass(frozen=True, eq=False, repr=False)
class ConditionalMean(Estimate):
    """The mean value of those who hold each key; nan if nobody seems to.

    Parameters
    ----------
    joint
        The estimates of share and value of each key, with values in [-1, 1].
    low, high
        The numbers that -1 and 1 stand for.

    """

    joint: Joint = field(kw_only=True)
    low: float = -1.0
    high: float = 1.0

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Return Fieller's interval of each mean: the whole range if nothing is known."""
        ends = self.joint.ratio_interval(checked_level(level))
        low, high = (self.low + (end + 1) / 2 * (self.high - self.low) for end in ends)
        return low, high
