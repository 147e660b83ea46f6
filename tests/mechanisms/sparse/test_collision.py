"""Collision: the hash family, the law, errors, ranges, pools of seeds."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from sfumato.checks.mechanism import exact_ratio
from sfumato.core.exact import exp_below
from sfumato.errors import ConfigurationError, InputError
from sfumato.mechanisms.sparse.coco import CoCo
from sfumato.mechanisms.sparse.collision import Collision
from sfumato.mechanisms.sparse.hashed import HashedVector
from sfumato.mechanisms.sparse.hashing import LinearHash
from sfumato.mechanisms.sparse.subset import ExSub
from sfumato.randomness import seeded

KINDS = [Collision, CoCo]


def table(family: LinearHash, seeds: Any) -> Any:
    """Return the bucket of each symbol (rows) under each seed (columns)."""
    symbols = np.repeat(np.arange(family.symbols)[:, None], len(seeds), axis=1)
    return family.hash(symbols, family.vectors(np.asarray(seeds, dtype=np.uint64)))


@pytest.mark.parametrize(
    ("symbols", "buckets", "strength"),
    [(9, 6, 3), (20, 3, 3), (9, 2, 6), (12, 4, 3), (5, 5, 4), (6, 3, 4), (30, 2, 5), (4, 12, 3)],
)
def test_any_few_symbols_are_exactly_independent(symbols: int, buckets: int, strength: int) -> None:
    family = LinearHash(symbols, buckets, strength)
    assert family.whole
    hashed = table(family, range(family.seeds))
    for chosen in list(combinations(range(symbols), strength))[:300]:
        together = np.ravel_multi_index(tuple(hashed[list(chosen)]), (buckets,) * strength)
        counts = np.bincount(together, minlength=buckets**strength)
        assert counts.min() == counts.max()


@pytest.mark.parametrize(("buckets", "strength"), [(30, 10), (31, 10), (32, 10), (1000, 6)])
def test_a_stretched_seed_spreads_symbols_evenly(buckets: int, strength: int) -> None:
    family = LinearHash(300, buckets, strength)
    assert not family.whole
    n = 40_000
    hashed = table(family, seeded(1).words(n))
    for row in hashed[:: 300 // 7]:
        counts = np.bincount(row, minlength=buckets)
        statistic = float(((counts - n / buckets) ** 2).sum() / (n / buckets))
        assert abs(statistic - (buckets - 1)) < 6.5 * math.sqrt(2 * buckets)
    met = np.mean([(hashed[a] == hashed[b]).mean() for a, b in combinations(range(0, 300, 30), 2)])
    assert met == pytest.approx(1 / buckets, abs=6 * math.sqrt(1 / buckets / (45 * n)))


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
        buckets = table(mechanism.family, [seed])[:, 0]
        held += law.probabilities[buckets[:6]].reshape(2, 3)
    held /= len(mechanism.publics())
    p, q = mechanism.probabilities.p_true, mechanism.probabilities.p_false
    assert held == pytest.approx(np.array([[p, q, q], [q, p, q]]), rel=1e-12)


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


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 1.5, 2.0])
def test_exsub_is_better_than_both(epsilon: float) -> None:
    exsub, coco, collision = (kind(epsilon, 256, 8).mse for kind in (ExSub, CoCo, Collision))
    assert exsub < coco < collision


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("goal", ["value", "frequency"])
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_simulated_error_is_the_exact_one(
    kind: type[HashedVector], goal: Any, epsilon: float
) -> None:
    dimension, n = 64, 60_000
    mechanism = kind(epsilon, dimension, 4, goal=goal)
    vector = np.zeros(dimension, dtype=int)
    vector[[3, 9, 20, 63]] = [1, -1, 1, -1]
    reports = mechanism.randomize(np.tile(vector, (n, 1)), seeded(7))
    law, rows = mechanism.probabilities, mechanism._rows  # noqa: SLF001
    vectors = mechanism.family.vectors(reports["seed"])
    remainders = mechanism.family.remainders(rows, vectors, reports["bucket"])
    found = np.concatenate(mechanism._supported(remainders))  # noqa: SLF001
    plus, minus = found.reshape(2, dimension, n).astype(float)
    if goal == "value":
        errors = ((plus - minus) / law.contrast - vector[:, None]) ** 2
    else:
        errors = ((plus + minus - 2 * law.p_false) / law.presence - (vector != 0)[:, None]) ** 2
    total = errors.sum(axis=0)
    assert abs(total.mean() - mechanism.mse) < 5.8 * total.std() / math.sqrt(n)
    counts = np.stack([plus.sum(axis=1), minus.sum(axis=1)]).astype(int)
    assert mechanism.tally(reports).sums.tolist() == counts.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_a_pool_of_seeds_is_counted_the_same(kind: type[HashedVector]) -> None:
    mechanism = kind(1.0, 20, 3, seed_bits=8)
    vectors = np.zeros((3000, 20), dtype=int)
    vectors[:, 3], vectors[:, 7] = 1, -1
    reports = mechanism.randomize(vectors, seeded(1))
    assert mechanism.report_bytes == 2
    pooled = mechanism.tally(reports)
    single = sum(
        (mechanism.tally(reports[at : at + 100]) for at in range(100, 3000, 100)),
        start=mechanism.tally(reports[:100]),
    )
    assert pooled == single


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
        ({"dimension": 1 << 20, "sparsity": 1000}, "too large"),
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
