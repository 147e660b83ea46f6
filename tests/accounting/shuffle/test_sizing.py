"""Sizes for a central promise: never worse than any other size, and as derived on paper."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from sfumato import GRR, OLH, OUE, CoCo, Collision, Concord, ExSub, SubsetSelection, catalog
from sfumato.accounting.shuffle import Requirement, calibrated, gaussian_parameter, holds, sized
from sfumato.core.mechanism import Mechanism
from sfumato.errors import ConfigurationError
from sfumato.planner import compare_shuffled

VECTORS = ("exsub", "concord", "collision", "coco")


def best_of_all(required: Requirement, most: float, **question: Any) -> Mechanism:
    return min(
        (sized(catalog.build(name, epsilon=most, **question), required) for name in VECTORS),
        key=lambda one: one.mse,
    )


@pytest.mark.parametrize(
    ("dimension", "sparsity", "n", "epsilon", "local", "error"),
    [
        (256, 8, 10_000, 0.05, 2.29, 4461),
        (256, 8, 10_000, 0.25, 3.92, 335),
        (256, 4, 100_000, 0.05, 3.77, 257),
        (64, 8, 100_000, 0.05, 3.04, 212),
        pytest.param(256, 8, 100_000, 0.05, 3.50, 581, marks=pytest.mark.slow),
        pytest.param(256, 8, 100_000, 0.25, 5.57, 91.8, marks=pytest.mark.slow),
        pytest.param(256, 20, 10_000, 0.05, 1.93, 12065, marks=pytest.mark.slow),
        pytest.param(1024, 8, 10_000, 0.05, 2.88, 16813, marks=pytest.mark.slow),
        pytest.param(1024, 20, 10_000, 0.25, 4.09, 3020, marks=pytest.mark.slow),
    ],
)
def test_one_symbol_is_best_where_the_central_promise_binds(
    dimension: int, sparsity: int, n: int, epsilon: float, local: float, error: float
) -> None:
    best = sized(ExSub(8.0, dimension, sparsity), Requirement(epsilon, 1e-6, n))
    assert best.subset_size == 1
    assert best.epsilon == pytest.approx(local, abs=0.006)
    assert best.mse == pytest.approx(error, rel=0.01)


def test_a_local_limit_is_never_exceeded_and_leads_to_larger_subsets() -> None:
    required = Requirement(0.05, 1e-6, 10_000)
    best = sized(ExSub(1.75, 256, 8), required)
    assert best.epsilon <= 1.75
    assert best.subset_size is not None
    assert best.subset_size > 1
    assert best.mse <= min(
        sized(ExSub(1.75, 256, 8, subset_size=m), required).mse for m in (1, 2, 6, 24)
    )


def test_the_promise_holds_in_every_chosen_size() -> None:
    drawn = random.Random(20_261_116)  # noqa: S311
    for _ in range(6):
        dimension, sparsity = drawn.choice([16, 40, 100]), drawn.choice([1, 2, 5])
        epsilon = round(drawn.uniform(0.03, 1.5), 3)
        required = Requirement(epsilon, 1e-6, drawn.choice([2_000, 30_000]), 0.05)
        most = round(drawn.uniform(0.5, 8), 2)
        for kind in (ExSub, Concord):
            best = sized(kind(most, dimension, sparsity), required)
            assert best.epsilon <= most
            assert holds(best, required.epsilon, required.delta, required.crowd), (best, required)


def test_sizes_that_were_given_are_kept() -> None:
    required = Requirement(0.25, 1e-6, 10_000)
    assert sized(ExSub(8.0, 64, 4, subset_size=5), required).subset_size == 5
    assert sized(Concord(8.0, 64, 4, subset_size=5), required).subset_size == 5
    assert sized(Concord(8.0, 64, 4, threshold=2), required).threshold == 2
    assert sized(ExSub(8.0, 64, 4, paper=True), required).subset_size is None
    short = sized(ExSub(1.0, 256, 8, most_bytes=4), required)
    assert short.report_bytes <= 4


def test_without_a_delta_sizes_follow_the_local_epsilon() -> None:
    alone = sized(ExSub(8.0, 64, 4), Requirement(0.25, 0.0, 10_000))
    assert alone.epsilon == pytest.approx(0.25, rel=1e-3)
    assert alone.size == ExSub(0.25, 64, 4).size


def test_one_value_among_many_is_best_sent_as_it_is() -> None:
    required = Requirement(0.05, 1e-6, 10_000)
    errors = {
        kind.name: sized(kind(8.0, 256), required).mse for kind in (GRR, OLH, OUE, SubsetSelection)
    }
    assert errors["grr"] == pytest.approx(1.018, rel=0.001)
    assert errors["subset_selection"] == pytest.approx(errors["grr"], rel=1e-6)
    assert errors["olh"] <= 1.115
    assert errors["oue"] == pytest.approx(1.401, rel=0.001)
    assert compare_shuffled(required, domain=256)[0].mse == pytest.approx(errors["grr"], rel=1e-6)


def test_the_gaussian_parameter_has_exactly_the_promised_delta() -> None:
    for epsilon, delta in ((0.05, 1e-6), (1.0, 1e-9), (4.0, 0.1)):
        mu = gaussian_parameter(epsilon, delta)
        tails = [math.erfc((epsilon / mu + side * mu / 2) / math.sqrt(2)) / 2 for side in (-1, 1)]
        assert tails[0] - math.exp(epsilon) * tails[1] == pytest.approx(delta, rel=1e-6)


# ---- no other size is better ------------------------------------------------------------------


def every_size(mechanism: Mechanism) -> Iterator[Mechanism]:
    for sizes in mechanism.sizes():
        for value in range(sizes.least, sizes.largest + 1, sizes.step):
            yield replace(mechanism, **sizes.fields(value))


def beats(rival: Mechanism, best: Mechanism, required: Requirement) -> bool:
    """Whether another size keeps the promise with an error that is 0.2% smaller."""
    goal = 0.998 * best.mse

    def error(epsilon: float) -> float:
        try:
            return float(replace(rival, epsilon=epsilon).mse)
        except ConfigurationError:
            return math.inf

    low, high = 1e-3, rival.epsilon  # errors fall as epsilon grows
    if error(high) > goal:
        return False
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if error(middle) <= goal else (middle, high)
    rival = replace(rival, epsilon=high)
    return holds(rival, required.epsilon, required.delta, required.crowd)


def test_none_of_some_drawn_sizes_is_better() -> None:
    drawn = random.Random(7)  # noqa: S311
    for dimension, sparsity, epsilon, n in ((64, 4, 0.25, 10_000), (100, 3, 0.05, 100_000)):
        required = Requirement(epsilon, 1e-6, n)
        question = {"dimension": dimension, "sparsity": sparsity}
        best = best_of_all(required, 8.0, **question)
        for kind in (ExSub, Concord, Collision, CoCo):
            others = [*every_size(kind(8.0, dimension, sparsity))]
            for other in (others[0], *drawn.sample(others, 4)):
                assert not beats(other, best, required), other


def test_the_size_for_the_local_epsilon_would_be_found_out() -> None:
    required = Requirement(0.05, 1e-6, 10_000)
    usual = calibrated(lambda epsilon: ExSub(epsilon, 256, 8), required)
    assert beats(ExSub(8.0, 256, 8, subset_size=1), usual, required)


@pytest.mark.slow
@pytest.mark.parametrize("dimension", [64, 256])
@pytest.mark.parametrize("sparsity", [1, 4, 8])
@pytest.mark.parametrize("epsilon", [0.05, 0.25, 1.0])
@pytest.mark.parametrize("n", [10_000, 100_000])
@pytest.mark.parametrize("most", [2.0, 8.0])
def test_no_size_of_any_mechanism_is_better(
    dimension: int, sparsity: int, epsilon: float, n: int, most: float
) -> None:
    required = Requirement(epsilon, 1e-6, n)
    question = {"dimension": dimension, "sparsity": sparsity}
    best = best_of_all(required, most, **question)
    drawn = random.Random(dimension * n + sparsity)  # noqa: S311
    for kind in (ExSub, Concord, Collision, CoCo):
        others = [*every_size(kind(most, dimension, sparsity))]
        if kind is not ExSub:  # all of them take hours
            others = drawn.sample(others, min(60, len(others)))
        for other in others:
            assert not beats(other, best, required), other
