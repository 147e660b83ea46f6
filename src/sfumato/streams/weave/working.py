"""Working variances: the variances of single reports that the weights assume.

*Planned* weights use the planned variance, so they are known before any report comes and estimates
are exactly unbiased. *Learnt* weights use the variance that reports of earlier periods have shown.
If devices hardly differ or hardly change, snapshots and differences are better than planned, each
by another factor; learnt weights follow that, so that a mix for busy devices is also good for quiet
ones. A period's own reports never affect its own weights, and the variance of an edge is fixed once
its period has closed, so releases stay final.

As a high share makes later snapshots look noisier, estimates with learnt weights are unbiased only
in the limit of many reports.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np

from sfumato.arrays import Floats
from sfumato.streams.snapshots import Snapshot

__all__ = ["WEIGHTS", "Weights", "Working"]

Weights = Literal["learnt", "planned"]
WEIGHTS: Final = ("learnt", "planned")

PRIOR: Final = 5.0
"""The number of reports that the plan counts for."""


class Working:
    """The working variance of one report of each span, for one block of entries.

    Parameters
    ----------
    look
        The snapshot of the block.
    weights
        ``planned`` to keep the planned variances; ``learnt`` to use those of earlier periods.

    Examples
    --------
    >>> from sfumato.streams.snapshots import of_bit
    >>> working = Working(of_bit(2.0), "learnt")
    >>> working.of_difference(1, planned=8.0)
    8.0
    >>> working.take_difference(1, n=96, spread=0.5)
    >>> working.of_difference(1, planned=8.0)
    4.24

    """

    def __init__(self, look: Snapshot, weights: Weights) -> None:
        self._look = look
        self._learns = weights == "learnt"
        self._spans: dict[int, tuple[float, float]] = {}
        self._looks = 0.0
        self._seen: Floats | float = 0.0

    def of_difference(self, span: int, planned: float) -> float:
        """Return the working variance of one difference, given the planned one."""
        degrees, total = self._spans.get(span, (PRIOR, PRIOR))
        return planned * total / degrees

    def of_look(self) -> float:
        """Return the working variance of one snapshot."""
        planned = self._look.variance
        if not self._looks:
            return planned
        shares = np.clip(np.asarray(self._seen) / self._looks, 0.0, 1.0)
        shown = float(self._look.variance_at_share(shares).mean())
        return (PRIOR * planned + self._looks * shown) / (PRIOR + self._looks)

    def take_difference(self, span: int, n: float, spread: float) -> None:
        """Learn from the differences of a closed period.

        Parameters
        ----------
        span
            The number of periods that the differences span.
        n
            The number of reports.
        spread
            Their variance around their own mean, averaged over entries, as a multiple of the
            planned one.

        """
        if self._learns:
            degrees, total = self._spans.get(span, (PRIOR, PRIOR))
            # One report is used up for the mean, and tells nothing about the variance.
            self._spans[span] = (degrees + n - 1, total + n * spread)

    def take_look(self, n: float, shares: Floats) -> None:
        """Learn from the snapshots of a closed period: their number, and their mean shares."""
        if self._learns:
            self._looks += n
            self._seen = self._seen + n * shares
