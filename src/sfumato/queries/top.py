"""The largest values of an estimate, with intervals that survive having been picked."""

from __future__ import annotations

import numpy as np

from sfumato.core.estimate import Estimate
from sfumato.errors import ConfigurationError
from sfumato.queries.postprocess import Processed

__all__ = ["top"]


def top(estimate: Estimate, k: int, level: float = 0.95) -> Processed:
    """Return the k largest values, largest first.

    Those with lucky noise are picked more often, so picked values are too large on average and
    their own intervals would miss the truth too often. Here all intervals of the *whole* estimate
    hold at once at the given level, so those of any picked few do, too.

    Parameters
    ----------
    estimate
        Estimates of shares, means or any numbers; what is not known (NaN) is never picked.
    k
        How many items to pick.
    level
        How often all intervals together hold the truth.

    Examples
    --------
    >>> from sfumato import GRR, seeded
    >>> mechanism = GRR(epsilon=2.0, domain=("cat", "dog", "fish"))
    >>> reports = mechanism.randomize(["dog"] * 600 + ["cat"] * 400, seeded(1))
    >>> found = top(mechanism.estimate(mechanism.tally(reports)), 2)
    >>> found.labels, found.method
    (('dog', 'cat'), 'top(2)')

    """
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ConfigurationError(f"k is {k!r}; a whole number from 1 on is expected.")
    low, high = estimate.band(level)
    order = np.argsort(-np.nan_to_num(estimate.values, nan=-np.inf), kind="stable")
    chosen = order[: min(k, np.count_nonzero(~np.isnan(estimate.values)))]
    return Processed(
        values=estimate.values[chosen],
        low=low[chosen],
        high=high[chosen],
        labels=tuple(estimate.labels[index] for index in chosen),
        method=f"top({k})",
        level=level,
        n=estimate.n,
        guarantee=estimate.guarantee,
    )
