from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError, InputError
from sfumato.mechanisms import CoCo, Concord, ExSub
from sfumato.mechanisms.sparse import RealVectors
from sfumato.randomness import seeded

D, S, BOUND = 6, 2, 0.5
PEOPLE = 200
RNG = np.random.default_rng(1)
VECTORS = RNG.normal(0.1, 0.4, (PEOPLE, D)) * np.array([1, 1, 0.5, 0.2, 0.1, 0.0])


def runs(vectors: RealVectors, count: int) -> Any:
    """Return so many estimates of the same people."""
    people = np.tile(VECTORS, (count, 1))
    reports = vectors.randomize(people, seeded(5)).reshape(count, PEOPLE)
    return [vectors.estimate(vectors.mechanism.tally(part)) for part in reports]


@pytest.mark.statistics
@pytest.mark.parametrize("select", ["top", "random"])
@pytest.mark.parametrize("kind", [ExSub, Concord, CoCo])
def test_the_steps_say_what_happens(kind: Any, select: Literal["top", "random"]) -> None:
    prepared = RealVectors(kind(3.0, D, S), BOUND, select)
    steps = prepared.steps(VECTORS)
    assert [step.name for step in steps] == ["clip", "scale", "select", "round", "report"]
    bias = sum(step.bias for step in steps)
    variance = sum(step.variance for step in steps)
    count = 2000
    found = np.array([estimate.values for estimate in runs(prepared, count)])
    off = (found.mean(axis=0) - VECTORS.mean(axis=0) - bias) / np.sqrt(variance / count)
    assert np.abs(off).max() < 5.5  # false alarm 2e-7
    # A variance of 2000 runs is within 5.5 sqrt(2/2000) = 17%.
    assert found.var(axis=0) == pytest.approx(variance, rel=0.175)
    if select == "top":  # and without the bias it would not fit
        unbiased = (found.mean(axis=0) - VECTORS.mean(axis=0)) / np.sqrt(variance / count)
        assert np.abs(unbiased).max() > 10


def test_random_selection_is_unbiased_and_top_is_not() -> None:
    mild = np.clip(VECTORS, -BOUND, BOUND)
    random = RealVectors(ExSub(1.0, D, S), BOUND, "random").steps(mild)
    top = RealVectors(ExSub(1.0, D, S), BOUND, "top").steps(mild)
    assert sum(step.squared_bias for step in random) == 0
    assert top[2].squared_bias > 0
    assert random[4].total_variance > 4 * top[4].total_variance


@pytest.mark.parametrize("select", ["top", "random"])
def test_intervals_cover_the_mean_of_what_was_selected(select: Literal["top", "random"]) -> None:
    prepared = RealVectors(ExSub(1.0, D, S), BOUND, select)
    target = VECTORS.mean(axis=0) + sum(step.bias for step in prepared.steps(VECTORS))
    inside = []
    for estimate in runs(prepared, 400):
        low, high = estimate.interval(0.95)
        inside.append((low <= target) & (target <= high))
    # 2,400 intervals: one standard error is 0.0045; 90% is out of reach on one side.
    assert 0.925 < np.mean(inside) < 0.975


def test_sparse_and_dense_say_the_same() -> None:
    prepared = RealVectors(ExSub(1.0, D, S), BOUND)
    dense = [[0.1, 0, 0, 0.4, 0, 0], [0, 0, -0.3, 0, 0, 0]]
    mapped: Any = [{3: 0.4, 0: 0.1}, {2: -0.3}]
    listed = np.zeros(2, dtype=[("position", int, (2,)), ("value", float, (2,))])
    listed["position"], listed["value"] = [[3, 0], [2, 0]], [[0.4, 0.1], [-0.3, 0.0]]
    wanted = prepared.steps(dense)
    for vectors in (mapped, listed):
        for step, expected in zip(prepared.steps(vectors), wanted, strict=True):
            assert step.bias == pytest.approx(expected.bias)
            assert step.variance == pytest.approx(expected.variance)
    for select in ("top", "random"):
        chosen = RealVectors(ExSub(1.0, D, S), BOUND, select)
        assert len(chosen.randomize(mapped, seeded(1))) == 2
        one, two = (chosen.randomize(given, seeded(1)) for given in (dense, listed))
        if select == "random":
            assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize(
    ("vectors", "sentence"),
    [
        ([[1.0, np.nan, 0, 0, 0, 0]], "vectors[0][1] is nan; a finite number is expected."),
        ([[1.0]], "vectors have shape (1, 1); at least one vector of 6 entries is expected."),
        ([{6: 1.0}], "vectors[0] has entry 6; 0..5 are there."),
        ([{0: "x"}], "vectors[0][0] is 'x'; a finite number is expected."),
    ],
)
def test_bad_vectors_get_one_sentence(vectors: Any, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        RealVectors(ExSub(1.0, D, S), BOUND).randomize(vectors, seeded(1))
    assert str(caught.value) == sentence


def test_an_entry_named_twice_is_refused() -> None:
    listed = np.zeros(1, dtype=[("position", int, (2,)), ("value", float, (2,))])
    listed["position"], listed["value"] = [[3, 3]], [[0.4, 0.1]]
    with pytest.raises(InputError, match=r"vectors\[0\] names entry 3 twice; once is enough"):
        RealVectors(ExSub(1.0, D, S), BOUND).randomize(listed, seeded(1))


@pytest.mark.parametrize("bound", [0, -1.0, np.inf, "1"])
def test_a_bound_is_a_positive_number(bound: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"bound is .*; a positive number is expected"):
        RealVectors(ExSub(1.0, D, S), bound)


def test_selection_is_top_or_random() -> None:
    with pytest.raises(ConfigurationError, match="select is 'best'; top or random is expected"):
        RealVectors(ExSub(1.0, D, S), 1.0, "best")  # type: ignore[arg-type]


def test_the_goal_is_the_value() -> None:
    with pytest.raises(ConfigurationError, match="goal is 'frequency'; the mean of numbers needs"):
        RealVectors(ExSub(1.0, D, S, goal="frequency"), 1.0)


def test_a_small_pool_of_hashes_widens_intervals_for_good() -> None:
    pool, free = CoCo(1.0, D, S, seed_bits=6), CoCo(1.0, D, S)
    many = Tally(10**9, np.full((2, D), 10**9 // free.buckets))
    for mechanism in (pool, free):
        errors = RealVectors(mechanism, BOUND).estimate(many).standard_errors
        assert errors.min() >= 0.9 * BOUND * mechanism.pool_bias
    assert pool.pool_bias > 1e3 * free.pool_bias
