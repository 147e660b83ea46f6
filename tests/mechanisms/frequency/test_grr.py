"""Generalized randomized response: reports, shares that sum to one, and their covariance."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from tests.fitting import ALARM, p_value

from sfumato import GRR, seeded


@pytest.mark.parametrize("d", [2, 3, 100, 1 << 20])
def test_one_item_is_sent_and_all_others_are_equally_likely(d: int) -> None:
    p, q = GRR(1.0, d).supports
    assert p + (d - 1) * q == 1


@pytest.mark.parametrize(
    ("d", "size"), [(2, 1), (256, 1), (257, 2), (1 << 16, 2), ((1 << 16) + 1, 4), (1 << 24, 4)]
)
def test_a_report_is_the_code_of_an_item(d: int, size: int) -> None:
    mechanism = GRR(20.0, d)
    assert mechanism.report_bytes == size
    reports = mechanism.randomize([d - 1] * 50, seeded(1))
    codes = [int.from_bytes(report.tobytes(), "little") for report in reports]
    assert max(set(codes), key=codes.count) == d - 1
    assert mechanism.valid(reports).all()


@pytest.mark.parametrize(("epsilon", "d"), [(0.5, 3), (1.0, 100), (4.0, 1000)])
def test_a_large_sample_follows_the_law_and_not_that_of_another_epsilon(
    epsilon: float, d: int
) -> None:
    n, held = 2_000_000, d // 2
    reports = GRR(epsilon, d).randomize(np.full(n, held), seeded(2))
    counts = np.bincount(reports["item"], minlength=d)
    assert p_value(counts, GRR(epsilon, d).law(held).probabilities) > ALARM
    for wrong in (0.95 * epsilon, 1.05 * epsilon):
        p = GRR(wrong, d).p
        assert abs(counts[held] - n * p) > 6.5 * sqrt(n * p * (1 - p))


@pytest.mark.parametrize("d", [2, 10, 1000])
def test_shares_sum_to_one_without_any_variance(d: int) -> None:
    mechanism = GRR(1.0, d)
    held = np.bincount(seeded(3).below(d, 5_000), minlength=d)
    estimate = mechanism.estimate(mechanism.sample_tally(held, seeded(4)))
    assert estimate.values.sum() == pytest.approx(1, abs=1e-9)
    largest = float(estimate.covariance.variances().max())
    assert estimate.variance_of(np.ones(d)) == pytest.approx(0, abs=1e-9 * d * largest)
    assert estimate.variance_of(np.full(d, 7.0)) == pytest.approx(0, abs=1e-7 * d * largest)


@pytest.mark.statistics
def test_the_stated_covariance_is_that_of_many_collections() -> None:
    mechanism = GRR(1.0, 5)
    held = np.array([700, 200, 100, 0, 0])
    values = np.array(
        [
            mechanism.estimate(mechanism.sample_tally(held, seeded(seed))).values
            for seed in range(4_000)
        ]
    )
    stated = np.mean(
        [
            mechanism.estimate(mechanism.sample_tally(held, seeded(seed))).covariance.matrix()
            for seed in range(50)
        ],
        axis=0,
    )
    spread = np.sqrt(np.outer(np.diag(stated), np.diag(stated)))
    assert np.abs(np.cov(values.T) - stated).max() < 0.1 * spread.max()
    assert (stated[np.triu_indices(5, 1)] < 0).all()


def test_a_difference_of_two_items_knows_that_they_exclude_each_other() -> None:
    mechanism = GRR(1.0, 4)
    estimate = mechanism.estimate(mechanism.sample_tally(np.full(4, 250), seeded(5)))
    alone = estimate.covariance.variances()
    assert float(estimate.variance_of([1, -1, 0, 0])) > float(alone[0] + alone[1])


def test_the_law_of_every_value_sums_to_one_and_keeps_the_promise() -> None:
    mechanism = GRR(0.7, ("a", "b", "c", "d"))
    for value in mechanism.inputs():
        law = mechanism.law(value)
        assert sum(law.numerators) == law.denominator
    ratio = Fraction(max(law.numerators), min(law.numerators))
    assert ratio == mechanism.worst_ratio
