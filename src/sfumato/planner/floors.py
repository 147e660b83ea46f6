"""Floors: the error that no mechanism of a given promise can go below, for one question.

All floors are about estimates that are unbiased whatever people hold, and about n times the squared
error, counted as :attr:`Mechanism.mse` counts it; docs/proofs/floor.md has the proof.
"""

from __future__ import annotations

from math import ceil, comb, exp, expm1, floor
from typing import Any, Final

from sfumato.accounting.shuffle import gaussian_parameter
from sfumato.core.domain import Domain

__all__ = ["least_error", "least_shuffled_error"]

MANY: Final = 1 << 60


def least_error(epsilon: float, **question: Any) -> float:
    """Return n times the least squared error of any unbiased mechanism of a local epsilon.

    Parameters
    ----------
    epsilon
        The privacy of one report.
    question
        The question in the words of :func:`~sfumato.planner.comparison.candidates`: ``domain``;
        ``low`` and ``high``; or ``dimension`` and ``sparsity``, with a ``goal`` if it is not value.

    Examples
    --------
    >>> from sfumato import Concord, SubsetSelection
    >>> round(SubsetSelection(1.0, 128).mse / least_error(1.0, domain=128), 4)
    1.0
    >>> round(Concord(1.0, 256, 8).mse / least_error(1.0, dimension=256, sparsity=8), 2)
    1.28

    """
    if "domain" in question:
        items = Domain.of(question["domain"]).size
        return _presence(epsilon, items, 1) / items
    if "low" in question:
        half = (question["high"] - question["low"]) / 2
        return float(half**2 * _value(epsilon, 1, 1))
    sizes = question["dimension"], question["sparsity"]
    presence = question.get("goal") == "frequency"
    return _presence(epsilon, *sizes) if presence else _value(epsilon, *sizes)


def _value(epsilon: float, entries: int, held: int) -> float:
    """Return the floor of the total error of the means of vectors with so many non-zeros."""
    inputs, most = _subsets(entries, held) << min(held, 64), expm1(epsilon)

    def apart(favoured: int) -> float:
        share = favoured / inputs
        return 2 * share * (most / (1 + share * most)) ** 2

    reversed_ = max(map(apart, _around(inputs / most, inputs // 2)))
    return max(0.0, 4 * held * entries / reversed_ - held)


def _presence(epsilon: float, entries: int, held: int) -> float:
    """Return the floor of the total error of how often each of some entries is held."""
    inputs, most = _subsets(entries, held), exp(epsilon)

    def apart(favoured: int) -> float:
        share = favoured / inputs
        return share * (1 - share) * ((most - 1) / (1 + share * (most - 1))) ** 2

    among_all = max(map(apart, _around(inputs / (most + 1), inputs - 1)), default=0.0)
    spread = held * (1 - held / entries)
    return max(0.0, spread * ((entries - 1) / among_all - 1)) if among_all else 0.0


def _subsets(entries: int, held: int) -> int:
    """Return how many subsets there are, or a large number if there are many: a lower floor."""
    few = min(held, entries - held)
    return min(comb(entries, few), MANY) if few <= 8 else MANY


def _around(best: float, last: int) -> list[int]:
    """Return the whole numbers from 1 to the last one that are next to a number."""
    return [min(max(whole, 1), last) for whole in (floor(best), ceil(best))] if last else []


def least_shuffled_error(
    epsilon: float, delta: float, people: int, dimension: int, sparsity: int
) -> float:
    """Return n times the least squared error of the means of shuffled sparse vectors.

    It is 4 s d / (n mu^2) - s, where mu is the Gaussian parameter of the central promise, and holds
    for laws that do not change with the number n of people, in the limit of many people.

    Examples
    --------
    >>> round(least_shuffled_error(0.05, 1e-6, 10_000, 256, 8))
    3923

    """
    tolerated = people * gaussian_parameter(epsilon, delta) ** 2
    return max(0.0, 4 * sparsity * dimension / tolerated - sparsity)
