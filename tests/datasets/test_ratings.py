"""Intervals over real ratings cover the truth about the keys that were kept."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from sfumato.datasets import ratings
from sfumato.mechanisms import ExSub
from sfumato.mechanisms.sparse import KeyValues
from sfumato.mechanisms.sparse.data.holdings import Holdings
from sfumato.randomness import seeded

STARS = KeyValues(
    ExSub(2.0, len(ratings.FILMS), 5, goal="frequency"), ratings.FILMS, low=0.5, high=5.0
)


@cache
def held() -> Holdings:
    return STARS.read(list(ratings.read_ratings().people))


@cache
def collected(people: int, seed: int) -> tuple[Any, Any]:
    """Return what reports of a crowd tell, and the truth; levels share the draws."""
    rng = seeded(seed)
    kept = STARS.kept(ratings.crowd(held(), people, rng), rng)
    reports = STARS.mechanism.randomize(STARS.vectors(kept, rng), rng)
    return STARS.estimate(STARS.mechanism.tally(reports)), STARS.truth(kept)


def coverage(runs: int, people: int, level: float, start: int) -> dict[str, float]:
    """Return how often each answer's interval holds its truth, over films and runs."""
    inside: dict[str, list[float]] = {}
    for seed in range(start, start + runs):
        found, truth = collected(people, seed)
        for name, answer in found.estimates.items():
            low, high = answer.interval(level)
            wanted = getattr(truth, name)
            inside.setdefault(name, []).append(float(np.mean((low <= wanted) & (wanted <= high))))
    return {name: float(np.mean(shares)) for name, shares in inside.items()}


def test_there_are_671_people_and_all_films_of_the_list() -> None:
    found = ratings.read_ratings()
    assert (found.count, len(found.people)) == (100_004, 671)
    assert {film for rated in found.people for film in rated} == set(ratings.FILMS)
    assert {} in found.people  # somebody rated none of them
    assert all(0.5 <= stars <= 5 for rated in found.people for stars in rated.values())


def test_a_crowd_is_drawn_from_real_people() -> None:
    crowd = ratings.crowd(held(), 3000, seeded(1))
    real = {
        (tuple(held().key[held().person == person]), tuple(held().value[held().person == person]))
        for person in range(held().people)
    }
    for person in range(0, 3000, 100):
        rows = crowd.person == person
        assert (tuple(crowd.key[rows]), tuple(crowd.value[rows])) in real


# 110 runs of 30 films: 3,300 intervals for each answer, whose noises hardly depend on each other,
# so a standard error is 0.0038 at 95% and 0.0052 at 90%: the bound is six and five of them away.
@pytest.mark.statistics
def test_intervals_cover() -> None:
    for name, share in coverage(110, 5000, 0.95, 1).items():
        assert 0.927 < share < 0.973, name


@pytest.mark.statistics
def test_intervals_of_a_lower_level_are_told_apart() -> None:
    for name, share in coverage(110, 5000, 0.9, 1).items():
        assert share < 0.927, name


@pytest.mark.slow
def test_intervals_cover_94_to_96_percent() -> None:
    """600 runs: a standard error of 0.0016, so both bounds are six of them away from 95%."""
    for name, share in coverage(600, 20_000, 0.95, 10_000).items():
        assert 0.94 < share < 0.96, name
