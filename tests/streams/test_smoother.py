"""History: each period learns from its future, and intervals still hold."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.streams.bank import Bank, Motion
from sfumato.streams.smoother import smoothed
from sfumato.streams.weave.fusion import Fusion


def test_one_filter_run_back_is_least_squares_over_all_periods() -> None:
    rng = np.random.default_rng(1)
    periods, step = 9, 0.3
    seen, noise = rng.normal(size=(periods, 1)), rng.uniform(0.5, 2, (periods, 1))
    ends = np.arange(1, periods + 1)
    known = np.concatenate([noise[:, 0], np.full(periods - 1, step * np.median(noise))])
    fusion = Fusion(
        periods,
        np.concatenate([np.zeros(periods, dtype=int), ends[:-1]]),
        np.concatenate([ends, ends[1:]]),
        1 / known,
    )
    observed = np.concatenate([seen[:, 0], np.zeros(periods - 1)])
    mean, variance = smoothed(seen, noise, motions=(Motion(step),), switch=0.0)
    assert np.allclose(mean[:, 0], fusion.weights(periods) @ observed)
    weights = fusion.weights(periods)
    # The posterior variance is that of the weighted sum if the steps are as they are said to be.
    assert np.allclose(variance[:, 0], (weights**2) @ known)


@pytest.mark.statistics
def test_history_is_known_better_than_the_present_and_intervals_hold() -> None:
    rng = np.random.default_rng(2)
    truth = 0.3 + np.cumsum(rng.normal(0, 0.03, (300, 30)), axis=0)
    seen = truth + rng.normal(0, 0.1, truth.shape)
    noise = np.full_like(seen, 0.01)
    bank = Bank(30, apart=True)
    online = np.array([bank.close(np.array([0]), row[None], noise[:1])[0] for row in seen])
    mean, variance = smoothed(seen, noise)
    assert np.mean((mean - truth) ** 2) < 0.7 * np.mean((online - truth) ** 2)
    assert np.mean(np.abs(mean - truth) < 1.96 * np.sqrt(variance)) > 0.93


def test_a_jump_is_not_smoothed_over() -> None:
    rng = np.random.default_rng(3)
    truth = np.where(np.arange(100) < 50, 0.2, 1.2)[:, None]
    seen = truth + rng.normal(0, 0.05, truth.shape)
    mean, _ = smoothed(seen, np.full_like(seen, 0.0025))
    assert np.abs(mean - truth).max() < 0.1


def test_periods_without_answers_are_bridged() -> None:
    seen = np.array([[0.2], [np.nan], [0.4]])
    mean, variance = smoothed(seen, np.full_like(seen, 0.01), motions=(Motion(1.0),))
    assert abs(mean[1, 0] - 0.3) < 1e-9
    assert variance[1, 0] > variance[0, 0]


def test_entries_do_not_depend_on_how_many_are_done_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen = np.random.default_rng(4).normal(size=(20, 5))
    whole = smoothed(seen, np.ones_like(seen))
    monkeypatch.setattr("sfumato.streams.smoother.ROOM", 1)
    for one, other in zip(whole, smoothed(seen, np.ones_like(seen)), strict=True):
        assert np.allclose(one, other)
