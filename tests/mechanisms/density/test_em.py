"""The fit that needs no matrix equals the fit with a matrix."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.em import dense_fit, dense_law, main
from numpy.typing import NDArray

from sfumato.mechanisms import SquareWave
from sfumato.mechanisms.density.distribution import band, tolerance
from sfumato.mechanisms.density.em import Fit, fit
from sfumato.randomness import seeded

Floats = NDArray[np.float64]

MECHANISMS = [
    SquareWave(epsilon, 0, 1, grid=grid)
    for epsilon, grid in [(0.1, 16), (1.0, 64), (2.0, 64), (8.0, 32), (20.0, 8), (1.0, 2)]
]


def counted(mechanism: SquareWave, n: int, seed: int, rows: int = 1) -> Floats:
    """Return counts of positions for skewed people."""
    shares = np.diff(np.linspace(0, 1, mechanism.grid + 1) ** 2)
    chances = band(mechanism).positions(shares)
    draw = seeded(seed).simulator()
    return draw.multinomial(n, chances / chances.sum(), size=rows).astype(np.float64)


def ends_at(mechanism: SquareWave, counts: Floats, within: float, *, smooth: bool) -> Fit:
    return fit(band(mechanism), counts, within, smooth=smooth)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_the_band_is_the_exact_law(mechanism: SquareWave) -> None:
    law, without = dense_law(mechanism), band(mechanism)
    draw = seeded(1).simulator()
    shares, weights = draw.dirichlet(np.ones(mechanism.grid), 3), draw.random((3, mechanism.size))
    assert without.positions(shares) == pytest.approx(shares @ law.T, abs=1e-15)
    assert without.pull(weights) == pytest.approx(weights @ law, abs=1e-13)


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_it_ends_where_the_matrix_ends(mechanism: SquareWave, *, smooth: bool) -> None:
    counts, within = counted(mechanism, 65_536, 2), tolerance(mechanism, smooth=smooth)
    found = ends_at(mechanism, counts, within, smooth=smooth)
    law = dense_law(mechanism)
    shares, steps = dense_fit(law, counts[0], within, smooth=smooth)
    assert found.iterations[0] == steps
    assert found.shares[0] == pytest.approx(shares, abs=1e-12)
    likelihood = counts[0] @ np.log(law @ shares)
    assert found.log_likelihood[0] == pytest.approx(likelihood, abs=1e-7)


@pytest.mark.parametrize("smooth", [True, False])
def test_rows_do_not_know_each_other(*, smooth: bool) -> None:
    mechanism = SquareWave(1.0, 0, 1, grid=32)
    counts = np.concatenate([counted(mechanism, n, n, rows=2) for n in (50, 500, 50_000)])
    for accelerate in (True, False):
        together = fit(band(mechanism), counts, 1e-3, smooth=smooth, accelerate=accelerate)
        for row, shares in zip(counts, together.shares, strict=True):
            alone = fit(band(mechanism), row[None], 1e-3, smooth=smooth, accelerate=accelerate)
            assert alone.shares[0].tolist() == shares.tolist()


def test_the_likelihood_never_falls_without_smoothing() -> None:
    mechanism = SquareWave(1.0, 0, 1, grid=32)
    counts, law = counted(mechanism, 5_000, 3), band(mechanism)
    shares, before = np.full((1, 32), 1 / 32), -np.inf
    for _ in range(300):
        chances = law.positions(shares)
        likelihood = float(counts[0] @ np.log(chances[0]))
        assert likelihood >= before - 1e-9
        assert chances.min() >= law.floor
        shares, before = shares * law.pull(counts / chances) / 5_000, likelihood
        assert shares.sum() == pytest.approx(1.0, abs=1e-12)


def test_a_tight_tolerance_ends_at_the_maximum() -> None:
    mechanism = SquareWave(2.0, 0, 1, grid=16)
    counts, law = counted(mechanism, 10_000, 4), band(mechanism)
    found = fit(law, counts, 1e-11, smooth=False, accelerate=True)
    pull = law.pull(counts / law.positions(found.shares))[0] / 10_000
    # No bucket would gain by more people, and those with people not by fewer either.
    assert pull.max() < 1 + 1e-4
    assert pull[found.shares[0] > 1e-3] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("smooth", [True, False])
def test_leaps_end_at_the_same_likelihood_in_fewer_steps(*, smooth: bool) -> None:
    mechanism = SquareWave(1.0, 0, 1, grid=256)
    counts, within = counted(mechanism, 65_536, 5, rows=8), tolerance(mechanism, smooth=smooth)
    plain = fit(band(mechanism), counts, within, smooth=smooth)
    leaping = fit(band(mechanism), counts, within, smooth=smooth, accelerate=True)
    assert leaping.iterations.mean() < plain.iterations.mean() / 4
    # The plain fit stops while it still gains a little at each of many more steps.
    assert (leaping.log_likelihood > plain.log_likelihood - 0.5).all()
    assert leaping.log_likelihood.mean() > plain.log_likelihood.mean()
    assert leaping.shares.sum(axis=1) == pytest.approx(1.0, abs=1e-12)


def test_the_iteration_is_bounded() -> None:
    mechanism = SquareWave(1.0, 0, 1, grid=2)
    found = ends_at(mechanism, counted(mechanism, 100, 6), 0.0, smooth=False)
    assert found.iterations[0] == 10_000
    assert np.isfinite(found.log_likelihood[0])


def test_the_benchmark_says_how_much_longer_the_matrix_takes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["--n", "1000", "--grid", "32"])
    said = capsys.readouterr().out
    assert said.count("times as long") == 2
