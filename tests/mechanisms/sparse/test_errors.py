"""How far off the four mechanisms for sparse vectors are: simulated, and compared exactly."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sfumato.mechanisms.sparse.hashed.coco import CoCo
from sfumato.mechanisms.sparse.hashed.collision import Collision
from sfumato.mechanisms.sparse.sparse_mechanism import SparseMechanism
from sfumato.mechanisms.sparse.subset.signed_subset import Concord, ExSub
from sfumato.randomness import seeded

KINDS: list[Any] = [ExSub, Concord, Collision, CoCo]
EPSILONS = [0.1, 0.5, 1.0, 2.0, 4.0]
DIMENSION, SPARSITY = 256, 8


def simulated(mechanism: SparseMechanism, groups: int, seed: int) -> tuple[float, float]:
    """Return n times the squared error of n = 32 people, and its standard error over the groups.

    Estimates are unbiased and people independent, so this is the error of one person, whatever n;
    of many people it varies less, and all goes by randomize, tally and estimate.
    """
    each = 32
    simulator = seeded(seed).simulator()
    vector = np.zeros(DIMENSION, dtype=np.int8)
    held = simulator.choice(DIMENSION, size=SPARSITY, replace=False)
    vector[held] = [1, -1] * (SPARSITY // 2)
    truth = mechanism.truth([vector])
    reports = mechanism.randomize(np.tile(vector, (groups * each, 1)), seeded(seed + 1))
    errors = np.empty(groups)
    for group in range(groups):
        tally = mechanism.tally(reports[group * each : (group + 1) * each])
        errors[group] = each * np.square(mechanism.estimate(tally).values - truth).sum()
    return float(errors.mean()), float(errors.std(ddof=1)) / math.sqrt(groups)


def agrees(mechanism: SparseMechanism) -> None:
    groups = 550 if mechanism.epsilon < 4 else 2400  # then few entries make up the error
    found, spread = simulated(mechanism, groups, seed=1)
    assert abs(found - mechanism.mse) < 5.8 * spread
    # An error that is off by a twentieth is 8.8 standard errors away or more, and refused.
    assert 8.8 * spread < 0.05 * mechanism.mse
    for wrong in (0.95, 1.05):
        assert abs(found - wrong * mechanism.mse) > 5.8 * spread


@pytest.mark.statistics
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_simulated_error_of_means_is_the_exact_one(kind: Any, epsilon: float) -> None:
    mechanism = kind(epsilon, DIMENSION, SPARSITY)
    stated = mechanism.facts()["mse_mean" if kind in (Collision, CoCo) else "mse_value"]
    assert mechanism.mse == stated
    agrees(mechanism)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_simulated_error_of_frequencies_is_the_exact_one(kind: Any, epsilon: float) -> None:
    mechanism = kind(epsilon, DIMENSION, SPARSITY, goal="frequency")
    agrees(mechanism)


@pytest.mark.parametrize("epsilon", np.linspace(0.5, 2.0, 16).tolist())
def test_exsub_is_better_than_both_hashes_where_epsilon_is_about_one(epsilon: float) -> None:
    exsub, coco, collision = (
        kind(epsilon, DIMENSION, SPARSITY).mse for kind in (ExSub, CoCo, Collision)
    )
    assert exsub < coco < collision


@pytest.mark.statistics
@pytest.mark.parametrize("sparsity", [2, 3, 8, pytest.param(64, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "dimension", [64, 256, *(pytest.param(d, marks=pytest.mark.slow) for d in (1000, 5000))]
)
def test_concord_is_never_worse_than_exsub(sparsity: int, dimension: int) -> None:
    for epsilon in (0.01, *EPSILONS, 8.0):
        concord, exsub = (kind(epsilon, dimension, sparsity) for kind in (Concord, ExSub))
        assert concord.mse <= exsub.mse * (1 + 1e-12)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.25, 0.5, 0.75, 1.0])
def test_concord_saves_a_fifth_and_more_for_small_epsilon(epsilon: float) -> None:
    concord, exsub = (kind(epsilon, DIMENSION, SPARSITY) for kind in (Concord, ExSub))
    assert concord.padded_dimension == exsub.padded_dimension == 264
    assert concord.mse <= 0.78 * exsub.mse
