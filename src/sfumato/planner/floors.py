"""Floors: the error that no mechanism of a given promise can go below, for one question.

All floors are about estimates that are unbiased whatever people hold, and about n times the squared
error, counted as :attr:`Mechanism.mse` counts it; docs/proofs/floor.md has the proof.
"""

from __future__ import annotations

from math import ceil, comb, exp, expm1, floor
from typing import Any, Final

from sfumato.accounting.shuffle import gaussian_parameter
from sfumato.core.domain import Domain
from sfumato.streams.amplification import requirement
from sfumato.wire.task import Task

__all__ = ["least_error", "least_move_error", "least_shuffled_error"]

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


def least_shuffled_error(epsilon: float, delta: float, people: int, **question: Any) -> float:
    """Return n times the least squared error under a promise about shuffled reports.

    It holds for laws that do not change with the number of people, in the limit of many people. For
    the means of sparse vectors it is 4 s d / (n mu^2) - s, where mu is the promise's parameter of
    normal noise.

    Parameters
    ----------
    epsilon, delta
        The promise about shuffled reports.
    people
        The number of people who hide each other.
    question
        The question, as for :func:`least_error`.

    Examples
    --------
    >>> round(least_shuffled_error(0.05, 1e-6, 10_000, dimension=256, sparsity=8))
    3923
    >>> round(least_shuffled_error(0.05, 1e-6, 10_000, domain=256), 3)
    0.948

    """
    tolerated = people * gaussian_parameter(epsilon, delta) ** 2
    if "domain" in question:
        items = Domain.of(question["domain"]).size
        return _apart_among(tolerated, items, 1) / items
    if "low" in question:
        half = (question["high"] - question["low"]) / 2
        return float(half**2 * max(0.0, 4 / tolerated - 1))
    entries, held = question["dimension"], question["sparsity"]
    if question.get("goal") == "frequency":
        return _apart_among(tolerated, entries, held)
    return float(max(0.0, 4 * held * entries / tolerated - held))


def _apart_among(tolerated: float, entries: int, held: int) -> float:
    """Return the floor of how often entries are held, if no two inputs are further apart."""
    return max(0.0, held * (1 - held / entries) * (2 * (entries - 1) / tolerated - 1))


def least_move_error(task: Task, devices: int) -> float | None:
    """Return the least RMSE of a period's mean move under a promise about shuffled reports.

    A stream of moves is one sparse vector, so that this is the floor of vectors, on average over
    all periods and items. It is None for tasks without such a promise, and for all other streams,
    of which no floor is known.
    """
    required = requirement(task.plain())
    if required is None or task.stream != "flat":
        return None
    honest, _ = required.crowd.honest(required.delta)
    entries = task.periods * task.values.width
    question = {"dimension": entries, "sparsity": task.design["changes"]}
    total = least_shuffled_error(required.epsilon, required.delta, honest, **question)
    return float((total / entries / devices) ** 0.5)
