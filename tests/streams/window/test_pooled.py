"""Pooled: items that learn from each other, curves that rest or jump, and a larger first cohort."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from sfumato.arrays import Floats
from sfumato.core.stream import Ask, Timestep
from sfumato.errors import ConfigurationError
from sfumato.randomness import seeded
from sfumato.simulation import Simulation, simulate
from sfumato.simulation.drifting import Drifting
from sfumato.streams.window import Window, WindowEstimate
from sfumato.streams.window import jumping as jumping_bank
from sfumato.streams.window.jumping import LAWS, WARY
from sfumato.streams.window.pooled_method import FIRST, Pooled

from .people import Steady

N = 20_000


def ran(shares: Floats, window: int, epsilon: float, method: str = "pooled") -> Simulation:
    people = Steady(shares, N)
    protocol = Window(window, epsilon, N, domain=shares.shape[1], method=method)
    return simulate(protocol, people, seed=6)


def bits(curve: Floats) -> Floats:
    return np.stack([1 - curve, curve], axis=1)


def jumping(periods: int, every: int) -> Floats:
    return bits(np.where((np.arange(periods) // every) % 2, 0.4, 0.1))


def test_the_first_period_asks_more_and_nobody_answers_twice_in_a_window() -> None:
    window, devices = 5, 1000
    curator = Window(window, 1.0, devices, domain=2, method="pooled").curator()
    assert isinstance(curator, Pooled)
    sizes = []
    for period in range(1, 3 * window + 1):
        step = Timestep(curator, period)
        assert isinstance(step.question, Ask)
        step.answer(step.question.mechanism.sample_tally(np.array([50, 50]), seeded(period)))
        sizes.append(curator.division.spent.total(period))
    assert sizes[0] == FIRST * devices + (1 - FIRST) * devices / window
    assert max(sizes) <= devices * (1 + 1e-12)  # nobody is asked a second time to fill a cohort
    usual = [later - before for before, later in pairwise(sizes[:window])]
    assert np.allclose(usual, (1 - FIRST) * devices / window)


@pytest.mark.statistics
@pytest.mark.parametrize(("window", "epsilon"), [(10, 2.0), (60, 0.5)])
def test_a_constant_curve_is_hardly_ever_taken_for_a_moving_one(
    window: int, epsilon: float
) -> None:
    """The best that can be said of it is the mean of all answers so far."""
    errors = np.zeros(2)
    for seed in range(5):
        still = Drifting(2, N, 150, pace=0.0)
        pooled = simulate(Window(window, epsilon, N, domain=2, method="pooled"), still, seed=seed)
        raw = np.array([release.raw for release in pooled.releases])
        received = np.array([asked.received for asked in pooled.asked])[:, None]
        mean = np.cumsum(raw * received, axis=0) / np.cumsum(received, axis=0)
        errors += pooled.mse(), np.mean((mean - pooled.truth) ** 2)
    assert errors[0] < 2.5 * errors[1]


@pytest.mark.statistics
def test_intervals_hold_in_the_period_of_a_jump() -> None:
    """With weak answers, where the jump is less than three deviations of an answer."""
    curve = jumping(400, 10)
    pooled = ran(curve, 60, 0.6)
    held = np.abs(pooled.values - pooled.truth) <= 1.96 * np.sqrt(pooled.variances)
    jumps = np.arange(10, 400, 10)
    assert held[jumps].mean() > 0.85 - 4 * np.sqrt(0.85 * 0.15 / len(jumps))
    # Intervals around what was followed alone would not reach so far.
    raw = np.array([release.raw for release in pooled.releases])
    noise = np.array([release.raw_variance for release in pooled.releases])
    followed = 1.96 * np.sqrt(np.minimum(pooled.variances, 0.25 * noise))
    assert (np.abs(pooled.values - pooled.truth) <= followed)[jumps].mean() < 0.5
    assert np.abs(raw - pooled.truth)[jumps].mean() > 0.05


@pytest.mark.statistics
def test_a_jump_is_followed_at_once_if_it_can_be_seen() -> None:
    curve = jumping(200, 37)
    pooled, plain = ran(curve, 10, 2.0), ran(curve, 10, 2.0, "lpu")
    assert pooled.mse() < plain.mse() / 3
    assert np.abs(pooled.values - pooled.truth)[[37, 74, 111]].max() < 0.06
    sounded = [release.period for release in pooled.releases if release.alarms(0.01).any()]
    assert {38, 75, 112, 149, 186} <= set(sounded)
    assert len(sounded) < 12


@pytest.mark.statistics
def test_white_noise_is_left_as_it_is() -> None:
    white = bits(np.random.default_rng(3).uniform(0.1, 0.3, 200))
    pooled, plain = ran(white, 10, 2.0), ran(white, 10, 2.0, "lpu")
    assert pooled.mse() < 1.1 * plain.mse()
    assert pooled.coverage() > 0.93


@pytest.mark.statistics
def test_intervals_hold_the_jitter_that_answers_cannot_show(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Jitter of half an answer's deviation; all sizes alike would be too hopeful."""
    white = [bits(np.random.default_rng(run).uniform(0.1, 0.3, 200)) for run in range(8)]
    held = []
    for factors in (jumping_bank.FEARS, np.where(LAWS[:, 2] > 0, WARY, 1.0)):
        monkeypatch.setattr(jumping_bank, "FEARS", factors)
        held.append(np.mean([ran(each, 80, 0.5).coverage() for each in white]))
    assert held[0] > 0.925
    assert held[1] < held[0] - 0.015


@pytest.mark.statistics
def test_many_items_that_drift_have_less_error_and_intervals_still_hold() -> None:
    drifting = Drifting(12, N, 120)
    plain = simulate(Window(30, 1.0, N, domain=12, method="filtered"), drifting, seed=5)
    better = simulate(Window(30, 1.0, N, domain=12, method="pooled"), drifting, seed=5)
    assert better.mse() < 0.7 * plain.mse()
    assert better.coverage() > 0.93


def test_numbers_are_followed_in_parts_of_their_interval() -> None:
    """The same answers in another unit are the same answers."""
    releases = []
    for high in (1.0, 1000.0):
        protocol = Window(4, 1.0, N, interval=(0.0, high), method="pooled")
        curator = protocol.curator()
        for period in range(1, 6):
            step = Timestep(curator, period)
            assert isinstance(step.question, Ask)
            mechanism = step.question.mechanism
            held = mechanism.encode([high / 4] * 500)
            step.answer(mechanism.tally(mechanism.randomize_encoded(held, seeded(period))))
        assert isinstance(step.done, WindowEstimate)
        releases.append((step.done.values / high, step.done.variance / high**2))
    assert np.allclose(releases[0], releases[1])


def test_a_period_in_which_nobody_answers_is_bridged() -> None:
    curator = Window(2, 1.0, 1000, domain=3, method="pooled").curator()
    releases = []
    for period, answers in enumerate((0, 400, 0, 500), start=1):
        step = Timestep(curator, period)
        assert isinstance(step.question, Ask)
        held = np.array([answers // 2, answers // 2, 0])
        step.answer(step.question.mechanism.sample_tally(held, seeded(period)))
        assert isinstance(step.done, WindowEstimate)
        releases.append(step.done)
    assert [release.published for release in releases] == [False, True, False, True]
    assert np.isinf(releases[0].variance).all()
    assert np.isfinite(releases[2].values).all()
    assert releases[2].raw is None


def test_doubt_widens_the_intervals() -> None:
    protocol = Window(10, 1.0, N, domain=2, method="pooled")
    people = Steady(bits(np.full(6, 0.2)), N)
    usual = simulate(protocol, people, seed=5)
    sure = simulate(replace(protocol, parameters=(("doubt", 0.6),)), people, seed=5)
    assert np.allclose(usual.values, sure.values)
    assert (usual.variances >= sure.variances).all()
    assert (usual.variances > 1.9 * sure.variances).any()


@pytest.mark.parametrize("name", ["first", "hazard", "switch"])
def test_a_probability_is_one(name: str) -> None:
    for nonsense in (-0.1, 1.0):
        with pytest.raises(ConfigurationError, match=f"{name} is"):
            Window(10, 1.0, 1000, domain=2, method="pooled", parameters=((name, nonsense),))
