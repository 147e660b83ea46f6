"""Vectors as they come to subset mechanisms, and parameters and vectors that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import ConfigurationError, InputError, MismatchError
from sfumato.mechanisms.sparse.subset.signed_subset import Concord, ExSub, SignedSubset
from sfumato.randomness import seeded


def test_mappings_and_arrays_are_the_same_vectors() -> None:
    mechanism = Concord(1.0, 6, 2)
    arrays = mechanism.encode(np.array([[0, 1, 0, 0, -1, 0], [0] * 6]))
    mappings = mechanism.encode([{4: -1, 1: 1}, {}])
    assert arrays.tobytes() == mappings.tobytes()
    assert arrays["position"].tolist() == [[1, 4], [6, 7]]
    assert arrays["sign"].tolist() == [[1, -1], [1, 1]]


def listed(positions: list[list[int]], signs: list[list[int]]) -> Any:
    width = len(positions[0])
    array = np.empty(len(positions), dtype=[("position", "i8", width), ("sign", "i8", width)])
    array["position"], array["sign"] = positions, signs
    return array


def test_listed_non_zeros_are_the_same_vectors_in_any_order() -> None:
    mechanism = Concord(1.0, 6, 2)
    rows = mechanism.encode([[0, 1, 0, 0, -1, 0], [0] * 6, [0, 0, 0, 0, 0, 1]])
    given = listed([[4, 1], [3, 3], [2, 5]], [[-1, 1], [0, 0], [0, 1]])
    assert mechanism.encode(given).tobytes() == rows.tobytes()
    longer = listed([[1, 3, 4]], [[1, 1, -1]])
    assert mechanism.encode(longer)["position"].tolist() == [[1, 3]]
    assert mechanism.encode(listed([[2]], [[-1]]))["position"].tolist() == [[2, 6]]


@pytest.mark.parametrize(
    ("positions", "signs", "message"),
    [
        ([[1, 6]], [[1, 1]], "position 6; 0..5"),
        ([[1, -1]], [[1, 1]], "position -1"),
        ([[1, 2]], [[1, 2]], "sign 2"),
        ([[2, 2]], [[1, 1]], "names entry 2 twice"),
    ],
)
def test_bad_lists_get_one_sentence(
    positions: list[list[int]], signs: list[list[int]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        Concord(1.0, 6, 2).encode(listed(positions, signs))


def test_of_too_many_non_zeros_the_first_are_kept() -> None:
    encoded = ExSub(1.0, 5, 2).encode(np.array([[0, 1, -1, 1, 1]]))
    assert encoded["position"].tolist() == [[1, 2]]
    assert ExSub(1.0, 5, 2).truth(np.array([[0, 1, -1, 1, 1]])).tolist() == [0, 1, -1, 0, 0]


@pytest.mark.parametrize("kind", [ExSub, Concord])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sparsity": 0}, "sparsity is 0"),
        ({"sparsity": 9}, "sparsity is 9"),
        ({"dimension": 0}, "dimension is 0"),
        ({"dimension": 2.5}, "dimension is 2.5"),
        ({"subset_size": 0}, "subset_size is 0"),
        ({"subset_size": 11}, "subset_size is 11"),
        ({"goal": "sum"}, "goal is 'sum'"),
        ({"exact_sparsity": "yes"}, "exact_sparsity is 'yes'"),
        ({"epsilon": 0}, "epsilon is 0"),
    ],
)
def test_a_bad_parameter_gets_one_sentence(
    kind: type[SignedSubset], given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        kind(**({"epsilon": 1.0, "dimension": 8, "sparsity": 2} | given))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([[0, 1, 2, 0]], r"values\[0\]\[2\] is 2"),
        ([[0, 1, 0]], "shape"),
        ([[0.5, 0, 0, 0]], "dtype float64"),
        ([{9: 1}], "entry 9"),
        ([{1: 3}], r"values\[0\]\[1\] is 3"),
        ([{1: 1}, 7], "a mapping"),
        ([], "dtype|shape"),
        ([[0, 1], [0]], "one length"),
        ("text", "dtype"),
    ],
)
def test_a_bad_vector_gets_one_sentence(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Concord(1.0, 4, 2).randomize(values, seeded(1))


def test_exactly_s_non_zeros_are_demanded_if_declared() -> None:
    with pytest.raises(InputError, match="has 1 non-zero entries; exactly 2"):
        ExSub(1.0, 4, 2, exact_sparsity=True).randomize([[1, 0, 0, 0]], seeded(1))


@pytest.mark.parametrize("threshold", [1, 2, 3, 4])
def test_a_given_threshold_is_used(threshold: int) -> None:
    mechanism = Concord(1.0, 10, 4, threshold=threshold)
    assert mechanism.accept_threshold == mechanism.facts()["threshold"] == threshold


@pytest.mark.parametrize(
    "mechanism",
    [
        ExSub(1.0, 3, 2, subset_size=5, goal="frequency"),
        Concord(1.0, 3, 2, subset_size=4, threshold=1, goal="frequency"),
    ],
    ids=str,
)
def test_sizes_that_do_not_tell_frequencies_are_refused(mechanism: SignedSubset) -> None:
    with pytest.raises(ConfigurationError, match="do not tell how often"):
        mechanism.facts()


def test_sums_of_entries_are_refused_as_their_covariance_is_not_known() -> None:
    mechanism = Concord(1.0, 4, 2)
    reports = mechanism.randomize([[1, 0, 0, -1]] * 50, seeded(1))
    estimate = mechanism.estimate(mechanism.tally(reports))
    assert estimate.variance_of([0, 2, 0, 0]) == pytest.approx(4 * estimate.standard_errors[1] ** 2)
    with pytest.raises(MismatchError, match="one at a time"):
        estimate.variance_of([1, 1, 0, 0])
    with pytest.raises(MismatchError, match="one at a time"):
        estimate.combine([[1, -1, 0, 0]], ["difference"])
