"""Pools of hashes are counted right, equally private, and biased by exactly the stated amount."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.checks.privacy import exact_ratio
from sfumato.core.exact import exp_below
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse.hashed.coco import CoCo
from sfumato.mechanisms.sparse.hashed.collision import Collision
from sfumato.mechanisms.sparse.hashed.hash_family import StretchedHash
from sfumato.mechanisms.sparse.hashed.hashed_vector import HashedVector
from sfumato.mechanisms.sparse.hashed.linear_hash import LinearHash
from sfumato.mechanisms.sparse.hashed.pool import occupied
from sfumato.randomness import seeded

KINDS = [Collision, CoCo]
GOALS: list[Any] = ["value", "frequency"]


@pytest.mark.parametrize("kind", KINDS)
def test_many_reports_are_counted_instead_of_decoded(
    kind: type[HashedVector], monkeypatch: pytest.MonkeyPatch
) -> None:
    mechanism = kind(1.0, 80, 3, seed_bits=7)
    vectors = np.zeros((3000, 80), dtype=int)
    vectors[:, 3], vectors[:, 7] = 1, -1
    reports = mechanism.randomize(vectors, seeded(1))
    assert mechanism.report_bytes == 2
    assert isinstance(mechanism.family, StretchedHash)
    single = sum(
        (mechanism.tally(reports[at : at + 100]) for at in range(100, 3000, 100)),
        start=mechanism.tally(reports[:100]),
    )
    monkeypatch.delattr(StretchedHash, "counts")  # what decodes report by report
    assert mechanism.tally(reports) == single


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed_bits", [1, 4])
def test_a_pool_is_as_private(kind: type[HashedVector], seed_bits: int) -> None:
    mechanism = kind(1.0, 3, 2, seed_bits=seed_bits)
    assert len(mechanism.publics()) == 1 << seed_bits
    assert exact_ratio(mechanism) <= exp_below(1.0)


@pytest.mark.parametrize(
    ("kind", "sparsity", "hash_range"), [(Collision, 3, 5), (CoCo, 2, 4), (CoCo, 3, 6)]
)
def test_weights_are_the_probabilities_of_the_law(
    kind: type[HashedVector], sparsity: int, hash_range: int
) -> None:
    mechanism = kind(1.0, 9, sparsity, hash_range)
    patterns = [*product(range(hash_range), repeat=sparsity)]
    found = mechanism._weights(np.array(patterns, dtype=np.uint16).T)  # noqa: SLF001
    for pattern, weights in zip(patterns, found, strict=True):
        chances = np.array(mechanism._chances(pattern), dtype=float)  # noqa: SLF001
        assert weights == pytest.approx(chances, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("goal", GOALS)
def test_estimates_tend_to_the_truth_and_the_stated_bias(
    kind: type[HashedVector], goal: Any
) -> None:
    mechanism = kind(2.0, 24, 3, goal=goal, seed_bits=4)
    vector = np.zeros(24, dtype=int)
    vector[[2, 11, 20]] = [1, -1, 1]
    biases = mechanism.pool_biases(vector)
    tally = mechanism.tally(mechanism.randomize(np.tile(vector, (200_000, 1)), seeded(1)))
    estimate = mechanism.estimate(tally)
    noise = np.sqrt(estimate.standard_errors**2 - mechanism.pool_bias**2)
    apart = (estimate.values - mechanism.truth([vector])) / noise
    assert float(np.abs(apart).max()) > 15
    assert float(np.abs(apart - biases / noise).max()) < 6


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("sparsity", [1, 2])
def test_the_variance_between_hashes_is_exact(
    kind: type[HashedVector], goal: Any, sparsity: int
) -> None:
    """Over all hashes of a family in which all that matters is independent."""
    ranges = {Collision: 3, CoCo: 2 if (goal, sparsity) == ("value", 1) else 6}
    mechanism = kind(1.3, 3, sparsity, hash_range=ranges[kind], goal=goal)
    assert isinstance(mechanism.family, LinearHash)
    seeds, law = np.arange(mechanism.family.seeds), mechanism.probabilities
    encoded = mechanism.encode([[1, 0, -1] if sparsity == 2 else [1, 0, 0]])
    hashed = mechanism._hashed(encoded.repeat(seeds.size), seeds)  # noqa: SLF001
    weights = mechanism._weights(hashed)  # noqa: SLF001
    table = mechanism.family.table(mechanism._rows, seeds)  # noqa: SLF001
    if kind is CoCo:
        t = mechanism.buckets
        table = np.concatenate([table, (table + t // 2) % t])
    plus, minus = np.take_along_axis(weights, table.T.astype(int), axis=1).T.reshape(2, 3, -1)
    if goal == "value":
        found = (plus - minus) / law.contrast
    else:
        found = (plus + minus - 2 * law.p_false) / law.presence
    absent, present = mechanism._between()  # noqa: SLF001
    assert found.mean(axis=1) == pytest.approx(mechanism.truth([[1, 0, 1 - sparsity]]), abs=1e-9)
    assert found.var(axis=1)[:2] == pytest.approx([present, absent], rel=1e-9, abs=1e-12)
    assert mechanism.pool_biases([1, 0, 1 - sparsity]) == pytest.approx(0, abs=1e-9)
    assert mechanism.pool_bias == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("goal", GOALS)
def test_the_expected_bias_is_that_of_actual_pools(kind: type[HashedVector], goal: Any) -> None:
    mechanism = kind(1.0, 256, 8, goal=goal, seed_bits=7)
    simulator, squares = seeded(1).simulator(), []
    for _ in range(20):
        vector = np.zeros(256, dtype=int)
        vector[simulator.choice(256, size=8, replace=False)] = simulator.choice([1, -1], size=8)
        squares.append(np.square(mechanism.pool_biases(vector)).mean())
    assert np.sqrt(np.mean(squares)) == pytest.approx(mechanism.pool_bias, rel=0.05)
    assert mechanism.facts()["pool_bias"] == mechanism.pool_bias
    rough = np.sqrt(2 * 8 / mechanism.buckets / 128)
    assert rough == pytest.approx(mechanism.pool_bias, rel=0.3)


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_cover_though_the_pool_is_small(kind: type[HashedVector]) -> None:
    mechanism = kind(3.0, 64, 4, seed_bits=5)
    covered, narrow = [], []
    for seed in range(30):
        vector = np.zeros(64, dtype=int)
        held = seeded(seed).simulator().choice(64, size=4, replace=False)
        vector[held] = [1, -1, 1, -1]
        reports = mechanism.randomize(np.tile(vector, (20_000, 1)), seeded(100 + seed))
        estimate = mechanism.estimate(mechanism.tally(reports))
        low, high = estimate.interval(0.95)
        covered.append(((low <= vector) & (vector <= high)).mean())
        noise = 1.96 * np.sqrt(estimate.standard_errors**2 - mechanism.pool_bias**2)
        narrow.append((np.abs(estimate.values - vector) <= noise).mean())
    assert 0.92 < np.mean(covered) < 0.99
    assert np.mean(narrow) < 0.6


def test_a_pool_of_four_times_as_many_is_off_by_half() -> None:
    biases = [Collision(1.0, 256, 8, seed_bits=bits).pool_bias for bits in (6, 8, 10)]
    assert biases[:-1] == pytest.approx([2 * bias for bias in biases[1:]])


@pytest.mark.parametrize("kind", KINDS)
def test_the_bias_is_known_for_thousands_of_non_zeros(kind: type[HashedVector]) -> None:
    assert 1e-3 < kind(1.0, 5000, 2000, seed_bits=16).pool_bias < 3e-3


def test_bins_are_hit_as_often_as_counted() -> None:
    hit = [len(set(places)) for places in product(range(5), repeat=4)]
    assert occupied(4, 5) == pytest.approx(np.bincount(hit, minlength=5) / 5**4, rel=1e-12)


def test_seeds_of_ones_own_have_no_pool() -> None:
    mechanism = Collision(1.0, 100, 4)
    with pytest.raises(ConfigurationError, match="those of a pool are at most"):
        mechanism.pool_biases([0] * 100)
    assert mechanism.pool_bias < 1e-9
    assert "pool_bias" not in mechanism.facts()
