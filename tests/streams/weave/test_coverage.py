"""Intervals of means, ranges and differences cover the truth about those who take part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.core.intervals import z_score
from sfumato.randomness import seeded
from sfumato.simulation.made_up_lives import Synthetic
from sfumato.streams.kinds import Attributes, Binary, Category, Items
from sfumato.streams.weave import Curve, Weave
from sfumato.streams.weave.curve import online, smoothed
from sfumato.streams.weave.weave_fleet import collect

PERIODS, DEVICES = 16, 4_000

DESIGNS = [
    Weave(values, PERIODS, changes, epsilon, (1, 2, 0), (0.25, 0.1, 0.65))
    for epsilon in (1.0, 4.0)
    for values, changes in (
        (Binary(), 3),
        (Category(4), 5),
        (Items(3), 4),
        (Attributes({"x": 3, "y": 2}), 6),
    )
]
LIVES: Any = ("uniform", "moving", "slow")
QUESTIONS = ("mean", "range", "difference")


def asked(question: str) -> NDArray[np.float64]:
    """Return some questions of a kind as coefficients of periods."""
    unit = np.eye(PERIODS)
    if question == "mean":
        return unit[::3]
    pairs = [(1, 3), (2, 9), (5, 15), (0, 16), (8, 12)]
    if question == "range":
        return np.array([unit[start:stop].mean(axis=0) for start, stop in pairs])
    return np.array([unit[stop - 1] - unit[start] for start, stop in pairs])


def standardized(curve: Curve, right: NDArray[np.float64], question: str) -> NDArray[np.float64]:
    """Return the errors of all answers to a kind of question, in units of what is stated."""
    found = []
    for coefficients in asked(question):
        answer = curve.combine(coefficients)
        found.append(np.abs(answer.values - coefficients @ right) / answer.standard_errors)
    return np.concatenate(found)


def errors(design: Weave, life: Any, rounds: int) -> Iterator[dict[tuple[str, str], Any]]:
    """Yield, for each collection, the errors of all answers in units of what is stated."""
    streams = Synthetic(design.values, PERIODS, design.changes, DEVICES, life, seed=3).streams()
    right = design.values.totals(streams) / len(streams)
    for place in range(rounds):
        tallies = collect(design, streams, seeded(1_000 + place))
        curves = {"online": online(design, tallies), "smoothed": smoothed(design, tallies)}
        yield {
            (name, question): standardized(curve, right, question)
            for name, curve in curves.items()
            for question in QUESTIONS
        }


def covered(seen: list[Any], level: float) -> tuple[float, float]:
    """Return how often intervals at a level cover, and the standard error of that share."""
    shares = np.array([(error < z_score(level)).mean() for error in seen])
    return float(shares.mean()), float(shares.std(ddof=1) / np.sqrt(shares.size))


@pytest.mark.statistics
def test_intervals_cover_what_they_say() -> None:
    """All kinds of values, lives and questions together; too short and too long ones are seen."""
    everything = [
        found
        for place, design in enumerate(DESIGNS)
        for found in errors(design, LIVES[place % 3], 14)
    ]
    for name in ("online", "smoothed"):
        seen = [np.concatenate([found[name, q] for q in QUESTIONS]) for found in everything]
        share, error = covered(seen, 0.95)
        assert error < 0.008
        assert abs(share - 0.953) < 5 * error
        for wrong in (0.88, 0.992):
            missed, error = covered(seen, wrong)
            assert abs(missed - 0.953) > 5 * error


@pytest.mark.slow
@pytest.mark.parametrize("life", LIVES)
@pytest.mark.parametrize("design", DESIGNS, ids=lambda d: f"{d.values.kind}-{d.epsilon:g}")
def test_each_kind_of_answer_covers(design: Weave, life: Any) -> None:
    seen: dict[tuple[str, str], list[Any]] = {}
    for found in errors(design, life, 600):
        for kind, error in found.items():
            seen.setdefault(kind, []).append(error)
    for kind, inside in seen.items():
        share, error = covered(inside, 0.95)
        assert 0.94 - 5 * error < share < 0.96 + 5 * error, kind
