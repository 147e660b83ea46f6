"""The mechanisms for shuffled reports: the least error at equal central privacy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sfumato.accounting.shuffle import Requirement, sized
from sfumato.core.exact import LARGEST_EPSILON
from sfumato.core.mechanism import Mechanism
from sfumato.planner.comparison import answers, candidates

__all__ = ["compare_shuffled"]


def compare_shuffled(
    required: Requirement,
    most: float = LARGEST_EPSILON,
    progress: Callable[[str], None] = lambda _: None,
    **question: Any,
) -> list[Mechanism]:
    """Return the mechanisms for a question at the local epsilon that a requirement allows.

    The best one comes first, each in the size that is best for the requirement. The most accurate
    mechanism or size at one local epsilon need not be so at one central epsilon, because some
    reports are hidden better by shuffling.

    Parameters
    ----------
    required
        The promise about shuffled reports, with its crowd.
    most
        The owner's limit of the local epsilon.
    progress
        Called with the name of each mechanism.
    question
        The parameters that all of the mechanisms need, without epsilon.

    """
    compared = []
    for mechanism in candidates(epsilon=most, **question):
        progress(mechanism.name)
        compared.append(sized(mechanism, required))
    return sorted(
        compared,
        key=lambda one: (
            not answers(one, **question),
            float(f"{one.mse:.9g}"),
            one.report_bytes,
        ),
    )
