from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import log
from typing import Any

import numpy as np
import pytest
from tests.accounting.shuffle.enumeration import Shuffled, laws_of

from sfumato import GRR, ExSub
from sfumato.accounting.shuffle import (
    BatchedReport,
    Crowd,
    Levels,
    Requirement,
    calibrated,
    compose,
    composed,
    delta_above,
    holds,
)
from sfumato.core.contrast import Contrast, Contrasts
from sfumato.errors import ConfigurationError


def _delta_of_two(n: int, epsilon: float) -> float:
    """Return the largest divergence of two rounds, listed for all datasets of a few people."""
    rounds = list(Shuffled(laws_of(GRR(1.0, 2)), n).neighbours())
    worst = 0.0
    for first, second in product(rounds, repeat=2):
        pairs = [np.outer(first[held], second[held]) for held in (0, 1)]
        for a, b in (pairs, pairs[::-1]):
            worst = max(worst, float(np.maximum(a - math.exp(epsilon) * b, 0).sum()))
    return worst


@pytest.mark.statistics
def test_two_batches_are_covered_for_every_dataset() -> None:
    for n, epsilon in ((2, 0.9), (4, 0.7)):
        truth = _delta_of_two(n, epsilon)
        assert composed([BatchedReport(GRR(1.0, 2), n, times=2)], truth * (1 - 1e-9)) >= epsilon


def test_many_batches_add_up_like_a_random_walk() -> None:
    once = composed([BatchedReport(GRR(1.0, 16), 10_000)], 1e-6)
    often = composed([BatchedReport(GRR(1.0, 16), 10_000, times=64)], 1e-6)
    assert 8 * once < often < 1.25 * 8 * once  # a little above the root, as there is no free lunch


@pytest.mark.statistics
def test_different_batches_compose_in_any_order() -> None:
    one, two = (
        BatchedReport(GRR(1.0, 16), 10_000, times=3),
        BatchedReport(GRR(0.5, 4), 5_000, times=5),
    )
    both = composed([one, two], 1e-6)
    assert both == pytest.approx(composed([two, one], 1e-6), rel=1e-6)
    assert both > max(composed([one], 1e-6), composed([two], 1e-6))


def test_the_error_of_a_sum_is_below_its_bound() -> None:
    """The law of a sum by transforms, against exact fractions; the bound is not absurdly large."""
    rng = np.random.default_rng(9)
    for times, halves in (([5], [3]), ([40, 7], [2, 5]), ([1, 1, 30], [4, 1, 3])):
        laws = []
        for half in halves:
            weights = rng.integers(1, 1000, 2 * half + 1)
            laws.append(weights / weights.sum())
        reach = sum(count * half for count, half in zip(times, halves, strict=True))
        size = 1 << (2 * reach + 1).bit_length()
        law, wrong = compose._convolved(times, laws, size)  # noqa: SLF001
        exact = [Fraction(1)]
        for count, chances in zip(times, laws, strict=True):
            for _ in range(count):
                grown = [Fraction(0)] * (len(exact) + len(chances) - 1)
                for i, one in enumerate(exact):
                    for j, other in enumerate(chances.tolist()):
                        grown[i + j] += one * Fraction(other)
                exact = grown
        found = np.concatenate([law[size - reach :], law[: reach + 1]])
        error = sum(
            abs(Fraction(each) - right) for each, right in zip(found.tolist(), exact, strict=True)
        )
        assert error <= wrong < 1e-10


def test_without_delta_losses_add_up() -> None:
    assert composed([BatchedReport(GRR(1.0, 4), 100, times=3)], 0.0) == pytest.approx(3.0)


def test_people_of_all_levels_hide_a_report_that_says_its_level() -> None:
    n, shares = 20_000, (0.75, 0.25)
    parts = list(zip(shares, (GRR(1.0, 8), GRR(1.0, 32)), strict=True))
    together = delta_above(Levels(parts).contrasts()[0].bounding, n, 0.02)
    apart = []
    for share, mechanism in parts:
        honest, spent = Crowd(n, share=share).honest(1e-6)
        apart.append(delta_above(mechanism.contrasts()[0].bounding, honest, 0.02) + spent)
    assert 0 < together < max(apart)


def test_levels_are_calibrated_like_one_mechanism() -> None:
    required = Requirement(0.05, 1e-6, 10_000)

    def made(epsilon: float) -> Levels:
        return Levels([(0.5, GRR(epsilon, 8)), (0.5, ExSub(epsilon, 32, 2))])

    found = calibrated(made, required)
    assert holds(found, 0.05, 1e-6, required.crowd)
    following = made(round(float(log(found.worst_ratio)) * 1e4 + 1) / 1e4)
    assert not holds(following, 0.05, 1e-6, required.crowd)


def test_levels_that_are_worst_in_different_orders_are_covered() -> None:
    """A level may be described in either order of its worst pair: both must count at once."""

    @dataclass(frozen=True)
    class Described:
        contrast: Contrast
        worst_ratio: Fraction = Fraction(3)

        def contrasts(self) -> tuple[Contrasts, ...]:
            return (Contrasts((self.contrast,), ()),)

    two, three, fifth = Fraction(2), Fraction(3), Fraction(1, 5)
    one = Contrast.of({(two, Fraction(1)): 2 * fifth, (Fraction(1), three): fifth})
    assert not one.symmetric
    levels: Any = [(0.5, Described(one)), (0.5, Described(one.swapped))]
    for n, epsilon in ((1, 0.2), (1, 0.6), (5, 0.2)):
        worst = delta_above([one], n, epsilon)
        assert worst <= delta_above(Levels(levels).contrasts()[0].bounding, n, epsilon)


def test_levels_must_be_drawn_with_chances() -> None:
    with pytest.raises(ConfigurationError, match=r"sum to 0\.9"):
        Levels([(0.9, GRR(1.0, 4))])
    with pytest.raises(ConfigurationError, match="batches is empty"):
        composed([], 1e-6)
