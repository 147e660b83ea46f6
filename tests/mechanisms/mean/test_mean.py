"""Numbers on an integer grid: exact means, exact variances, intervals that cover."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.checks.privacy import exact_ratio
from sfumato.core.exact import exp_below
from sfumato.core.law import Law
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError, InputError
from sfumato.mechanisms import Hybrid, Piecewise, StochasticRounding
from sfumato.mechanisms.mean.numeric import NumericMechanism
from sfumato.randomness import seeded

KINDS: list[type[NumericMechanism]] = [StochasticRounding, Piecewise, Hybrid]
EPSILONS = (0.1, 0.5, 1.0, 2.0, 4.0, 8.0)


def symbol_value(mechanism: NumericMechanism, symbol: int) -> float:
    """Return the grid point one report of this symbol stands for, through the public estimate."""
    report = np.array([(symbol,)], dtype=mechanism.report_dtype)
    return mechanism.moments(mechanism.tally(report)).point


def mean(law: Law, values: list[float]) -> float:
    """Return the exact law's mean of these values of its outputs."""
    pairs = zip(law.numerators, values, strict=True)
    return float(sum(n * Fraction(v) for n, v in pairs) / law.denominator)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_exact_mean_of_a_debiased_report_is_the_input(
    kind: type[NumericMechanism], epsilon: float
) -> None:
    mechanism = kind(epsilon, -2.0, 6.0, grid=32)
    values = [symbol_value(mechanism, symbol) for symbol in range(mechanism.symbols)]
    for value in [*mechanism.inputs(), -1.9, 0.123, 5.77]:
        assert -2.0 + 8.0 * mean(mechanism.law(value), values) / 32 == pytest.approx(
            value, abs=1e-12
        )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_the_stated_variance_is_that_of_the_law(
    kind: type[NumericMechanism], epsilon: float
) -> None:
    mechanism = kind(epsilon, 0.0, 1.0, grid=16)
    values = [symbol_value(mechanism, symbol) for symbol in range(mechanism.symbols)]
    for value in (0.0, 0.25, 0.3, 1.0):
        law = mechanism.law(value)
        variance = mean(law, [v * v for v in values]) - mean(law, values) ** 2
        variance /= 16**2
        assert mechanism.variance(value) == pytest.approx(variance, rel=1e-9)
        assert mechanism.variance(value) <= mechanism.worst_variance


def continuous(kind: type[NumericMechanism], epsilon: float, v: float) -> float:
    """Return the variance of the continuous mechanism on [-1, 1]."""
    e, h = math.exp(epsilon), math.exp(epsilon / 2)
    rounding = ((e + 1) / (e - 1)) ** 2 - v * v
    piecewise = v * v / (h - 1) + (h + 3) / (3 * (h - 1) ** 2)
    if kind is Piecewise:
        return piecewise
    if kind is StochasticRounding or epsilon < 0.61:
        return rounding
    # Constant in v, and not with (h-1) squared as one of the papers prints it.
    return (((e + 1) / (e - 1)) ** 2 + (h + 3) / (3 * (h - 1))) / h


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_default_grid_costs_less_than_one_percent(
    kind: type[NumericMechanism], epsilon: float
) -> None:
    mechanism = kind(epsilon, -1.0, 1.0)
    for v in (0.0, 0.3333, 0.5, 1.0):
        assert mechanism.variance(v) == pytest.approx(continuous(kind, epsilon, v), rel=0.01)


def test_known_variances_of_the_hybrid_mechanism() -> None:
    assert Hybrid(1.0, -1, 1).variance(0.2) == pytest.approx(4.289, abs=2e-3)
    assert Hybrid(2.0, -1, 1).variance(0.2) == pytest.approx(1.042, abs=2e-3)
    assert Hybrid(2.0, 0, 10).variance(3.0) == pytest.approx(25 * 1.042, abs=0.05)


def test_piecewise_beats_rounding_from_epsilon_1_29_on() -> None:
    def worst(kind: type[NumericMechanism], epsilon: float) -> float:
        return kind(epsilon, -1, 1).worst_variance

    assert worst(StochasticRounding, 1.27) < worst(Piecewise, 1.27)
    assert worst(Piecewise, 1.31) < worst(StochasticRounding, 1.31)
    for epsilon in (0.3, 0.7, 1.0, 1.29, 2.0, 4.0):
        best = min(worst(StochasticRounding, epsilon), worst(Piecewise, epsilon))
        assert worst(Hybrid, epsilon) <= best * 1.0001


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 5.0, 10.0])
def test_epsilon_is_kept_on_the_default_grid(kind: type[NumericMechanism], epsilon: float) -> None:
    mechanism = kind(epsilon, 0.0, 1.0)
    assert mechanism.worst_ratio <= exp_below(epsilon)
    assert mechanism.worst_ratio >= exp_below(epsilon * (1 - 1e-6))


@pytest.mark.parametrize("kind", KINDS)
def test_the_whole_law_is_listed_on_a_finer_grid(kind: type[NumericMechanism]) -> None:
    mechanism = kind(1.0, 0.0, 1.0, grid=256)
    assert exact_ratio(mechanism) == mechanism.worst_ratio


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_between_grid_points_are_mixed_from_both(kind: type[NumericMechanism]) -> None:
    mechanism = kind(1.0, 0.0, 1.0, grid=4)
    below, above, between = (mechanism.law(value) for value in (0.25, 0.5, 0.3125))
    for one, two, mixed in zip(below.numerators, above.numerators, between.numerators, strict=True):
        expected = Fraction(3, 4) * Fraction(one, below.denominator)
        expected += Fraction(1, 4) * Fraction(two, above.denominator)
        assert Fraction(mixed, between.denominator) == expected


# ---- intervals ------------------------------------------------------------------------------


def tallies(
    mechanism: NumericMechanism, values: NDArray[Any], draws: int, seed: int
) -> list[Tally]:
    """Return tallies of many collections, drawn from the exact law of each distinct value."""
    draw = seeded(seed).simulator()
    distinct, counts = np.unique(values, return_counts=True)
    symbols = np.arange(mechanism.symbols)
    total = np.zeros((draws, mechanism.symbols), dtype=np.int64)
    for value, count in zip(distinct, counts, strict=True):
        total += draw.multinomial(count, mechanism.law(value).probabilities, size=draws)
    n = values.size
    if isinstance(mechanism, StochasticRounding):
        return [Tally(n, row[1:]) for row in total]
    if isinstance(mechanism, Piecewise):
        return [Tally(n, np.array([row @ symbols, row @ symbols**2])) for row in total]
    places = symbols[:-2]
    return [
        Tally(n, np.array([p.sum(), p @ places, p @ places**2, row[-1]]))
        for row in total
        for p in (row[:-2],)
    ]


DRAWS = 12_000
"""A coverage of 95% leaves 94..96% in fewer than 1e-6 of all seeds: that is 5.03 sigma away."""


def coverage(
    mechanism: NumericMechanism, values: NDArray[Any], scales: tuple[float, ...] = (1.0,)
) -> list[float]:
    """Return how often intervals, and those that are scaled, contain the mean."""
    truth = mechanism.truth(values)[0]
    drawn = tallies(mechanism, values, DRAWS, seed=17)
    kinds, counts = np.unique([tally.sums for tally in drawn], axis=0, return_counts=True)
    estimates = [mechanism.estimate(Tally(values.size, kind)) for kind in kinds]
    errors = np.array([abs(it.values[0] - truth) / it.standard_errors[0] for it in estimates])
    return [float(counts[errors <= scale * 1.959964].sum()) / DRAWS for scale in scales]


SHAPES = {
    "spread": np.linspace(0.0, 1.0, 9),
    "skewed": np.array([0.0, 0.0, 0.0, 0.1, 0.1, 0.2, 0.3, 0.5]),
    "at the ends": np.array([0.0, 1.0]),
    "all equal": np.array([0.75]),
}


def check_coverage(mechanism: NumericMechanism, shape: str, most: float = 0.96) -> None:
    for n in (1_000, 100_000):
        (share,) = coverage(mechanism, np.resize(SHAPES[shape], n))
        assert 0.94 <= share <= most, f"{share:.4f} at n = {n}"


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("shape", "epsilon"), [("spread", 1.0), ("at the ends", 2.0), ("all equal", 4.0)]
)
@pytest.mark.parametrize("kind", [Piecewise, Hybrid])
def test_mean_intervals_cover(kind: type[NumericMechanism], shape: str, epsilon: float) -> None:
    check_coverage(kind(epsilon, 0.0, 1.0, grid=16), shape)


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 0.7, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", [Piecewise, Hybrid])
def test_mean_intervals_cover_everywhere(
    kind: type[NumericMechanism], shape: str, epsilon: float
) -> None:
    if kind is Hybrid and epsilon < 0.61:  # only bits: see below
        check_coverage(kind(epsilon, 0.0, 1.0, grid=64), shape, most=0.965)
    else:
        check_coverage(kind(epsilon, 0.0, 1.0, grid=64), shape)


@pytest.mark.statistics
@pytest.mark.parametrize(("shape", "epsilon"), [("spread", 0.5), ("skewed", 1.0)])
def test_intervals_of_single_bits_cover(shape: str, epsilon: float) -> None:
    check_coverage(StochasticRounding(epsilon, 0.0, 1.0, grid=16), shape, most=0.965)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("mean", [0.0, 0.1, 0.5, 0.77])
def test_intervals_of_single_bits_cover_the_mean_of_a_population(
    mean: float, epsilon: float
) -> None:
    # Of people drawn from a population the ones are binomial, however spread its numbers are.
    mechanism = StochasticRounding(epsilon, 0.0, 1.0)
    chance = float(mechanism.law(mean).probabilities[1])
    for n in (1_000, 100_000):
        ones = seeded(5).simulator().binomial(n, chance, size=20_000)
        kinds, counts = np.unique(ones, return_counts=True)
        ends = [mechanism.estimate(Tally(n, np.array([k]))).interval(0.95) for k in kinds]
        inside = np.array([low[0] <= mean <= high[0] for low, high in ends])
        # Of fewer than twenty ones a single one moves the coverage by more than a point.
        most = 0.96 if n * chance >= 20 else 0.97
        assert 0.94 <= counts[inside].sum() / 20_000 <= most, n


@pytest.mark.statistics
@pytest.mark.parametrize("epsilon", [2.0, 4.0])
def test_intervals_of_single_bits_never_cover_less_than_they_say(epsilon: float) -> None:
    mechanism = StochasticRounding(epsilon, 0.0, 1.0, grid=16)
    for shape in SHAPES:
        check_coverage(mechanism, shape, most=1.0)


@pytest.mark.statistics
def test_the_coverage_test_rejects_intervals_that_are_a_tenth_off() -> None:
    mechanism = Hybrid(1.0, 0.0, 1.0, grid=16)
    values = np.resize(SHAPES["spread"], 100_000)
    shorter, longer = coverage(
        mechanism, values, (0.9, 1.1)
    )  # 92.2% and 96.9%: seven and six sigma
    assert shorter < 0.94
    assert longer > 0.96


@pytest.mark.parametrize("kind", KINDS)
def test_real_reports_of_many_people_estimate_their_mean(kind: type[NumericMechanism]) -> None:
    mechanism = kind(1.0, -50.0, 150.0)
    values = seeded(3).simulator().beta(2, 5, size=200_000) * 200 - 50
    estimate = mechanism.estimate(mechanism.tally(mechanism.randomize(values, seeded(4))))
    error = abs(estimate.values[0] - values.mean())
    assert error < 5.5 * estimate.standard_errors[0]
    assert estimate.standard_errors[0] < math.sqrt(mechanism.worst_variance / 200_000) * 1.1


# ---- bad input ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("low", "high", "extra", "message"),
    [
        (1.0, 1.0, {}, "low must be below high"),
        (2.0, 1.0, {}, "low must be below high"),
        (math.nan, 1.0, {}, "low is nan"),
        (0.0, math.inf, {}, "high is inf"),
        ("0", 1.0, {}, "low is '0'"),
        (-1.7e308, 1.7e308, {}, "its width must lie in"),
        (0.0, 5e-324, {}, "its width must lie in"),
        (0.0, 10**400, {}, "high is 1000"),
        (0.0, 1.0, {"grid": 3}, "grid is 3"),
        (0.0, 1.0, {"grid": 0}, "grid is 0"),
        (0.0, 1.0, {"grid": 10**6}, "grid is 1000000"),
        (0.0, 1.0, {"clip": "yes"}, "clip is 'yes'"),
    ],
)
def test_a_bad_interval_or_grid_gets_one_sentence(
    kind: type[NumericMechanism], low: Any, high: Any, extra: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        kind(1.0, low, high, **extra)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, 1.01], r"values\[1\] is 1.01; it must lie in \[0, 1\], or set clip"),
        ([-0.1], r"values\[0\] is -0.1"),
        ([math.nan], r"values\[0\] is nan"),
        ([-math.inf], r"values\[0\] is -inf"),
        ([], "empty"),
        (["0.5"], "dtype object"),
        ([True], "dtype bool"),
        ([None], "missing"),
    ],
)
def test_a_bad_value_gets_one_sentence(
    kind: type[NumericMechanism], values: list[Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        kind(1.0, 0.0, 1.0).randomize(values, seeded(1))


@pytest.mark.parametrize("kind", KINDS)
def test_values_are_clipped_only_if_told_to(kind: type[NumericMechanism]) -> None:
    mechanism = kind(1.0, 0.0, 1.0, clip=True)
    clipped = mechanism.randomize([7.0, -3.0], seeded(1))
    assert clipped.tobytes() == mechanism.randomize([1.0, 0.0], seeded(1)).tobytes()
    assert mechanism.truth([7.0, -3.0]).tolist() == [0.5]
    with pytest.raises(InputError, match="is nan"):
        mechanism.randomize([math.nan], seeded(1))
