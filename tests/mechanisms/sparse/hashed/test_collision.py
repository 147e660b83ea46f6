"""Collision: the law with conflicts, ranges; what it shares with CoCo."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
from tests.fitting import ALARM, p_value

from sfumato.checks.privacy import exact_ratio
from sfumato.core.exact import exp_below
from sfumato.errors import ConfigurationError, InputError
from sfumato.mechanisms.sparse.hashed.coco import CoCo
from sfumato.mechanisms.sparse.hashed.collision import Collision
from sfumato.mechanisms.sparse.hashed.hashed_vector import HashedVector
from sfumato.randomness import seeded

KINDS = [Collision, CoCo]


@pytest.mark.parametrize("hash_range", [3, 4, 5, 6])
@pytest.mark.parametrize("exact", [False, True])
def test_epsilon_is_spent_and_not_exceeded_conflicts_included(hash_range: int, exact: bool) -> None:  # noqa: FBT001
    mechanism = Collision(1.5, 2, 2, hash_range, exact_sparsity=exact, seed_bits=6)
    ratio = exact_ratio(mechanism)
    assert ratio == mechanism.worst_ratio
    assert exp_below(1.5 * (1 - 1e-6)) <= ratio <= exp_below(1.5)


def test_supports_are_exact_conflicts_included() -> None:
    mechanism = Collision(1.0, 3, 2, hash_range=3)
    held = np.zeros((2, 3))
    for seed in mechanism.publics():
        law = mechanism.law((1, -1, 0), seed)
        buckets = mechanism.family.table(6, np.array([seed]))[:, 0]
        held += law.probabilities[buckets].reshape(2, 3)
    held /= len(mechanism.publics())
    p, q = mechanism.probabilities.p_true, mechanism.probabilities.p_false
    assert held == pytest.approx(np.array([[p, q, q], [q, p, q]]), rel=1e-12)


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("kind", "sparsity", "hash_range"),
    [
        *[(Collision, 2, 3), (Collision, 3, 4), (Collision, 3, 5), (Collision, 4, 5)],
        *[(CoCo, 2, 4), (CoCo, 2, 6), (CoCo, 3, 6)],
    ],
)
def test_the_bucket_sent_follows_its_law_for_every_pattern_of_conflicts(
    kind: type[HashedVector], sparsity: int, hash_range: int
) -> None:
    mechanism, n = kind(2.5, 9, sparsity, hash_range), 6000
    patterns = np.array([*product(range(hash_range), repeat=sparsity)], dtype=np.uint16)
    sent = mechanism._choose(patterns.repeat(n, axis=0).T, seeded(1)).reshape(-1, n)  # noqa: SLF001
    told = total = 0
    for pattern, found in zip(patterns.tolist(), sent, strict=True):
        counts = np.bincount(found, minlength=hash_range)
        chances = mechanism._chances(pattern)  # noqa: SLF001
        assert sum(chances) == 1
        assert p_value(counts, np.array(chances, dtype=float)) > ALARM
        # The law of the same buckets in another number, or with other owners, is told from it.
        other = mechanism._chances([*pattern[1:], pattern[-1]])  # noqa: SLF001
        if max(abs(a - b) for a, b in zip(chances, other, strict=True)) > 0.08:
            total += 1
            told += p_value(counts, np.array(other, dtype=float)) < ALARM
    assert total > 3
    assert told == total


def test_the_printed_range_is_close_to_the_best_for_small_epsilon() -> None:
    printed, best = Collision(1.0, 256, 8, paper=True), Collision(1.0, 256, 8)
    assert printed.buckets == math.floor(8 * math.e + 15)
    assert best.mse <= printed.mse <= 1.007 * best.mse
    assert Collision(4.0, 256, 8, paper=True).mse > 1.019 * Collision(4.0, 256, 8).mse


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("goal", ["value", "frequency"])
def test_no_other_range_is_better(kind: type[HashedVector], goal: Any) -> None:
    best = kind(1.0, 40, 3, goal=goal)
    for hash_range in range(best.least_range, 80, kind.range_step):
        assert best.mse <= kind(1.0, 40, 3, hash_range, goal=goal).mse * (1 + 1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_likelihoods_are_those_of_the_law(kind: type[HashedVector]) -> None:
    mechanism = kind(1.0, 30, 2)
    value = [0, 1, -1] + [0] * 27
    reports = mechanism.randomize([value] * 20, seeded(1))
    for report, log in zip(reports, mechanism.log_likelihood(reports, value), strict=True):
        law = mechanism.law(value, report["seed"])
        assert log == pytest.approx(math.log(law.probabilities[report["bucket"]]))


@pytest.mark.parametrize("kind", KINDS)
def test_reports_are_short_and_large_vectors_work(kind: type[HashedVector]) -> None:
    mechanism = kind(1.0, 5000, 20)
    reports = mechanism.randomize([{7: 1, 4999: -1}] * 3000, seeded(1))
    assert mechanism.report_bytes == 9
    estimate = mechanism.estimate(mechanism.tally(reports))
    truth = np.zeros(5000)
    truth[[7, 4999]] = 1, -1
    assert float(np.abs((estimate.values - truth) / estimate.standard_errors).max()) < 6
    assert float(estimate.standard_errors.max()) < 0.4
    assert {"hash_range", "p_true", "p_false", "mse_mean", "padded_dimension", "influence"} <= set(
        mechanism.facts()
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sparsity": 0}, "sparsity is 0"),
        ({"dimension": 2.5}, "dimension is 2.5"),
        ({"hash_range": 2}, "hash_range is 2"),
        ({"hash_range": 1 << 20}, "hash_range is"),
        ({"goal": "sum"}, "goal is 'sum'"),
        ({"paper": "yes"}, "paper is 'yes'"),
        ({"seed_bits": 65}, "seed_bits is 65"),
        ({"dimension": 1 << 20, "sparsity": 1 << 15}, "too few"),
    ],
)
def test_a_bad_parameter_gets_one_sentence(
    kind: type[HashedVector], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        kind(**({"epsilon": 1.0, "dimension": 8, "sparsity": 2} | given))


def test_all_seeds_are_listed_only_if_they_are_few() -> None:
    with pytest.raises(ConfigurationError, match="seeds"):
        Collision(1.0, 100, 4).publics()
    with pytest.raises(InputError, match="exactly 2"):
        Collision(1.0, 4, 2, exact_sparsity=True).randomize([[1, 0, 0, 0]], seeded(1))
