"""Quantiles, means and other answers of a distribution, and the coverage of their intervals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.mechanisms.density.shapes import SMOOTH, tallies, truth

from sfumato.core.tally import Tally
from sfumato.datasets.densities import CDFS
from sfumato.errors import ConfigurationError, InputError, MismatchError
from sfumato.mechanisms import SquareWave
from sfumato.mechanisms.density import Distribution
from sfumato.mechanisms.density.distribution import band
from sfumato.mechanisms.density.quantile_bounds import cumulative
from sfumato.randomness import seeded

Floats = NDArray[np.float64]

SHARES = (0.1, 0.5, 0.9)


def quantiles(distribution: Distribution) -> Floats:
    return distribution.quantile(SHARES)


def fitted(mechanism: SquareWave, name: str, n: int, **options: Any) -> Distribution:
    return mechanism.distribution(tallies(mechanism, name, n, 1)[0], **options)


# ---- what it says ---------------------------------------------------------------------------


def test_density_moments_and_quantiles_belong_together() -> None:
    it = fitted(SquareWave(1.0, -20, 60, grid=256), "beta", 50_000, buckets=32)
    assert it.edges.size == 33
    assert (it.edges[0], it.edges[-1]) == (-20, 60)
    assert it.masses.sum() == pytest.approx(1)
    assert it.density @ np.diff(it.edges) == pytest.approx(1)
    assert it.cdf(it.edges[1:]) == pytest.approx(np.cumsum(it.masses), abs=1e-12)
    assert it.cdf(it.quantile([0, 0.2, 0.7, 1])) == pytest.approx([0, 0.2, 0.7, 1], abs=1e-9)
    assert it.cdf([-1e9, 1e9]).tolist() == [0, 1]
    fine = np.linspace(-20, 60, 256 * 50 + 1)
    middle, weight = (fine[1:] + fine[:-1]) / 2, np.diff(it.cdf(fine))
    assert it.mean == pytest.approx(weight @ middle, abs=1e-9)
    assert it.variance == pytest.approx(weight @ middle**2 - it.mean**2, rel=1e-5)


def test_fewer_buckets_add_up_the_same_fit() -> None:
    mechanism = SquareWave(1.0, 0, 1, grid=64)
    tally = tallies(mechanism, "beta", 5_000, 1)[0]
    fine, coarse = mechanism.distribution(tally), mechanism.distribution(tally, buckets=8)
    assert coarse.masses == pytest.approx(fine.masses.reshape(8, 8).sum(axis=1))
    assert coarse.mean == fine.mean
    assert coarse.quantile(0.3) == fine.quantile(0.3)


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("name", SMOOTH)
def test_many_reports_show_the_distribution(name: str, *, smooth: bool) -> None:
    mechanism = SquareWave(2.0, 0, 1)
    found, true = fitted(mechanism, name, 10_000_000, smooth=smooth), truth(mechanism, name)
    assert np.abs(found.cdf(found.points) - true.cdf(true.points)).max() < 0.01
    assert found.mean == pytest.approx(true.mean, abs=0.001)


def test_hardly_any_noise_leaves_the_histogram() -> None:
    mechanism = SquareWave(12.0, 0, 8, grid=8)
    values = [0.5, 2.5, 2.5, 6.5] * 5_000
    tally = mechanism.tally(mechanism.randomize(values, seeded(1)))
    found = mechanism.distribution(tally, smooth=False)
    assert found.masses == pytest.approx([0.25, 0, 0.5, 0, 0, 0, 0.25, 0], abs=0.02)


def test_real_reports_make_a_distribution() -> None:
    mechanism = SquareWave(1.0, 0, 100)
    values = seeded(1).simulator().beta(2, 5, size=100_000) * 100
    it = mechanism.distribution(mechanism.tally(mechanism.randomize(values, seeded(2))))
    low, high = it.bounds(SHARES, 0.9999)
    assert (low < np.quantile(values, SHARES)).all()
    assert (high > np.quantile(values, SHARES)).all()
    assert "quartiles" in repr(it)
    assert "epsilon 1" in repr(it)


def test_a_table_has_a_row_for_each_bucket() -> None:
    it = fitted(SquareWave(1.0, 0, 1, grid=16), "beta", 1_000, buckets=4)
    assert it.to_frame().shape == (4, 4)
    assert it.columns()["from"] == [0, 0.25, 0.5, 0.75]


# ---- intervals ------------------------------------------------------------------------------


def covered(
    mechanism: SquareWave, name: str, n: int, draws: int, scales: tuple[float, ...] = (1.0,)
) -> Floats:
    """Return how often the intervals of the quantiles, and scaled ones, contain them."""
    true, inside = quantiles(truth(mechanism, name)), np.zeros((len(scales), len(SHARES)))
    for seed, tally in enumerate(tallies(mechanism, name, n, draws)):
        it = mechanism.distribution(tally)
        low, high = it.interval(quantiles, rounds=60, rng=seeded(seed))
        for row, scale in enumerate(scales):
            first, last = ((high + low) / 2 + scale * side * (high - low) / 2 for side in (-1, 1))
            inside[row] += (first <= true) & (true <= last)
    return inside / draws


@pytest.mark.statistics
def test_quantile_intervals_cover_and_narrower_ones_would_not() -> None:
    found = covered(SquareWave(1.0, 0, 1, grid=256), "beta", 10_000, 60, scales=(1.0, 0.5))
    right, narrow = found.mean(axis=1)
    assert right > 0.9
    assert narrow < 0.85


@pytest.mark.slow
def test_quantile_intervals_cover_smooth_densities() -> None:
    shares = {
        (epsilon, n, name): covered(SquareWave(epsilon, 0, 1), name, n, 60)
        for epsilon in (1.0, 2.0)
        for n in (10_000, 100_000)
        for name in SMOOTH
    }
    assert np.mean(list(shares.values())) > 0.93
    for case, found in shares.items():
        assert found.mean() > 0.87, f"{case}: {found}"


@pytest.mark.statistics
@pytest.mark.parametrize("name", CDFS)
def test_intervals_of_mean_and_variance_cover_every_shape(name: str) -> None:
    mechanism, draws = SquareWave(1.0, 0, 1, grid=64), 100
    true, inside = truth(mechanism, name), {"mean": 0, "variance": 0}
    for seed, tally in enumerate(tallies(mechanism, name, 10_000, draws)):
        it = Distribution(mechanism, tally, true.shares, True, 64, 0.0, 0)  # noqa: FBT003
        for statistic in inside:
            low, high = it.interval(statistic, rounds=100, rng=seeded(seed))
            inside[statistic] += int(low <= getattr(true, statistic) <= high)
    assert min(inside.values()) > 0.85 * draws


def bounded(mechanism: SquareWave, name: str, n: int, draws: int) -> tuple[Floats, Floats]:
    """Return how often bounds of the quantiles contain them, and their mean half width."""
    true, inside, half = quantiles(truth(mechanism, name)), np.zeros(3), np.zeros(3)
    for tally in tallies(mechanism, name, n, draws):
        low, high = mechanism.distribution(tally).bounds(SHARES)
        inside += (low <= true) & (true <= high)
        half += (high - low) / 2
    return inside / draws, half / draws


@pytest.mark.parametrize("name", CDFS)
def test_bounds_hold_for_every_shape(name: str) -> None:
    inside, half = bounded(SquareWave(2.0, 0, 1, grid=64), name, 100_000, 40)
    assert (inside >= 0.85).all()
    assert half.min() < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("name", CDFS)
def test_bounds_hold_for_every_shape_on_the_default_grid(name: str, epsilon: float) -> None:
    for n in (10_000, 100_000):
        inside, _ = bounded(SquareWave(epsilon, 0, 1), name, n, 60)
        assert (inside >= 0.88).all()


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 8.0])
def test_cumulative_shares_are_unbiased_and_vary_as_stated(epsilon: float) -> None:
    mechanism = SquareWave(epsilon, 0, 1, grid=32)
    law, true = band(mechanism), truth(mechanism, "beta")
    chances = law.positions(true.shares)
    draws = [cumulative(law, t.sums, chances) for t in tallies(mechanism, "beta", 5_000, 3_000)]
    found = np.array([estimate for estimate, _ in draws])
    below = np.concatenate([[0.0], np.cumsum(true.shares)])
    expected = (below[1:] + below[:-1]) / 2
    error = (found.mean(axis=0) - expected) / (found.std(axis=0) / math.sqrt(3_000) + 1e-12)
    assert np.abs(error).max() < 5
    # The stated variance leaves out that all counts sum to n, which only lowers the true one.
    assert (found.var(axis=0) < 1.15 * draws[0][1]).all()
    assert (found.var(axis=0) > 0.5 * draws[0][1]).all()


def test_one_seed_gives_one_interval_and_the_default_repeats_itself() -> None:
    it = fitted(SquareWave(1.0, 0, 1, grid=32), "beta", 1_000, buckets=4)
    first, again = (np.array(it.interval("density", rounds=50)) for _ in range(2))
    assert first.shape == (2, 4)
    assert (first == again).all()
    assert (first != np.array(it.interval("density", rounds=50, rng=seeded(9)))).any()


def test_a_higher_level_is_wider() -> None:
    it = fitted(SquareWave(1.0, 0, 1, grid=64), "beta", 10_000)
    for narrow, wide in [
        (it.interval("mean", 0.5), it.interval("mean", 0.95)),
        (it.bounds(0.5, 0.5), it.bounds(0.5, 0.999)),
    ]:
        assert wide[0] < narrow[0] <= narrow[1] < wide[1]


def test_a_single_report_bounds_nothing() -> None:
    mechanism = SquareWave(1.0, 0, 1)
    it = mechanism.distribution(mechanism.tally(mechanism.randomize([0.5], seeded(1))))
    low, high = it.bounds(SHARES)
    assert low.tolist() == [0, 0, 0]
    assert high.tolist() == [1, 1, 1]


# ---- what is refused ------------------------------------------------------------------------


@pytest.mark.parametrize("buckets", [0, -4, 3, 128, 2.0, True, "8"])
def test_buckets_divide_the_grid(buckets: Any) -> None:
    mechanism = SquareWave(1.0, 0, 1, grid=64)
    tally = tallies(mechanism, "beta", 100, 1)[0]
    with pytest.raises(ConfigurationError, match="divides the grid's 64 steps"):
        mechanism.distribution(tally, buckets=buckets)


def test_a_tally_of_something_else_is_refused() -> None:
    mechanism = SquareWave(1.0, 0, 1, grid=64)
    for tally in (
        Tally(3, np.array([1, 2])),
        Tally.zero(mechanism.size),
        Tally(7, np.ones(mechanism.size, dtype=np.int64)),
    ):
        with pytest.raises(MismatchError, match="how often each of 97 positions"):
            mechanism.distribution(tally)


def test_levels_rounds_statistics_and_shares_are_checked() -> None:
    it = fitted(SquareWave(1.0, 0, 1, grid=16), "beta", 100)
    with pytest.raises(ConfigurationError, match="level is 1"):
        it.interval("mean", level=1)
    with pytest.raises(ConfigurationError, match=r"level of 0.999 needs at least 2000"):
        it.interval("mean", level=0.999)
    with pytest.raises(ConfigurationError, match="mean, variance, density or a function"):
        it.interval("median")
    with pytest.raises(ConfigurationError, match="level is 0"):
        it.bounds(0.5, level=0)
    for bad in (1.2, [-0.1], math.nan):
        with pytest.raises(InputError, match=r"numbers in 0..1"):
            it.quantile(bad)
