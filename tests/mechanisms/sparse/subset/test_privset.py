"""PrivSet: probabilities, sizes, errors, and what counts as a set."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest

from sfumato import ExSub, PrivSet
from sfumato.errors import ConfigurationError, InputError, MismatchError
from sfumato.mechanisms.sparse.subset.set_law import set_law
from sfumato.randomness import ONE, seeded


def rational(epsilon: float, dimension: int, sparsity: int, size: int) -> tuple[Fraction, Fraction]:
    """Return p and q by exact counting, with e^-epsilon as a rational number."""
    weight = Fraction(math.exp(-epsilon))
    total = hits = Fraction(0)
    for k in range(min(sparsity, size) + 1):
        if size - k > dimension - sparsity:
            continue
        mass = comb(sparsity, k) * comb(dimension - sparsity, size - k) * (1 if k else weight)
        total += mass
        hits += mass * k
    return hits / total / sparsity, (size - hits / total) / (dimension - sparsity)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0, 20.0])
@pytest.mark.parametrize(
    ("dimension", "sparsity", "size"),
    [(2, 1, 1), (6, 2, 3), (24, 12, 1), (264, 8, 8), (264, 8, 256), (300, 100, 7)],
)
def test_probabilities_agree_with_exact_counting(
    dimension: int, sparsity: int, size: int, epsilon: float
) -> None:
    law = set_law(epsilon, dimension, sparsity, size)
    p, q = rational(epsilon, dimension, sparsity, size)
    assert law.p_true == pytest.approx(float(p), rel=1e-9)
    assert law.p_false == pytest.approx(float(q), rel=1e-9)
    assert law.gap == pytest.approx(float(p - q), rel=1e-9)


def test_the_law_stays_sane_up_to_a_million_items() -> None:
    errors = []
    for dimension in (100, 10_000, 1_000_000):
        mechanism = PrivSet(1.0, dimension, 20)
        law = mechanism.probabilities
        assert 1 > law.p_true > law.p_false > 0
        errors.append(mechanism.mse)
    assert errors == sorted(errors)
    assert math.isfinite(errors[-1])


@pytest.mark.parametrize(("dimension", "sparsity"), [(40, 3), (12, 12), (9, 1)])
def test_no_other_size_is_better(dimension: int, sparsity: int) -> None:
    best = PrivSet(1.0, dimension, sparsity)
    for size in range(1, dimension + 1):
        assert best.mse <= PrivSet(1.0, dimension, sparsity, subset_size=size).mse * (1 + 1e-12)


def test_for_one_item_it_is_close_to_the_subset_selection_of_items_and_nobody() -> None:
    # A single item or none is one of d + 1 things, and subsets of these favour those that hold it.
    from sfumato import SubsetSelection  # noqa: PLC0415

    one = PrivSet(1.0, 63, 1)
    items = SubsetSelection(1.0, 64, subset_size=one.size)
    assert one.probabilities.p_true == pytest.approx(items.p, rel=1e-12)
    assert one.probabilities.p_false == pytest.approx(items.q, rel=1e-12)


def test_full_sets_are_better_told_by_a_sign_for_each_item() -> None:
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        signs = ExSub(epsilon, 12, 12, exact_sparsity=True).mse / 4  # values of +-1, shares of 1
        assert signs < PrivSet(epsilon, 12, 12).mse
        assert PrivSet(epsilon, 12, 2).mse < signs  # but not small ones


@pytest.mark.statistics
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize(("dimension", "sparsity"), [(40, 4), (200, 3), (10, 10)])
def test_the_simulated_error_is_the_exact_one(
    dimension: int, sparsity: int, epsilon: float
) -> None:
    mechanism, n = PrivSet(epsilon, dimension, sparsity), 60_000
    held = set(range(0, dimension, dimension // sparsity))
    held = set(sorted(held)[:sparsity])
    row = np.zeros((1, dimension), dtype=np.int8)
    row[0, sorted(held)] = 1
    reports = mechanism.randomize(np.repeat(row, n, axis=0), seeded(5))
    law = mechanism.probabilities
    shares = (mechanism.form.signs(reports) - law.p_false) / law.gap
    errors = ((shares - row) ** 2).sum(axis=1)
    standard_error = errors.std() / math.sqrt(n)
    assert abs(errors.mean() - mechanism.mse) < 5.8 * standard_error
    assert 0.05 * mechanism.mse > 5.8 * standard_error  # five percent off would be seen


def test_the_covariance_is_that_of_the_law() -> None:
    mechanism = PrivSet(1.0, 4, 2, subset_size=2)
    people = [(1, 1, 0, 0), (0, 1, 1, 0), (0, 0, 0, 0), (0, 0, 0, 1)]
    expected = np.zeros((4, 4))
    for person in people:
        law = mechanism.law(person)
        sent = mechanism.form.signs(law.outputs).astype(float)
        mean = law.probabilities @ sent
        expected += (sent.T * law.probabilities) @ sent - np.outer(mean, mean)
    expected /= (len(people) * mechanism.probabilities.gap) ** 2
    found = mechanism.exact_covariance(people)
    assert found.joint
    assert found.matrix() == pytest.approx(expected, rel=1e-9)
    # Of independent items the matrix would be diagonal; this one is not.
    assert np.abs(expected - np.diag(np.diag(expected))).max() > 0.01 * expected.max()


def test_the_weights_of_the_draw_are_those_of_the_law() -> None:
    for mechanism in PrivSet.examples():
        s, d, m = mechanism.sparsity, mechanism.padded_dimension, mechanism.size
        counted = [0] * (min(s, m) + 1)
        for subset in combinations(range(d), m):
            hits = sum(item < s for item in subset)
            counted[hits] += ONE if hits else mechanism.refused_weight
        drawn = list(mechanism.hit_weights())
        counted = counted[-len(drawn) :]
        assert [Fraction(w, sum(drawn)) for w in drawn] == [
            Fraction(w, sum(counted)) for w in counted
        ]


# ---- what people bring ----------------------------------------------------------------------


def test_all_forms_of_sets_are_the_same() -> None:
    mechanism = PrivSet(1.0, 6, 2)
    rows = mechanism.encode([[0, 1, 0, 0, 1, 0], [0] * 6])
    assert rows["position"].tolist() == [[1, 4], [6, 7]]
    listed = np.zeros(2, dtype=[("position", "i8", 2), ("sign", "i1", 2)])
    listed["position"][0], listed["sign"][0] = [4, 1], 1
    objects = np.empty(2, dtype=object)
    objects[:] = [frozenset({1, 4}), frozenset()]
    for same in (
        [{4, 1}, set()],
        objects,
        np.array([[0, 1, 0, 0, 1, 0], [0] * 6], dtype=bool),
        listed,
        [{1: 1, 4: 1}, {}],
    ):
        assert mechanism.encode(same).tobytes() == rows.tobytes()
    assert mechanism.encode({1, 4}).tobytes() == rows[:1].tobytes()
    assert mechanism.encode(listed[["position"]][:1]).tobytes() == rows[:1].tobytes()


def test_of_too_many_items_the_first_are_kept() -> None:
    mechanism = PrivSet(1.0, 5, 2)
    assert mechanism.truth([{4, 3, 1, 2}]).tolist() == [0, 1, 1, 0, 0]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([{0, 6}], "entry 6; 0..5"),
        ([{"milk"}], "entry 'milk'"),
        ([{0}, [1]], r"values\[1\] is \[1\]"),
        ([[0, 1], [2]], "not vectors of one length; name the entries"),
        ([[0, 1]], r"shape \(1, 2\)"),
        ([[0, -1, 0, 0, 0, 0]], "has -1 for an item"),
        ([{2: -1}], "has -1 for an item"),
        ([[0, 2, 0, 0, 0, 0]], r"values\[0\]\[1\] is 2"),
    ],
)
def test_a_bad_set_gets_one_sentence(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        PrivSet(1.0, 6, 2).randomize(values, seeded(1))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sparsity": 0}, "sparsity is 0"),
        ({"sparsity": 9}, "sparsity is 9"),
        ({"subset_size": 9}, "subset_size is 9; a whole number in 1..8"),
        ({"exact_sparsity": True, "subset_size": 7}, "1..6"),
        ({"exact_sparsity": True, "sparsity": 8}, "frequencies are known"),
    ],
)
def test_a_bad_parameter_gets_one_sentence(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        PrivSet(**({"epsilon": 1.0, "dimension": 8, "sparsity": 2} | given))


def test_sums_of_shares_need_the_sets() -> None:
    mechanism = PrivSet(1.0, 4, 2)
    estimate = mechanism.estimate(mechanism.tally(mechanism.randomize([{0, 1}] * 50, seeded(1))))
    with pytest.raises(MismatchError, match="one at a time"):
        estimate.variance_of([1, 1, 0, 0])


def test_counts_can_be_drawn_without_people() -> None:
    mechanism, n = PrivSet(1.0, 500, 20), 1_000_000
    holders = np.arange(500) * 40
    estimate = mechanism.estimate(mechanism.sample_counts(holders, n, seeded(3)))
    z = (estimate.values - holders / n) / estimate.standard_errors
    assert np.abs(z).max() < 6
    assert 0.8 < z.std() < 1.2
