"""A bank of filters: the same least squares with one more edge, and a mix of several."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.errors import ConfigurationError
from sfumato.streams.bank import MOTIONS, Bank, Motion
from sfumato.streams.weave.fusion import Fusion

T = 12


def dense(values: np.ndarray, back: list[list[int]], noise: np.ndarray, step: float) -> np.ndarray:
    """Least squares with an edge of variance ``step`` between neighbours, period by period."""
    found = []
    for last in range(1, T + 1):
        start, end, observed, variance = [], [], [], []
        place = 0
        for period in range(1, T + 1):
            for lag in back[period - 1]:
                if period <= last:
                    start.append(period - lag if lag else 0)
                    end.append(period)
                    observed.append(values[place])
                    variance.append(noise[place])
                place += 1
            if 1 < period <= last:
                start.append(period - 1)
                end.append(period)
                observed.append(0.0)
                variance.append(step)
        fusion = Fusion(T, np.array(start), np.array(end), 1 / np.array(variance))
        found.append(fusion.weights(last)[-1] @ np.array(observed))
    return np.array(found)


def test_one_filter_is_least_squares_with_an_edge_between_neighbours() -> None:
    rng = np.random.default_rng(5)
    back = [[0] + [lag for lag in (1, 2, 4) if lag < period] for period in range(1, T + 1)]
    count = sum(map(len, back))
    values, noise = rng.normal(size=count), rng.uniform(0.5, 2.0, count)
    bank = Bank(1, longest=4, motions=(Motion(0.3),))
    step = 0.3 * noise[0]
    expected = dense(values, back, noise, step)
    place = 0
    for period, lags in enumerate(back):
        rows = slice(place, place + len(lags))
        place += len(lags)
        value, _ = bank.close(np.array(lags), values[rows, None], noise[rows])
        assert abs(value[0] - expected[period]) < 1e-9


def test_evidence_goes_to_the_step_the_curve_takes() -> None:
    rng = np.random.default_rng(6)
    steady = np.full(300, 0.4)
    lively = 0.4 + np.cumsum(rng.normal(0, 0.2, 300))
    seen = np.stack([steady, lively], axis=1) + rng.normal(0, 0.1, (300, 2))
    bank = Bank(2, motions=tuple(map(Motion, (1e-4, 1e-2, 1.0, 4.0, 100.0))))
    for row in seen:
        bank.close(np.array([0]), row[None], np.array([0.01]))
    assert bank.evidence[0, 0] > 0.5
    assert bank.evidence[3, 1] > 0.5


def test_a_steady_curve_is_known_much_better_and_intervals_hold() -> None:
    rng = np.random.default_rng(7)
    level = np.full((200, 400), 0.3)
    seen = level + rng.normal(0, 0.1, level.shape)
    bank = Bank(400)
    inside, squared = [], []
    for period, row in enumerate(seen):
        value, variance = bank.close(np.array([0]), row[None], np.array([0.01]))
        if period >= 20:
            inside.append(np.abs(value - 0.3) < 1.96 * np.sqrt(variance))
            squared.append((value - 0.3) ** 2)
    assert np.mean(inside) > 0.93
    assert np.mean(squared) < 0.01 / 10


def test_before_the_first_look_nothing_is_known() -> None:
    bank = Bank(1, longest=2)
    value, variance = bank.close(np.zeros(0, dtype=int), np.zeros((0, 1)), np.zeros(0))
    assert np.isnan(value[0])
    assert np.isinf(variance[0])


def test_switch_is_a_share() -> None:
    with pytest.raises(ConfigurationError, match="switch is 1"):
        Bank(1, switch=1)


def followed(bank: Bank, seen: np.ndarray, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Close one period after another; return all means and variances."""
    found = [bank.close(np.array([0]), row[None], np.array([noise])) for row in seen]
    means, variances = zip(*found, strict=True)
    return np.array(means), np.array(variances)


def test_entries_apart_with_equal_noise_are_the_same_as_together() -> None:
    seen = 0.4 + np.random.default_rng(8).normal(0, 0.1, (40, 3))
    one = followed(Bank(3, motions=MOTIONS), seen, 0.01)
    other = followed(Bank(3, motions=MOTIONS, apart=True, surprise=0), seen, 0.01)
    for together, alone in zip(one, other, strict=True):
        assert np.allclose(together, alone, rtol=1e-9, atol=1e-12)


@pytest.mark.statistics
def test_jitter_is_part_of_the_truth_and_noise_is_not() -> None:
    rng = np.random.default_rng(9)
    truth = 0.3 + rng.normal(0, 0.1, (300, 40))
    seen = truth + rng.normal(0, 0.1, truth.shape)
    covered = {}
    for name, motions in (("steps", tuple(m for m in MOTIONS if not m.jitter)), ("all", MOTIONS)):
        means, variances = followed(Bank(40, motions=motions, apart=True), seen, 0.01)
        covered[name] = np.mean(np.abs(means - truth)[50:] < 1.96 * np.sqrt(variances[50:]))
    assert covered["all"] > 0.93
    assert covered["steps"] < 0.9


@pytest.mark.statistics
def test_a_slope_is_followed_without_falling_behind() -> None:
    rng = np.random.default_rng(10)
    truth = np.linspace(0, 6, 300)[:, None] * np.ones(20)
    seen = truth + rng.normal(0, 0.1, truth.shape)
    errors = {
        bool(motions is MOTIONS): np.mean(
            (followed(Bank(20, motions=motions, apart=True), seen, 0.01)[0] - truth)[50:] ** 2
        )
        for motions in (tuple(m for m in MOTIONS if not m.bend and not m.jitter), MOTIONS)
    }
    assert errors[True] < errors[False] / 3


def test_who_jumps_starts_afresh_and_nobody_else() -> None:
    rng = np.random.default_rng(11)
    truth = np.full((120, 2), 0.2)
    truth[60:, 1] = 1.2
    seen = truth + rng.normal(0, 0.05, truth.shape)
    bank = Bank(2, motions=MOTIONS, apart=True)
    jumps = []
    for row in seen:
        value, variance = bank.close(np.array([0]), row[None], np.full((1, 2), 0.0025))
        jumps.append(bank.restarted)
        if len(jumps) == 61:
            assert bank.tail[1] < 1e-6
            assert abs(value[1] - 1.2) < 0.2
            assert abs(variance[1] - 0.0025) < 1e-9
    assert np.flatnonzero(np.array(jumps)[:, 1]).tolist() == [60]
    assert not np.array(jumps)[:, 0].any()
    assert abs(value[1] - 1.2) < 0.04


@pytest.mark.statistics
def test_tails_are_uniform_where_the_curve_is_as_expected() -> None:
    rng = np.random.default_rng(12)
    truth = np.cumsum(rng.normal(0, 0.05, (200, 100)), axis=0)
    seen = truth + rng.normal(0, 0.1, truth.shape)
    bank = Bank(100, motions=MOTIONS, apart=True)
    tails = []
    for row in seen:
        bank.close(np.array([0]), row[None], np.full((1, 100), 0.01))
        tails.append(bank.tail)
    late = np.array(tails)[20:]
    assert 0.035 < np.mean(late < 0.05) < 0.06
    assert np.mean(late < 0.001) < 0.002


def test_differences_share_a_covariance() -> None:
    with pytest.raises(ConfigurationError, match="longest is 4 for entries apart"):
        Bank(2, longest=4, apart=True)


def test_rounding_errors_do_not_grow_over_a_long_horizon() -> None:
    """A covariance that is not kept symmetric doubles its rounding errors every few periods."""
    bank = Bank(1, longest=4, motions=MOTIONS)
    noise, back = np.array([0.25, 0.013, 0.073]), np.array([0, 1, 4])
    variances = []
    for period in range(1, 901):
        seen = slice(None) if period > 4 else slice(1)
        variances.append(bank.close(back[seen], np.zeros((3, 1))[seen], noise[seen])[1][0])
    assert 0 < variances[-1] < variances[0]
    covariance = bank.state[1]
    assert np.allclose(covariance, covariance.swapaxes(2, 3), rtol=1e-9)
