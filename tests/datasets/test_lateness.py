from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from sfumato.datasets.lateness import FEATURES, Lateness, read_lateness
from sfumato.mechanisms import Concord
from sfumato.mechanisms.sparse import RealVectors
from sfumato.randomness import seeded


@cache
def flights() -> Lateness:
    return read_lateness()


@pytest.mark.statistics
def test_every_flight_has_one_feature_of_each_kind() -> None:
    found = flights()
    assert len(found) == 327_346
    assert found.features.shape == (327_346, 4)
    kinds = np.array([name.split()[0] for name in FEATURES])[found.features]
    assert (kinds == ["airport", "month", "hour", "carrier"]).all()
    assert set(np.unique(found.features)) == set(range(len(FEATURES)))
    assert 0.23 < found.late.mean() < 0.245


def trained(epsilon: float, seed: int) -> float:
    """Return the loss on flights never asked, after fifteen rounds with a new group each."""
    mechanism = Concord(epsilon, len(FEATURES), 4)
    gradients, rng = RealVectors(mechanism, 1.0), seeded(seed)
    weights: Any = np.zeros(len(FEATURES))
    for turn in range(15):
        group = slice(20_000 * turn, 20_000 * (turn + 1))
        features = flights().features[group]
        residual = 1 / (1 + np.exp(-weights[features].sum(axis=1))) - flights().late[group]
        vectors = np.zeros(20_000, dtype=[("position", int, (4,)), ("value", float, (4,))])
        vectors["position"], vectors["value"] = features, residual[:, None]
        mean = gradients.estimate(mechanism.tally(gradients.randomize(vectors, rng)))
        weights = weights - 8 / (1 + turn / 10) * mean.values
    score = weights[flights().features[300_000:]].sum(axis=1)
    return float(np.mean(np.logaddexp(0, score) - flights().late[300_000:] * score))


@pytest.mark.slow
def test_lateness_is_learnt_at_epsilon_2_and_not_at_1() -> None:
    late = flights().late[300_000:].mean()
    constant = -late * np.log(late) - (1 - late) * np.log(1 - late)
    assert constant == pytest.approx(0.55, abs=0.005)
    losses = [trained(2.0, seed) for seed in range(10)]
    assert 0.515 < min(losses) < max(losses) < 0.54
    assert np.mean([trained(1.0, seed) for seed in range(4)]) > 0.54
