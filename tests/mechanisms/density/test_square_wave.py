"""The square wave on an integer grid: its window, its exact mean, and nothing impossible."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from sfumato.checks.privacy import exact_ratio
from sfumato.core.exact import exp_below
from sfumato.mechanisms import SquareWave
from sfumato.randomness import ONE, seeded

EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)


def half_width(epsilon: float) -> float:
    """Return b by its series, which cancels nothing: for small epsilon."""
    above = sum(epsilon**k * (k - 1) / math.factorial(k) for k in range(2, 30))
    below = sum(epsilon**k / math.factorial(k) for k in range(2, 30))
    return above / (2 * math.exp(epsilon) * below)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-5, 1e-3, *EPSILONS])
def test_the_window_has_the_papers_width_at_any_epsilon(epsilon: float) -> None:
    mechanism = SquareWave(epsilon, 0, 1, grid=1 << 14)
    assert mechanism.width / mechanism.grid == pytest.approx(2 * half_width(epsilon), abs=1e-4)


def test_the_window_is_the_whole_interval_for_no_privacy_to_spend_and_one_place_for_much() -> None:
    assert SquareWave(1e-6, 0, 1).width == 1024
    assert SquareWave(20.0, 0, 1).width == 1
    assert SquareWave(1.0, 0, 1).width == round(1024 * 0.512166)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_no_other_window_tells_more(epsilon: float) -> None:
    def told(b: float) -> float:
        """Return the information a report has about a number spread over the line, at most."""
        e = math.exp(epsilon)
        return math.log((2 * b + 1) / (2 * b * e + 1)) + 2 * b * e * epsilon / (2 * b * e + 1)

    b = half_width(epsilon)
    assert told(b) > max(told(0.98 * b), told(1.02 * b))


@pytest.mark.parametrize("grid", [8, 64, 1024])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_mean_report_is_affine_in_the_number(epsilon: float, grid: int) -> None:
    mechanism = SquareWave(epsilon, 0, 1, grid=grid)
    b = Fraction(mechanism.width, 2 * grid)
    q = Fraction(ONE - mechanism.kept, ONE * mechanism.size) * grid
    p = q + Fraction(mechanism.kept, ONE * mechanism.width) * grid
    assert 2 * b * p + q == 1
    places = [
        Fraction(2 * place + 1 - mechanism.width, 2 * grid) for place in range(mechanism.size)
    ]
    for point in (0, 1, grid // 3, grid - 1, grid):
        numerators, denominator = mechanism.point_law(point)
        pairs = zip(numerators, places, strict=True)
        mean = sum(numerator * place for numerator, place in pairs) / denominator
        assert mean == 2 * b * (p - q) * Fraction(point, grid) + q * (1 + 2 * b) / 2


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_law_between_grid_points_is_affine_to_twelve_digits(epsilon: float) -> None:
    mechanism = SquareWave(epsilon, 0, 1, grid=64)
    share = mechanism.kept / ONE
    for value in (0.0123, 0.3, 0.77, 0.999):
        law = mechanism.law(value)
        reports = (np.arange(mechanism.size) + 0.5 - mechanism.width / 2) / 64
        mean = float(law.probabilities @ reports)
        assert mean == pytest.approx(share * value + (1 - share) / 2, abs=1e-12)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, *EPSILONS, 20.0])
def test_epsilon_is_kept_and_spent_on_the_default_grid(epsilon: float) -> None:
    mechanism = SquareWave(epsilon, 0, 1)
    assert mechanism.worst_ratio <= exp_below(epsilon)
    assert mechanism.worst_ratio >= exp_below(epsilon * (1 - 1e-6))


def test_the_whole_law_is_listed_on_a_finer_grid_and_no_report_is_impossible() -> None:
    mechanism = SquareWave(1.0, 0, 1, grid=256)
    assert exact_ratio(mechanism) == mechanism.worst_ratio
    for value in (0.0, 0.3333, 1.0):
        assert min(mechanism.law(value).numerators) > 0


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_stated_variance_is_that_of_the_law(epsilon: float) -> None:
    mechanism = SquareWave(epsilon, 0, 1, grid=16)
    points = (np.arange(mechanism.size) - float(mechanism.offset)) / float(mechanism.slope) / 16
    for value in (0.0, 0.25, 0.3, 1.0):
        law = mechanism.law(value).probabilities
        assert law @ points == pytest.approx(value, abs=1e-12)
        assert law @ points**2 - value**2 == pytest.approx(mechanism.variance(value), rel=1e-9)


def test_the_mean_of_real_reports_is_estimated() -> None:
    mechanism = SquareWave(1.0, -50, 150)
    values = seeded(3).simulator().beta(2, 5, size=200_000) * 200 - 50
    estimate = mechanism.estimate(mechanism.tally(mechanism.randomize(values, seeded(4))))
    assert abs(estimate.values[0] - values.mean()) < 5.5 * estimate.standard_errors[0]
    assert estimate.standard_errors[0] < math.sqrt(mechanism.worst_variance / 200_000) * 1.1


def test_simulated_tallies_are_quick_and_keep_the_number_of_people() -> None:
    mechanism = SquareWave(1.0, 0, 1)
    histogram = seeded(1).simulator().multinomial(10_000_000, np.full(1025, 1 / 1025))
    tally = mechanism.sample_tally(histogram, seeded(2))
    assert tally.n == tally.sums.sum() == 10_000_000
    assert mechanism.estimate(tally).values[0] == pytest.approx(0.5, abs=0.005)
