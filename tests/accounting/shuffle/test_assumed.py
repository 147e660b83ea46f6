"""Bounds that rest on random hashes say so, and are used only if a caller asks for them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from sfumato import GRR, Collision
from sfumato.accounting.shuffle import (
    BatchedReport,
    Crowd,
    Levels,
    Requirement,
    assumption_of,
    best,
    calibrated,
    composed,
    holds,
    people_needed,
)
from sfumato.core import Contrasts

HASHED = Collision(1.0, 256, 4, hash_range=16)
RANDOM = "the hashes of reports are as good as random functions"


class WithoutAssumptions:
    """A mechanism of which nothing is known but what its law says."""

    worst_ratio: Fraction = HASHED.worst_ratio

    def contrasts(self) -> tuple[Contrasts, ...]:
        return HASHED.contrasts()[:1]


def test_a_mechanism_that_hashes_says_what_may_be_assumed() -> None:
    assert assumption_of(HASHED) == RANDOM
    assert assumption_of(GRR(1.0, 16)) == ""
    assert assumption_of(Levels([(0.5, HASHED), (0.5, GRR(1.0, 4))])) == RANDOM


@pytest.mark.statistics
def test_many_reports_rest_on_nothing_unless_asked() -> None:
    plain, assuming = (
        BatchedReport(HASHED, 10_000, 10),
        BatchedReport(HASHED, 10_000, 10, assuming=True),
    )
    assert (plain.assumes, assuming.assumes) == ("", RANDOM)
    without = composed([BatchedReport(WithoutAssumptions(), 10_000, 10)], 1e-6)
    assert composed([plain], 1e-6) == without
    assert composed([assuming], 1e-6) < 0.99 * without


@pytest.mark.statistics
def test_people_are_counted_without_assumptions_unless_asked() -> None:
    needed = people_needed(HASHED, 0.05, 1e-6)
    assert needed == people_needed(WithoutAssumptions(), 0.05, 1e-6)
    fewer = people_needed(HASHED, 0.05, 1e-6, assuming=True)
    assert fewer < needed
    assert holds(HASHED, 0.05, 1e-6, Crowd(fewer), assuming=True)
    assert not holds(HASHED, 0.05, 1e-6, Crowd(fewer))


@pytest.mark.statistics
def test_a_local_epsilon_is_found_without_assumptions_unless_asked() -> None:
    required = Requirement(0.05, 1e-6, 10_000)

    def made(epsilon: float) -> Collision:
        return replace(HASHED, epsilon=epsilon)

    plain = calibrated(made, required, most=2.0)
    assuming = calibrated(made, required, most=2.0, assuming=True)
    assert plain.epsilon < assuming.epsilon
    assert holds(plain, 0.05, 1e-6, required.crowd)
    assert not holds(assuming, 0.05, 1e-6, required.crowd)


def test_levels_of_hashes_say_what_their_smaller_bound_assumes() -> None:
    levels = Levels([(0.5, HASHED), (0.5, replace(HASHED, epsilon=0.9))])
    known = levels.contrasts()
    assert [each.assumption for each in known] == ["", RANDOM]
    bound = best(levels, 10_000, 1e-6)
    assert bound.assumes == RANDOM
    alone = BatchedReport(levels, 10_000).epsilon(1e-6)
    assert bound.epsilon == pytest.approx(
        BatchedReport(levels, 10_000, assuming=True).epsilon(1e-6)
    )
    assert bound.epsilon is not None
    assert bound.epsilon < alone
