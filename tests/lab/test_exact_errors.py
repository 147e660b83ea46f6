"""Exact errors of vectors and of the papers' hierarchy: sums, maxima, entries held unevenly."""

from __future__ import annotations

import numpy as np
import pytest

from sfumato.core.absolute_errors import largest, largest_of
from sfumato.lab.accuracy import sum_weights
from sfumato.lab.experiment import Cell, Setting
from sfumato.lab.tree_errors import DRAWS, _exact, tree_errors
from sfumato.lab.vector_errors import exact_errors, vectors
from sfumato.mechanisms import FutureRand
from sfumato.randomness import seeded

TREE: Cell = {
    "mechanism": "exsub",
    "data": "binary",
    "periods": 16,
    "changes": 3,
    "epsilon": 1.0,
    "devices": 1000,
}


@pytest.mark.parametrize("queries", ["prefix", "ranges"])
@pytest.mark.parametrize("mechanism", ["exsub", "weave"])
def test_the_largest_error_of_sums_is_that_of_all_sums(queries: str, mechanism: str) -> None:
    cell = {**TREE, "queries": queries, "mechanism": mechanism}
    exact, decoding = _exact(cell, Setting())
    rows = np.concatenate([*sum_weights(exact.protocol, decoding, exact.learnt)])
    rng = np.random.default_rng(Setting().coins(cell))
    edges = np.sqrt(exact.noise / 1000)
    worst = [np.abs(rows @ (rng.normal(size=edges.shape) * edges)).max() for _ in range(DRAWS)]
    measured = tree_errors(cell, Setting())
    assert measured["MAE"].value == pytest.approx(np.mean(worst))
    assert measured["MAE"].value < measured["TVE"].value
    assert measured["MAE"].value > tree_errors({**cell, "queries": "means"}, Setting())["MAE"].value


VECTORS: Cell = {
    "mechanism": "exsub",
    "epsilon": 3.0,
    "devices": 3000,
    "dimension": 24,
    "sparsity": 4,
}


def test_entries_that_are_held_alike_are_a_case_of_entries_that_are_not() -> None:
    even, same = (exact_errors({**VECTORS, **skew}, Setting()) for skew in ({}, {"skew": 0.0}))
    for metric in ("TVE", "MAE"):
        assert same[metric].value == pytest.approx(even[metric].value, rel=1e-3)
    assert largest_of(np.full(7, 2.0)) == pytest.approx(2 * largest(7)[0], rel=1e-4)


def test_estimates_of_another_divisor_are_as_much_larger() -> None:
    cell: Cell = {**VECTORS, "mechanism": "futurerand", "epsilon": 1e-3, "sparsity": 8}
    mechanism = vectors(cell)
    assert isinstance(mechanism, FutureRand)
    assert mechanism.kept_share == pytest.approx((1 + 8 + 28 + 56) / 256, rel=1e-3)
    right, divided = (
        exact_errors({**cell, **how}, Setting()) for how in ({}, {"divisor": "coins"})
    )
    contrast = 1e-3 / (10 * np.sqrt(8)) * mechanism.kept_share
    for metric in ("TVE", "MAE"):
        times = mechanism.probabilities.contrast / contrast
        assert divided[metric].value == pytest.approx(times * right[metric].value, rel=1e-6)
        assert times > 1.9


@pytest.mark.statistics
def test_uneven_entries_have_the_errors_of_simulated_people() -> None:
    cell = {**VECTORS, "skew": 1.5}
    mechanism, rng = vectors(cell), np.random.default_rng(1)
    rates, rounds = np.arange(1.0, 25.0) ** -1.5, 40
    errors = []
    for seed in range(rounds):
        order = np.argsort(rng.exponential(size=(3000, 24)) / rates, axis=1)[:, :4]
        people = np.zeros((3000, 24), dtype=np.int8)
        np.put_along_axis(people, order, rng.choice([-1, 1], (3000, 4)).astype(np.int8), axis=1)
        tally = mechanism.tally(mechanism.randomize(people, seeded(seed)))
        errors.append(np.abs(mechanism.estimate(tally).values - mechanism.truth(people)))
    uneven, even = exact_errors(cell, Setting()), exact_errors(VECTORS, Setting())
    for metric, totals in (("TVE", np.sum(errors, axis=1)), ("MAE", np.max(errors, axis=1))):
        doubt = 5.5 * float(totals.std()) / np.sqrt(rounds)
        assert abs(totals.mean() - uneven[metric].value) < doubt + 0.02 * totals.mean()
        assert abs(totals.mean() - even[metric].value) > doubt / 5.5  # and not those of even ones
