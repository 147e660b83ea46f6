"""How improbable reports are if all devices are honest, whatever the devices hold.

Both bounds hold exactly, for any number of reports and any values that the devices hold:

* A report *supports* an entry with a probability between q and p. So the number of supports among n
  reports is, in law, at least that of n coins of probability q and at most that of n coins of
  probability p, and Chernoff's bound of its tail is exp(-n KL(count/n | q)), or of p.
* A debiased report is at most ``reach`` away from its mean and has at most the variance
  ``variance``. The mean of n of them is x above a mean that the values can have with a probability
  of at most exp(-n x^2 / (2 (variance + reach x / 3))) (Bernstein).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from sfumato.arrays import Floats, Ints

__all__ = ["Doubt"]


@dataclass(frozen=True, eq=False)
class Doubt:
    """What some reports say of each entry, and how improbable that is if devices are honest.

    Parameters
    ----------
    values
        What the reports say of each entry, without bias.
    low, high
        The smallest and the largest value that is possible.
    logs
        The natural logarithm of an upper bound on the probability that honest reports are as far
        out, on the same side; 0 for an entry that is not out at all.
    what
        What the values are, as the beginning of a sentence.
    about
        What the values are of, if not of the stream's entries.

    """

    values: Floats
    low: float
    high: float
    logs: Floats
    what: str = "what reports say"
    about: str = ""

    @classmethod
    def of_supports(cls, counts: Ints, n: int, p: float, q: float) -> Self:
        """Return the doubt about counts of supports, whose shares lie in 0..1.

        Examples
        --------
        >>> none, half = Doubt.of_supports(np.array([0, 500]), 1000, p=0.5, q=0.25).logs.round(1)
        >>> float(none), float(half)  # all of 1,000 coins of probability 3/4 fail to support
        (-287.7, 0.0)

        """
        share = counts / n
        nearest = np.clip(share, q, p)
        logs = -n * (_divergence(share, nearest) + _divergence(1 - share, 1 - nearest))
        return cls((share - q) / (p - q), 0.0, 1.0, np.minimum(logs, 0.0))

    @classmethod
    def of_means(
        cls, values: Floats, n: int, span: tuple[float, float], variance: float, reach: float
    ) -> Self:
        """Return the doubt about means of debiased reports, whose truth lies in a span."""
        low, high = span
        out = np.maximum(np.maximum(low - values, values - high), 0.0)
        logs = -n * out**2 / (2 * (variance + reach * out / 3))
        return cls(np.asarray(values), low, high, logs)

    def only(self, entries: Any) -> Self:
        """Return the doubt about some of the entries."""
        return replace(self, values=self.values[entries], logs=self.logs[entries])

    def halved(self) -> Self:
        """Return the doubt about signs as one about the shares of those that are plus."""
        return replace(self, values=(self.values + 1) / 2, low=0.0, high=1.0)


def _divergence(share: Floats, other: Floats) -> Floats:
    """Return share log(share / other), which is 0 at a share of 0."""
    some = share > 0
    return np.asarray(
        np.where(some, share * np.log(np.where(some, share, 1.0) / np.where(some, other, 1.0)), 0.0)
    )
