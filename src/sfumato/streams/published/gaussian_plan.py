"""The plan of publishing all columns of a table with discrete Gaussian noise."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

from sfumato.accounting.gaussian_profile import GaussianBudget, largest_choice
from sfumato.core.field_checks import check_number, check_whole
from sfumato.core.noise import share_of
from sfumato.streams.published.publishing_methods import (
    HOLDOUT,
    LIMIT,
    Wish,
    tuned_threshold,
    tuned_tree,
)
from sfumato.streams.published.publishing_plan import MOST_WATCHED, PublishingPlan
from sfumato.streams.published.thresholds import Fixed

__all__ = ["gaussian_plan"]


def gaussian_plan(  # noqa: PLR0913 - what a curator decides
    *,
    epsilon: float,
    delta: float,
    bound: int,
    columns: int = 1,
    holdout: int = HOLDOUT,
    limit: int = LIMIT,
    threshold: int | None = None,
    block: int | None = None,
    smoother: str = "recent",
    reuse: float = 0.0,
    per_person: int = 0,
    renew: int = 0,
) -> PublishingPlan:
    """Return the plan of each of several columns, with discrete Gaussian noise.

    Parameters
    ----------
    epsilon, delta
        The privacy of a row, over all columns together.
    columns
        The number of streams in which each row has a value.
    bound, holdout, limit, threshold, block, smoother, reuse, per_person, renew
        As for :func:`~sfumato.streams.published.plan`.

    Examples
    --------
    >>> release = gaussian_plan(epsilon=1.0, delta=1e-6, columns=3, bound=30_000)
    >>> release.tree, release.block
    (Ring(leaves=2048), 512)

    """
    check_number("delta", delta, above=0, below=1)
    check_whole("limit", limit, 2)
    check_whole("columns", columns, 1)
    check_number("reuse", reuse, least=0, below=1)
    chosen, values = renew > 0 or threshold is None, max(per_person, 1)
    each = _choice(epsilon, delta, columns, Fraction(repr(float(reuse)))) / values
    both = chosen and reuse > 0
    budget = GaussianBudget(epsilon, delta, columns, values, each if chosen else 0.0, both=both)
    mu = budget.mu / (values * math.sqrt(columns))
    wish = Wish(each, bound, max(holdout, 1), limit, mu)
    tree, width = tuned_tree(wish, block)
    watching = replace(wish, holdout=min(max(renew, 1), MOST_WATCHED))
    return PublishingPlan(
        epsilon,
        bound,
        tuned_threshold(wish, tree, width) if threshold is None else Fixed(threshold),
        holdout if threshold is None else 0,
        tree,
        width,
        smoother,
        float(reuse),
        per_person,
        renew,
        tuned_threshold(watching, tree, width) if renew else None,
        float(delta),
        columns,
    )


def _choice(epsilon: float, delta: float, columns: int, reuse: Fraction) -> float:
    """Return the epsilon of the choice of one threshold, for all values of a person.

    Choices have the share ``reuse`` of epsilon and delta or, if they are made from other values
    than are published, all of it; noise has what they leave.
    """
    share = reuse or Fraction(1)
    return largest_choice(share_of(epsilon, share), float(share) * delta, columns)
