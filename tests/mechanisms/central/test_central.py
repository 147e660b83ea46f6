"""Noise and choices of the central model: privacy over the implemented laws."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Literal

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.core.noise import NoiseLaw, short_rate
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.central import DiscreteLaplace, NoisyMax, SmoothQuantile
from sfumato.mechanisms.central.smooth_sensitivity import smooth_sensitivity
from sfumato.randomness import seeded

# ---- rates ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rate",
    [
        Fraction(1, 3),
        Fraction(1, 7 * 10**9),
        Fraction(123_456_789, 10**13),
        Fraction(10**10, 3),
        Fraction(3, 10**17),
    ],
)
def test_a_short_rate_is_never_larger_and_hardly_smaller(rate: Fraction) -> None:
    if rate < Fraction(1, 1 << 52):
        with pytest.raises(ConfigurationError, match="use a larger unit"):
            short_rate(rate)
        return
    short = short_rate(rate)
    assert max(short.numerator, short.denominator) <= 1 << 52
    assert rate * (1 - Fraction(1, 1 << 50)) <= short <= rate


def test_the_scale_is_rounded_up_where_it_must_be() -> None:
    noise = DiscreteLaplace(0.0123456789, 999_999)
    assert noise.law().rate <= Fraction("0.0123456789") / 999_999
    assert noise.law().epsilon(999_999) <= Fraction("0.0123456789")


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "says"),
    [
        (0, 1, "epsilon is 0; it must lie in 1e-06..20."),
        (math.nan, 1, "epsilon is nan; a positive number is expected."),
        (1.0, 0, "sensitivity is 0; a whole number from 1 on is expected."),
        (1.0, 2.5, "sensitivity is 2.5; a whole number from 1 on is expected."),
    ],
)
def test_noise_that_cannot_be_is_refused(epsilon: float, sensitivity: int, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        DiscreteLaplace(epsilon, sensitivity)
    assert str(caught.value) == says


@pytest.mark.parametrize("rate", ["1/40", "1/2", "2"])
def test_moments_of_the_noise(rate: str) -> None:
    law = DiscreteLaplace(float(Fraction(rate)), 1).law()
    z = np.arange(-3000, 3001)
    chance = np.array([law.probability(int(k)) for k in z])
    variance = float(chance @ z**2)
    assert law.variance == pytest.approx(variance, rel=1e-9)
    fourth = float(chance @ z.astype(np.float64) ** 4)
    assert law.excess_kurtosis == pytest.approx(fourth / variance**2 - 3, rel=1e-9)


# ---- noisy max --------------------------------------------------------------------------------

X = Fraction(1, 2)
REACH = 60
TAIL = 4 * X**REACH


@cache
def law_of(mechanism: NoisyMax, scores: tuple[int, ...]) -> list[Fraction]:
    return mechanism.law(list(scores), X, REACH)


def worst(mechanism: NoisyMax, before: list[int], after: list[int]) -> Fraction:
    """Return the largest ratio of a candidate's chances on two datasets."""
    # Only differences of scores matter.
    one, two = (
        law_of(mechanism, tuple(s - min(scores) for s in scores)) for scores in (before, after)
    )
    return max(max((a + TAIL) / b, (b + TAIL) / a) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("noise", ["laplace", "geometric"])
def test_noisy_max_keeps_epsilon_exactly(noise: Literal["laplace", "geometric"]) -> None:
    """All monotone neighbours of small score lists, over the integer law, ties included."""
    mechanism = NoisyMax(1.0, noise=noise)
    found = [
        worst(mechanism, list(scores), [s + step for s, step in zip(scores, steps, strict=True)])
        for scores in product((0, 1, 2), repeat=3)
        for steps in product((0, 1), repeat=3)
    ]
    assert max(found) <= (1 + Fraction(1, 10**9)) / X
    assert max(found) > 0.85 / X  # and spends most of it: half the noise would not pass


def test_scores_that_move_both_ways_break_the_promise() -> None:
    """Why the score must be monotone: the check can fail."""
    assert worst(NoisyMax(1.0), [0, 1, 0], [1, 0, 1]) > Fraction(11, 10) / X


@pytest.mark.statistics
def test_the_sampler_of_noisy_max_follows_its_law() -> None:
    mechanism = NoisyMax(0.5, noise="geometric")
    scores = [0, 2, 1, -1]
    law = np.array([float(p) for p in mechanism.law(scores, Fraction(6065, 10_000), 60)])
    rng = seeded(4)
    wins = np.bincount([mechanism.select(np.array(scores), rng) for _ in range(20_000)])
    assert np.abs(wins / 20_000 - law).max() < 6 * math.sqrt(0.25 / 20_000)
    assert abs(law.sum() - 1) < 1e-9


# ---- smooth sensitivity -----------------------------------------------------------------------


def brute_force(ordered: NDArray[np.int64], bound: int, rank: int, b: float) -> float:
    x = [0, *ordered.tolist(), bound]
    return max(
        float(x[j] - x[i]) * math.exp(-b * (j - i - 1))
        for i in range(rank + 1)
        for j in range(rank, len(x))
        if i < j
    )


def test_smooth_sensitivity_equals_brute_force() -> None:
    draw = seeded(5).simulator()
    for _ in range(200):
        m = int(draw.integers(1, 40))
        ordered = np.sort(draw.integers(0, 100, m))
        rank, b = int(draw.integers(1, m + 1)), float(draw.choice([1e-4, 0.01, 0.2, 2.0]))
        found = smooth_sensitivity(ordered, 100, rank, b)
        assert found == pytest.approx(brute_force(ordered, 100, rank, b), rel=1e-12)


def test_large_values_do_not_blur_the_smooth_sensitivity() -> None:
    """Differences of large numbers are taken exactly: neighbours are rounded alike."""
    ordered = np.array([3, 2**50, 2**50 + 1, 2**50 + 3, 2**50 + 3, 2**50 + 8])
    for rank in range(1, 7):
        near = smooth_sensitivity(ordered[1:] - 2**50, 9, max(1, rank - 1), 0.3)
        far = smooth_sensitivity(ordered, 2**50 + 9, rank, 0.3)
        assert far == pytest.approx(brute_force(ordered, 2**50 + 9, rank, 0.3), rel=1e-14)
        assert far >= near


def attained_delta(
    quantile: SmoothQuantile, one: NDArray[np.int64], other: NDArray[np.int64], bound: int
) -> float:
    """Return the least delta for which the two laws are (epsilon, delta)-close."""
    (centre, law), (moved, its) = quantile.law(one, bound), quantile.law(other, bound)
    reach = int(60 / float(min(law.rate, its.rate)))
    z = np.arange(min(centre, moved) - reach, max(centre, moved) + reach)
    first, second = (
        np.tanh(float(law.rate) / 2) * np.exp(-float(law.rate) * np.abs(z - at))
        for at, law in ((centre, law), (moved, its))
    )
    return float(np.maximum(first - math.exp(quantile.epsilon) * second, 0).sum())


@pytest.mark.parametrize("beta", [None, 0.006])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_private_quantile_honours_delta(beta: float | None, epsilon: float) -> None:
    """Over the integer laws of many neighbouring datasets, in both directions."""
    delta, bound = 1e-4, 50
    quantile = SmoothQuantile(epsilon, delta, 0.9, beta)
    draw = seeded(6).simulator()
    worst = 0.0
    for _ in range(150):
        values = draw.integers(0, draw.integers(2, bound + 1), 12)
        other = values.copy()
        other[draw.integers(12)] = int(draw.integers(bound + 1)) if draw.integers(2) else bound
        worst = max(worst, attained_delta(quantile, values, other, bound))
        worst = max(worst, attained_delta(quantile, other, values, bound))
    assert worst <= delta


ONE_AGAINST = [(np.full(m, at), m) for m in (1, 2, 3, 5) for at in (0, 37, 200, 363, 400)]


@pytest.mark.parametrize(("epsilon", "delta"), [(12.0, 1e-4), (12.0, 1e-6), (18.0, 1e-6)])
def test_the_private_quantile_honours_delta_at_any_epsilon(epsilon: float, delta: float) -> None:
    """One value leaves a heap, which moves the quantile and its noise as far as can be."""

    class Printed(SmoothQuantile):
        @property
        def b(self) -> float:
            return self.epsilon / (2 * math.log(1 / self.delta))

    def worst(quantile: SmoothQuantile) -> float:
        deltas = []
        for values, m in ONE_AGAINST:
            for moved in (0, 400):
                other = np.append(values[1:], moved)
                bound = 400 if m > 1 else int(400 * math.exp(quantile.b))
                deltas.append(attained_delta(quantile, values, other, bound))
                deltas.append(attained_delta(quantile, other, values, bound))
        return max(deltas)

    assert worst(SmoothQuantile(epsilon, delta, 0.5)) <= delta
    assert worst(Printed(epsilon, delta, 0.5)) > delta  # as the papers have it


@pytest.mark.parametrize(("epsilon", "delta"), [(20.0, 1e-4), (0.1, 0.4)])
def test_a_delta_that_cannot_be_kept_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(ConfigurationError, match=f"delta is {delta}; it must be at most"):
        SmoothQuantile(epsilon, delta, 0.5)


def test_a_safety_term_that_points_down_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"beta is 0.95; it must be at most 0.5."):
        SmoothQuantile(8.0, 1e-4, 0.5, 0.95)


def test_a_smooth_bound_that_stops_short_is_caught() -> None:
    """Without the pairs that begin at the quantile itself, as one released program has it."""
    # all values equal: the neighbour that moves the quantile to the bound is at distance one
    values, moved = np.full(3, 10), np.array([10, 10, 50])
    quantile = SmoothQuantile(2.0, 1e-4, 0.9)
    assert attained_delta(quantile, values, moved, 50) <= 1e-4

    class StopsShort(SmoothQuantile):
        def law(self, values: NDArray[np.int64], bound: int) -> tuple[int, NoiseLaw]:
            return super().law(values, min(bound, int(values.max())))

    assert attained_delta(StopsShort(2.0, 1e-4, 0.9), values, moved, 50) > 1e-4


def test_a_safety_term_that_cannot_be_paid_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="the safety term needs a smaller delta"):
        SmoothQuantile(1.0, 0.3, 0.99, 0.001)


def test_whether_noise_is_too_wide_does_not_depend_on_values() -> None:
    quantile = SmoothQuantile(1e-4, 1e-6, 0.5)
    bound = int(2.0**52 * 5e-5 * (1 + quantile.b / 2))  # where one of two neighbours was refused
    for value in (0, bound // 2):
        with pytest.raises(ConfigurationError, match="bound is"):
            quantile.law(np.array([value]), bound)
    _, law = quantile.law(np.array([0]), 2**36)
    assert law.rate > 0


def test_the_centre_is_exact_for_large_values() -> None:
    quantile = SmoothQuantile(8.0, 1e-6, 0.5, beta=0.3)
    for value in (2**40 - 1, 2**51 + 1):
        values = np.full(1001, value)
        low = quantile.law(values, 2**52)[0]
        assert quantile.law(values + 1, 2**52)[0] - low in (0, 1, 2)
        assert low - value == quantile.law(np.full(1001, 1000), 2**52)[0] - 1000


def test_a_chance_of_zero_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="beta is 0"):
        SmoothQuantile(1.0, 1e-6, 0.5, beta=0.0)
