"""The largest values of an estimate, with intervals that stay valid after the selection."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sfumato.core.answers import Answers
from sfumato.core.estimate import Estimate
from sfumato.errors import ConfigurationError

__all__ = ["top"]


def top(estimate: Estimate, k: int, level: float = 0.95) -> Answers:
    """Return the k largest values, largest first.

    Values with lucky noise are picked more often, so picked values are too large on average, and
    their own intervals would miss the truth too often. Here the level holds for all intervals of
    the *whole* estimate at once, and so for those of any selection.

    Parameters
    ----------
    estimate
        Estimates of shares, means or other numbers; unknown values (nan) are never picked.
    k
        How many items to pick.
    level
        The probability that all intervals contain their truths.

    Examples
    --------
    >>> from sfumato import GRR, seeded
    >>> mechanism = GRR(epsilon=2.0, domain=("cat", "dog", "fish"))
    >>> reports = mechanism.randomize(["dog"] * 600 + ["cat"] * 400, seeded(1))
    >>> largest = top(mechanism.estimate(mechanism.tally(reports)), 2)
    >>> largest.labels, largest.method
    (('dog', 'cat'), 'top(2)')

    """
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ConfigurationError(f"k is {k!r}; a whole number from 1 on is expected.")
    answers = estimate.answers(level, band=True).largest()
    known = np.count_nonzero(~np.isnan(estimate.values))
    return replace(answers.pick(slice(min(k, known))), method=f"top({k})")
