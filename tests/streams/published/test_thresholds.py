"""Thresholds: the corrected scores, their sensitivity, and how far from the best they land."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import ConfigurationError
from sfumato.mechanisms.central import NoisyMax
from sfumato.randomness import Source, seeded
from sfumato.streams.published import thresholds
from sfumato.streams.published.publishing_methods import plan
from sfumato.streams.published.thresholds import Fixed, Quantile, ScaleFree, ToPSThreshold

Ints = NDArray[np.int64]


def lognormal(n: int, seed: int = 1, scale: float = 40.0) -> Ints:
    values = scale * seeded(seed).simulator().lognormal(0, 1, n)
    return values.astype(np.int64)


def recorded(
    threshold: Any, values: Ints, bound: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[Ints, NoisyMax]:
    """Return the scores that a threshold is chosen by, and with what noise."""
    seen: list[tuple[Ints, NoisyMax]] = []

    def select(self: NoisyMax, scores: Ints, rng: Source) -> int:
        del rng
        seen.append((scores, self))
        return int(np.argmax(scores))

    monkeypatch.setattr(NoisyMax, "select", select)
    threshold.choose(values, bound, seeded(1))
    return seen[0]


@pytest.mark.parametrize("threshold", [ToPSThreshold(0.5, 0.3), ScaleFree(0.5, 10)])
def test_scores_are_monotone_and_move_by_at_most_the_sensitivity(
    threshold: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What noisy max needs, on the very integers it is given."""
    draw = seeded(2).simulator()
    values = lognormal(300)
    before, choice = recorded(threshold, values, 500, monkeypatch)
    assert choice.epsilon == 0.5
    moved = 0
    for _ in range(60):
        other = values.copy()
        other[draw.integers(300)] = draw.integers(501)
        after, _ = recorded(threshold, other, 500, monkeypatch)
        steps = after - before
        assert steps.min() >= 0 or steps.max() <= 0
        assert np.abs(steps).max() <= choice.sensitivity
        moved = max(moved, int(np.abs(steps).max()))
    assert moved == choice.sensitivity  # and not by less: the noise is not wasted


def test_the_score_of_tops_is_the_corrected_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """-(3 m t / (c r eps)) sqrt(2 (b - 1) h^3) minus the values ABOVE t, with c = 60."""
    values = lognormal(1 << 16)
    release = plan("tops", epsilon=0.1, bound=2000)
    scores, choice = recorded(release.threshold, values, 2000, monkeypatch)
    for t in (1, 50, 311, 2000):
        factor = 3 * 65536 * t / (60 * 2**20 * 0.1)
        expected = -factor * np.sqrt(2 * 15 * 5**3) - np.count_nonzero(values > t)
        assert scores[t - 1] / choice.sensitivity == pytest.approx(expected, abs=1e-3)
    assert choice.noise == "laplace"


def test_counting_values_below_as_printed_always_takes_the_smallest() -> None:
    values, grid = lognormal(1 << 16), np.arange(1, 2001)
    slope = 3 * 65536 / (60 * 2**20 * 0.1) * np.sqrt(2 * 15 * 5**3)
    below = np.searchsorted(np.sort(values), grid, side="right")
    assert grid[np.argmax(-slope * grid - below)] == 1
    assert 300 < grid[np.argmax(-slope * grid - (values.size - below))] < 700


def cost(release: Any, values: Ints, threshold: int) -> float:
    """Return the expected squared error of random ranges of up to 2^20 values."""
    noise = release.expected_error(threshold, 1 << 20) ** 2
    cut = float(np.maximum(values - threshold, 0).mean())
    return float(noise + cut**2 * float(1 << 20) ** 2 / 6)


SHAPES = {
    "lognormal": lognormal(1 << 16, scale=400.0),
    "exponential": seeded(3).simulator().exponential(800, 1 << 16).astype(np.int64),
    "uniform": seeded(3).simulator().integers(0, 5000, 1 << 16),
    "constant": np.full(1 << 16, 700),
    "mostly zero": np.where(seeded(4).simulator().random(1 << 16) < 0.8, 0, 2000),
    "pareto": (300 * seeded(5).simulator().pareto(2.0, 1 << 16)).astype(np.int64),
}


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("epsilon", [0.01, 0.1])
@pytest.mark.parametrize("scale", [1, 100])
def test_our_threshold_is_never_far_from_the_best(name: str, epsilon: float, scale: int) -> None:
    """In whatever unit, for whatever tail: within a factor of the least expected squared error."""
    bound = 30_000 * scale
    values = np.minimum(SHAPES[name] * scale, bound)
    release = plan(epsilon=epsilon, bound=bound)
    grid = thresholds.candidates(bound, all_integers=False)
    best = min(cost(release, values, int(t)) for t in grid)
    found = [release.threshold.choose(values, bound, seeded(seed)) for seed in range(20)]
    ratios = [cost(release, values, t) / best for t in found]
    assert np.exp(np.mean(np.log(ratios))) < 2.5
    assert max(ratios) < 12


def test_the_threshold_of_tops_depends_on_the_unit_and_can_be_far_off() -> None:
    """Why ours is the default: its constant of 60 is a number of units."""
    values = np.minimum(SHAPES["lognormal"] * 100, 3_000_000)
    release = plan("tops", epsilon=0.01, bound=3_000_000)
    ours = plan(epsilon=0.01, bound=3_000_000)
    best = min(
        cost(ours, values, int(t)) for t in thresholds.candidates(3_000_000, all_integers=False)
    )
    assert cost(ours, values, release.threshold.choose(values, 3_000_000, seeded(1))) > 30 * best


def test_pak_overshoots_the_bound_unless_it_is_clipped() -> None:
    values = lognormal(1 << 16)
    published = plan("pak", epsilon=0.01, bound=5000).threshold
    clipped = plan("pak_clipped", epsilon=0.01, bound=5000).threshold
    assert published.choose(values, 5000, seeded(1)) > 50_000
    assert clipped.choose(values, 5000, seeded(1)) == 5000
    assert published.delta == clipped.delta == 2.0**-40


def test_a_fixed_threshold_is_cut_to_the_bound() -> None:
    assert Fixed(50).choose(np.zeros(0, dtype=np.int64), 20, seeded(1)) == 20


@pytest.mark.parametrize(
    "threshold", [Fixed(3), ToPSThreshold(0.1, 2.0), ScaleFree(1.0, 9.5), Quantile(1.0, 1e-6, 0.99)]
)
def test_a_threshold_survives_plain_data(threshold: Any) -> None:
    plain = {"kind": threshold.name} | vars(threshold)
    assert thresholds.from_configuration(plain) == threshold


def test_an_unknown_threshold_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="it has no kind that is known"):
        thresholds.from_configuration({"kind": "magic"})


@pytest.mark.parametrize("holdout", [512, 1024, 4096, 1 << 16])
@pytest.mark.parametrize("epsilon", [0.01, 0.03, 0.1])
@pytest.mark.parametrize("scale", [7, 200, 2000])
def test_a_short_holdout_is_rough_but_never_cuts_everything(
    holdout: int, epsilon: float, scale: int
) -> None:
    """Noise that leaves hardly a choice leads to a threshold too large, not to one too small."""
    values = seeded(5).simulator().exponential(scale, holdout).astype(np.int64)
    chooser = plan(epsilon=epsilon, bound=100 * scale, holdout=holdout).threshold
    found = [
        chooser.choose(np.minimum(values, 100 * scale), 100 * scale, seeded(k)) for k in range(40)
    ]
    assert np.median(found) > scale  # at the mean a third of all values is cut
    assert np.median(found) < 30 * scale


def test_a_quantile_that_cannot_be_kept_is_refused_before_any_value_comes() -> None:
    with pytest.raises(ConfigurationError, match=r"delta is 0.5; it must be at most"):
        Quantile(1.0, 0.5, 0.9)
