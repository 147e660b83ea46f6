"""CoCo: the law with conflicts, its ranges, and what the printed hash would do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.checks.privacy import exact_ratio
from sfumato.core.exact import exp_below
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse.hashed.coco import CoCo
from sfumato.mechanisms.sparse.hashed.collision import Collision
from sfumato.mechanisms.sparse.hashed.linear_hash import LinearHash


@pytest.mark.parametrize("hash_range", [4, 6, 8])
@pytest.mark.parametrize("exact", [False, True])
def test_epsilon_is_spent_and_not_exceeded_conflicts_included(hash_range: int, exact: bool) -> None:  # noqa: FBT001
    mechanism = CoCo(1.5, 3, 2, hash_range, exact_sparsity=exact, seed_bits=6)
    ratio = exact_ratio(mechanism)
    assert ratio == mechanism.worst_ratio
    assert exp_below(1.5 * (1 - 1e-6)) <= ratio <= exp_below(1.5)


@pytest.mark.parametrize("hash_range", [4, 6])
def test_supports_are_exact_conflicts_included(hash_range: int) -> None:
    mechanism = CoCo(1.0, 3, 2, hash_range, exact_sparsity=True)
    assert isinstance(mechanism.family, LinearHash)
    held = np.zeros((2, 3))
    for seed in mechanism.publics():
        law = mechanism.law((1, -1, 0), seed)
        plus = mechanism.family.table(3, np.array([seed]))[:, 0]
        held[0] += law.probabilities[plus]
        held[1] += law.probabilities[(plus + hash_range // 2) % hash_range]
    held /= len(mechanism.publics())
    found = mechanism.probabilities
    p, o, q = found.p_true, found.p_opposite, found.p_false
    assert held == pytest.approx(np.array([[p, o, q], [o, p, q]]), rel=1e-12)
    assert found.contrast == pytest.approx(p - o, rel=1e-12)
    assert found.presence == pytest.approx(p + o - 2 * q, rel=1e-12, abs=1e-15)


def test_the_opposite_sign_is_rarer_than_a_false_one_from_two_buckets_each_on() -> None:
    for sparsity in (1, 2, 4, 8, 32):
        law = CoCo(0.1, 256, sparsity, hash_range=2 * sparsity).probabilities
        assert law.p_opposite < law.p_false < law.p_true


@pytest.mark.parametrize(("epsilon", "gain"), [(0.1, 0.26), (0.5, 0.16), (1.0, 0.09), (2.0, 0.03)])
def test_known_gains_over_collision(epsilon: float, gain: float) -> None:
    ratio = CoCo(epsilon, 256, 8).mse / Collision(epsilon, 256, 8).mse
    assert 1 - ratio == pytest.approx(gain, abs=0.006)


def test_the_printed_range_is_made_even() -> None:
    for epsilon in (0.1, 0.5, 1.0, 2.0):
        for goal in ("value", "frequency"):
            printed = CoCo(epsilon, 256, 5, goal=goal, paper=True)
            assert printed.buckets % 2 == 0
            assert printed.buckets >= 12
    assert CoCo(0.1, 256, 4, paper=True).mse > 1.1 * CoCo(0.1, 256, 4).mse


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"hash_range": 7}, "hash_range is 7; coco needs an even one"),
        ({"hash_range": 4, "sparsity": 3}, "hash_range is 4; a whole number in 6"),
        ({"hash_range": 4, "goal": "frequency"}, "hash_range is 4; a whole number in 6"),
    ],
)
def test_odd_and_small_ranges_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        CoCo(**({"epsilon": 1.0, "dimension": 8, "sparsity": 2} | given))
