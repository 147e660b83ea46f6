"""Both rounds together: jumps are kept, gaps are bridged, and intervals cover."""

from __future__ import annotations

import time

import numpy as np
import pytest

from sfumato.streams.posterior.competition import Competition
from sfumato.streams.posterior.information import Information, Sightings
from sfumato.streams.posterior.mixture import Mixture
from sfumato.streams.posterior.rounds import posterior
from sfumato.streams.posterior.shapes import first_shapes


def looked(truth: np.ndarray, noise: float, seed: int = 1) -> Information:
    """Return what snapshots of each period say of curves, with noise of this variance."""
    draw = np.random.default_rng(seed)
    ends = np.arange(1, len(truth) + 1)
    value = truth + draw.normal(0, noise**0.5, truth.shape)
    known = np.full(len(truth), noise)
    sightings = Sightings(0 * ends, ends, value, known, np.full(truth.shape, noise))
    return Information.of(np.ones(len(truth)), sightings)


def watched(truth: np.ndarray, seed: int) -> Information:
    """Return what weak looks and differences from period to period say of curves."""
    draw = np.random.default_rng(seed)
    ends = np.arange(1, len(truth) + 1)
    start = np.concatenate([0 * ends, ends[:-1]])
    end = np.concatenate([ends, ends[1:]])
    known = np.concatenate([np.full(ends.size, 0.02), np.full(ends.size - 1, 0.01)])
    order = np.argsort(end, kind="stable")
    start, end, known = start[order], end[order], known[order]
    whole = np.concatenate([np.zeros((1, truth.shape[1])), truth])
    right = whole[end] - whole[start]
    value = right + draw.normal(size=right.shape) * np.sqrt(known)[:, None]
    noise = np.broadcast_to(known[:, None], value.shape)
    return Information.of(np.ones(ends.size), Sightings(start, end, value, known, noise))


def first_round(seen: Information) -> Mixture:
    """Return the posterior by shapes that have learnt nothing of when the curves move."""
    competition = Competition(seen)
    for shape in first_shapes(seen.periods):
        competition.enter(shape)
    return competition.mixture()


def error(mixture: Mixture, truth: np.ndarray) -> float:
    """Return the mean squared error over all periods."""
    return float(((mixture.combined(np.eye(len(truth)))[0] - truth) ** 2).mean())


def test_shapes_learn_when_curves_jump() -> None:
    """Beside two jumps nothing moves: looks of the whole time between them count together."""
    level = np.repeat([[0.2, 0.5], [0.6, 0.3], [0.3, 0.4]], [22, 21, 21], axis=0)
    gains = []
    for seed in range(5):
        seen = looked(level, 0.0025, seed)
        both = posterior(seen)
        gains.append(error(both, level) / error(first_round(seen), level))
        assert error(both, level) < 0.25 * 0.0025
        mean, variance = both.combined(np.eye(64)[[23]] - np.eye(64)[[20]])
        assert (np.abs(mean - (level[23] - level[20])) < 4 * np.sqrt(variance)).all()
        assert (variance < 2 * 0.0025).all()  # sharper than the two looks of its periods
    assert np.mean(gains) < 0.7


def test_a_still_curve_is_known_nearly_as_well_as_if_that_were_known() -> None:
    still = np.full((64, 8), 0.3)
    assert error(posterior(looked(still, 0.01)), still) < 4 * 0.01 / 64


def test_periods_without_reports_are_answered_with_doubt() -> None:
    draw = np.random.default_rng(5)
    truth = 0.3 + np.cumsum(draw.normal(0, 0.02, (40, 3)), axis=0)
    whole = looked(truth, 0.001)
    matrix, pull = whole.matrix.copy(), whole.pull.copy()
    matrix[20:25, 20:25] = pull[20:25] = 0.0
    mean, variance = posterior(Information(matrix, pull, whole.noise)).combined(np.eye(40))
    assert np.isfinite(mean).all()
    assert variance[22].mean() > 1.3 * variance[10:18].mean()
    assert (variance[22] > variance[18]).all()
    assert (np.abs(mean - truth) < 5 * np.sqrt(variance)).all()


@pytest.mark.parametrize("periods", [1, 2, 3, 9])
def test_short_horizons_are_answered(periods: int) -> None:
    truth = np.full((periods, 2), 0.4)
    mean, variance = posterior(looked(truth, 0.01)).combined(np.eye(periods))
    assert np.isfinite(mean).all()
    assert ((variance > 0) & (variance < 0.03)).all()


def test_noise_is_settled_by_the_curves_of_the_first_round() -> None:
    truth = np.full((30, 2), 0.4)
    calm = posterior(looked(truth, 0.01), lambda curves: np.ones(curves.shape[1]))
    loud = posterior(looked(truth, 0.01), lambda curves: np.full(curves.shape[1], 4.0))
    few = np.ones((1, 30)) / 30
    assert (loud.combined(few)[1] > 2.5 * calm.combined(few)[1]).all()


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.05, 0.1, 0.2, 0.35])
@pytest.mark.parametrize("length", [4, 10, 28])
def test_a_weak_single_curve_with_a_steep_start_is_covered(length: int, level: float) -> None:
    """Its start is hardly seen in the noise, and differences to it must say so."""
    truth = level * np.minimum(1, np.arange(1, 101) / length)[:, None]
    inside: dict[str, list[float]] = {"mean": [], "range": [], "difference": []}
    for run in range(24):
        mixture = posterior(watched(truth, run))
        pairs = np.sort(
            [np.random.default_rng([run, k]).permutation(100)[:2] for k in range(48)], axis=1
        )
        unit = np.eye(100)
        asked = {
            "mean": unit,
            "range": np.array([unit[first : last + 1].sum(axis=0) for first, last in pairs]),
            "difference": unit[pairs[:, 1]] - unit[pairs[:, 0]],
        }
        for kind, rows in asked.items():
            mean, variance = mixture.combined(rows)
            inside[kind].append(float((np.abs(mean - rows @ truth) < 1.96 * variance**0.5).mean()))
    for kind, shares in inside.items():
        assert np.mean(shares) >= 0.94, kind


@pytest.mark.slow
def test_a_thousand_periods_of_many_items_take_seconds() -> None:
    draw = np.random.default_rng(6)
    truth = 0.3 + np.cumsum(draw.normal(0, 0.003, (1024, 64)), axis=0)
    seen = looked(truth, 0.001)
    before = time.process_time()
    mixture = posterior(seen)
    mixture.combined(np.eye(1024))
    assert time.process_time() - before < 20
