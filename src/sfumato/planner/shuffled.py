"""Which mechanism to take when reports are shuffled: the least error at equal central privacy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from sfumato.accounting.shuffle import Requirement, calibrated
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
    """Return all mechanisms for a question with the local epsilon a requirement allows, best first.

    What is the most accurate at one local epsilon need not be so at one central epsilon: some
    mechanisms hide better among others.

    Parameters
    ----------
    required
        The central promise, and the crowd.
    most
        The owner's limit of the local epsilon.
    progress
        Told the name of each mechanism.
    question
        What all of them need, without epsilon.

    """
    found = []
    for mechanism in candidates(epsilon=min(1.0, most), **question):
        progress(mechanism.name)
        found.append(calibrated(_remade(mechanism), required, most))
    return sorted(
        found,
        key=lambda one: (
            not answers(one, **question),
            float(f"{one.mse:.9g}"),
            one.report_bytes,
        ),
    )


def _remade(mechanism: Mechanism) -> Callable[[float], Mechanism]:
    return lambda epsilon: replace(mechanism, epsilon=epsilon)
