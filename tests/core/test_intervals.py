"""Intervals of a share cover as often as they say: summed exactly over the law of the count.

The count of an item that h of n people hold is Binomial(h, p) + Binomial(n - h, q), so the
coverage of a share is a finite sum over counts. It is computed here from scipy's binomials, which
the package does not use, and shown once more by drawing counts.
"""

from __future__ import annotations

import time
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from sfumato import GRR, OLH, OUE, seeded
from sfumato.core import intervals
from sfumato.mechanisms.frequency import FrequencyOracle

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

# The counts of OUE and OLH have one law whatever the domain.
MECHANISMS: list[FrequencyOracle] = [
    *(GRR(epsilon, d) for d in (16, 128, 1024) for epsilon in (0.5, 1.0, 2.0)),
    *(OUE(epsilon, 1024) for epsilon in (0.5, 1.0, 2.0)),
    *(OLH(epsilon, 1024) for epsilon in (0.5, 1.0, 2.0)),
]


def law_of_count(holders: int, n: int, p: float, q: float) -> tuple[Ints, Floats]:
    """Return the counts that can be expected, and their probabilities."""
    parts = []
    for size, chance in ((holders, p), (n - holders, q)):
        reach = 9 * np.sqrt(size * chance * (1 - chance)) + 30
        counts = np.arange(max(0, size * chance - reach), min(size, size * chance + reach) + 1)
        counts = np.round(counts).astype(np.int64)
        parts.append((counts[0], binom.pmf(counts, size, chance)))
    law = np.convolve(parts[0][1], parts[1][1])
    return parts[0][0] + parts[1][0] + np.arange(law.size), law


def exact_coverage(
    holders: Ints,
    n: int,
    truth: FrequencyOracle,
    level: float = 0.95,
    assumed: FrequencyOracle | None = None,
) -> Floats:
    """Return how often the interval of each number of holders contains it."""
    stated = assumed or truth
    laws = [law_of_count(h, n, truth.p, truth.q) for h in holders.tolist()]
    counts, back = np.unique(np.concatenate([c for c, _ in laws]), return_inverse=True)
    low, high = intervals.shares(counts, n, stated.p, stated.q, level)
    ends = np.cumsum([0, *(c.size for c, _ in laws)])
    covered = []
    for h, (_, law), (start, end) in zip(holders, laws, pairwise(ends), strict=True):
        at = back[start:end]
        covered.append(law[(low[at] <= h / n) & (h / n <= high[at])].sum())
    return np.array(covered)


def spread(n: int, many: int) -> Ints:
    """Nobody, one, two, ... and everybody: shares from none to all, as a power law has them."""
    return np.unique([0, 1, 2, 3, *np.round(np.geomspace(4, n, many)).astype(np.int64)])


def expected_counts(holders: Ints, n: int, mechanism: FrequencyOracle) -> Floats:
    return holders * mechanism.p + (n - holders) * mechanism.q


def within_bounds(coverage: Floats, expected: Floats, n: int) -> bool:
    """The requirement: 94..96% for many people; for few at least 94.5% and hardly more."""
    if n >= 100_000:
        return bool((coverage >= 0.94).all() and (coverage <= 0.96).all())
    return bool((coverage >= 0.945).all() and (coverage[expected >= 20] <= 0.97).all())


@pytest.mark.statistics
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("n", [1_000, 100_000])
def test_coverage_summed_over_the_law_is_as_stated(mechanism: FrequencyOracle, n: int) -> None:
    holders = spread(n, 24)
    coverage = exact_coverage(holders, n, mechanism)
    assert within_bounds(coverage, expected_counts(holders, n, mechanism), n), coverage


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
@pytest.mark.parametrize("n", [1_000, 3_000, 20_000, 100_000, 1_000_000])
def test_coverage_of_many_shares_is_as_stated(mechanism: FrequencyOracle, n: int) -> None:
    holders = np.arange(n + 1) if n == 1_000 else spread(n, 300)
    coverage = exact_coverage(holders, n, mechanism)
    assert within_bounds(coverage, expected_counts(holders, n, mechanism), n), coverage


@pytest.mark.statistics
@pytest.mark.parametrize(
    "mechanism", [GRR(4.0, 16), OUE(6.0, 16), OLH(8.0, 16), GRR(3.0, 4096)], ids=str
)
@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
def test_other_levels_and_less_noise_are_covered_too(
    mechanism: FrequencyOracle, level: float
) -> None:
    for n in (300, 3_000):
        coverage = exact_coverage(spread(n, 12), n, mechanism, level)
        assert (coverage >= level - 0.005).all(), coverage


# epsilon 1 always, the others in the long suite
DRAWN = [m if m.epsilon == 1 else pytest.param(m, marks=pytest.mark.slow) for m in MECHANISMS]


@pytest.mark.statistics
@pytest.mark.parametrize("mechanism", DRAWN, ids=str)
@pytest.mark.parametrize("n", [1_000, 100_000])
def test_drawn_counts_are_covered_as_stated(mechanism: FrequencyOracle, n: int) -> None:
    draw = seeded(n).simulator()
    for h in (0, 1, n // 200, n // 40, n // 8, n // 2):
        counts = draw.binomial(h, mechanism.p, 40_000) + draw.binomial(n - h, mechanism.q, 40_000)
        low, high = intervals.shares(counts, n, mechanism.p, mechanism.q, 0.95)
        share = ((low <= h / n) & (h / n <= high)).mean()
        expected = h * mechanism.p + (n - h) * mechanism.q
        assert within_bounds(np.array([share]), np.array([expected]), n), (h, share)


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("mechanism", "n"),
    # where some count is large enough to have an upper bound
    [(m, n) for m in MECHANISMS[1::3] for n in (1_000, 100_000) if n * m.p >= 20],
    ids=str,
)
def test_intervals_of_another_epsilon_or_level_are_rejected(
    mechanism: FrequencyOracle, n: int
) -> None:
    """What would pass whatever the intervals are shows nothing."""
    holders = spread(n, 24)
    expected = expected_counts(holders, n, mechanism)
    for level in (0.93, 0.98):
        coverage = exact_coverage(holders, n, mechanism, level)
        assert not within_bounds(coverage, expected, n), coverage
    for factor in (0.9, 1.1):
        wrong = type(mechanism)(mechanism.epsilon * factor, mechanism.domain)
        coverage = exact_coverage(holders, n, mechanism, assumed=wrong)
        assert not within_bounds(coverage, expected, n), coverage


# ---- all items at once ------------------------------------------------------------------------


def zipf(n: int, d: int) -> Ints:
    """People on d items, some of which nobody holds."""
    weight = 1 / np.arange(1, d + 1)
    held: Ints = np.floor(n * weight / weight.sum()).astype(np.int64)
    held[0] += n - held.sum()
    return held


@pytest.mark.parametrize("n", [1_000, 100_000])
@pytest.mark.parametrize("d", [4, 16, 128])
def test_a_band_contains_all_truths_at_once(n: int, d: int) -> None:
    """The bits of OUE are independent, so that the coverage of all is a product, exactly."""
    mechanism = OUE(1.0, d)
    held, times = np.unique(zipf(n, d), return_counts=True)
    coverage = exact_coverage(held, n, mechanism, 0.95 ** (1 / d))
    assert 0.95 <= np.prod(coverage**times) + 0.003 <= 0.98


@pytest.mark.statistics
@pytest.mark.parametrize("mechanism", [GRR(1.0, 16), OUE(1.0, 16), OLH(1.0, 16)], ids=str)
def test_drawn_bands_contain_all_truths_at_once(mechanism: FrequencyOracle) -> None:
    held = zipf(1_000, 16)
    truth = held / 1_000
    inside = 0
    for seed in range(1500):
        low, high = mechanism.estimate(mechanism.sample_tally(held, seeded(seed))).band(0.95)
        inside += bool(((low <= truth) & (truth <= high)).all())
    assert 0.93 < inside / 1500 < 0.99


# ---- what an interval is ----------------------------------------------------------------------


def sterne(n: int, p: float, q: float, level: float) -> list[set[int]]:
    """For each count, the numbers of holders whose smallest likely set of counts contains it."""
    accepting: list[set[int]] = [set() for _ in range(n + 1)]
    for h in range(n + 1):
        law = np.convolve(
            binom.pmf(np.arange(h + 1), h, p), binom.pmf(np.arange(n - h + 1), n - h, q)
        )
        mass = 0.0
        for count in np.argsort(-law, kind="stable").tolist():
            accepting[count].add(h)
            mass += law[count]
            if mass >= level:
                break
    return accepting


@pytest.mark.parametrize(
    ("n", "p", "q", "level"),
    [(40, 0.7, 0.1, 0.95), (60, 0.9, 0.4, 0.9), (25, 0.51, 0.24, 0.99), (30, 0.99, 0.003, 0.95)],
)
def test_an_exact_interval_is_what_sternes_sets_accept(
    n: int, p: float, q: float, level: float
) -> None:
    low, high = intervals.exact(np.arange(n + 1), n, p, q, level)
    for count, accepting in enumerate(sterne(n, p, q, level)):
        if not accepting:
            assert high[count] < 0 or low[count] > 1
            continue
        if min(accepting) > 0:
            assert low[count] == min(accepting) / n
        else:
            assert low[count] <= 0
        if max(accepting) < n:
            assert high[count] == max(accepting) / n
        else:
            assert high[count] >= 1


@pytest.mark.parametrize("mechanism", [GRR(2.0, 128), OUE(3.0, 16), GRR(8.0, 64)], ids=str)
def test_few_numbers_tried_find_the_ends_that_all_numbers_find(mechanism: FrequencyOracle) -> None:
    n, p, q = 2_000, mechanism.p, mechanism.q
    counts = np.unique(np.linspace(0, n * p, 200).astype(np.int64))
    every = np.array(intervals.exact(counts, n, p, q, 0.95))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "_EVERY_SHARE", 0)
        few = np.array(intervals.exact(counts, n, p, q, 0.95))
    sigma = np.sqrt(n * q * (1 - q) + np.maximum(counts - n * q, 0) * (1 - p - q)) / (p - q) / n
    assert (np.abs(few - every) <= 0.15 * sigma).all()
    assert (few == every).mean() > 0.95


def test_the_ends_of_a_score_interval_are_z_deviations_of_their_own_away() -> None:
    n, p, q = 5_000, 0.5, 0.2
    counts = np.array([900, 1_000, 1_500, 2_400])
    z = intervals.z_score(0.95)
    assert z == pytest.approx(1.959964, abs=1e-6)
    for end in intervals.score(counts, n, p, q, 0.95):
        mean = n * (end * p + (1 - end) * q)
        variance = n * (end * p * (1 - p) + (1 - end) * q * (1 - q))
        assert np.abs(counts - mean) == pytest.approx(z * np.sqrt(variance))


def test_the_ends_of_wilsons_interval_are_z_deviations_of_their_own_away() -> None:
    ones = np.array([1, 20, 300, 499])
    for end in intervals.wilson(ones, 500, 0.9):
        away = intervals.z_score(0.9) * np.sqrt(500 * end * (1 - end))
        assert np.abs(ones - 500 * end) == pytest.approx(away)


def test_wilsons_interval_of_none_and_of_all_stays_a_probability() -> None:
    low, high = intervals.wilson(np.array([0, 50]), 50, 0.95)
    assert low.tolist() == pytest.approx([0, 50 / (50 + 1.959964**2)], abs=1e-6)
    assert high.tolist() == pytest.approx([1 - 50 / (50 + 1.959964**2), 1], abs=1e-6)


ANY: list[FrequencyOracle] = [
    *(GRR(0.5, 3), GRR(1.0, 1000), GRR(20.0, 2)),
    *(OUE(1.0, 2), OUE(20.0, 2), OLH(1.0, 9)),
]


def counts_up_to(n: int) -> Ints:
    return np.unique(np.linspace(0, n, 60).astype(np.int64))


@pytest.mark.parametrize("n", [1, 2, 50, 2_000, 2_001, 30_000])
def test_every_count_has_a_finite_interval_that_grows_with_it(n: int) -> None:
    for mechanism in ANY:
        low, high = intervals.shares(counts_up_to(n), n, mechanism.p, mechanism.q, 0.95)
        assert np.isfinite(low).all()
        assert np.isfinite(high).all()
        assert (low <= high).all()
        slack = 0.02 / np.sqrt(n)  # where the score interval takes over from the exact one
        assert (np.diff(low) > -slack).all()
        assert (np.diff(high) > -slack).all()


@pytest.mark.parametrize("n", [50, 3_000, 50_000])
def test_a_higher_level_has_a_wider_interval(n: int) -> None:
    for mechanism in ANY:
        narrow = intervals.shares(counts_up_to(n), n, mechanism.p, mechanism.q, 0.8)
        wide = intervals.shares(counts_up_to(n), n, mechanism.p, mechanism.q, 0.999)
        assert (wide[0] <= narrow[0] + 1e-12).all()
        assert (wide[1] >= narrow[1] - 1e-12).all()


def test_an_items_interval_does_not_depend_on_the_others() -> None:
    mechanism, n = GRR(1.0, 1024), 50_000
    tally = mechanism.sample_tally(zipf(n, 1024), seeded(1))
    low, high = intervals.shares(tally.sums, n, mechanism.p, mechanism.q, 0.95)
    for item in (0, 1, 5, 100, 1023):
        alone = intervals.shares(tally.sums[item : item + 1], n, mechanism.p, mechanism.q, 0.95)
        assert [end[0] for end in alone] == [low[item], high[item]]


@pytest.mark.parametrize(
    ("mechanism", "n"),
    [
        (GRR(1.0, 1024), 1_000),
        (GRR(0.5, 1024), 100_000),
        (OUE(1.0, 1024), 1_000),
        (GRR(20.0, 1024), 10**8),
    ],
    ids=str,
)
def test_a_thousand_items_take_seconds_at_most(mechanism: FrequencyOracle, n: int) -> None:
    estimate = mechanism.estimate(mechanism.sample_tally(zipf(n, 1024), seeded(2)))
    start = time.process_time()
    estimate.interval(0.95)
    # Far above what it takes on a busy machine, far below what an exact law item by item would.
    assert time.process_time() - start < 20.0
