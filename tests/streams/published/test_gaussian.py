"""Columns with Gaussian noise: delta by brute force, errors against Laplace noise, intervals."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.arrays import Floats, Ints
from sfumato.core.noise import GaussianLaw
from sfumato.errors import ConfigurationError
from sfumato.randomness import seeded
from sfumato.streams.published import Publisher, PublishingPlan, Released, noise_ring, plan
from sfumato.streams.published.gaussian_plan import gaussian_plan
from sfumato.streams.published.noise_ring import Ring
from sfumato.streams.published.noise_tree import Tree
from sfumato.streams.published.several import Groups, part_of_each, together
from sfumato.streams.published.thresholds import Fixed, Quantile, ScaleFree

KEY = bytes(range(32))
BOUND = 4


# ---- delta, by brute force, on small universes ----------------------------------------------


def changes_of(shape: Tree | Ring, threshold: int) -> set[tuple[tuple[int, int], ...]]:
    """Return what one value anywhere can do to the nodes: (change, times narrower noise) each."""
    changes = set()
    for place, before, after in product(range(shape.leaves), range(BOUND + 1), range(BOUND + 1)):
        values = np.zeros((2, shape.leaves), dtype=np.int64)
        values[:, place] = np.minimum([before, after], threshold)
        if isinstance(shape, Ring):
            seen = np.array([np.roll(shape.filter, i) for i in range(shape.leaves)])
            nodes = [(values @ seen, 1), (values, shape.finest)]
        else:
            layers = range(shape.layers)
            nodes = [(values.reshape(2, shape.fanout**k, -1).sum(axis=2), 1) for k in layers]
        moved = [
            (abs(int(step)), narrower)
            for level, narrower in nodes
            for step in np.diff(level, axis=0)[0]
            if step
        ]
        changes.add(tuple(sorted(moved)))
    return changes


def losses_of(moved: tuple[tuple[int, int], ...], square: float) -> tuple[Floats, Floats]:
    """Return the privacy losses of one column and their probabilities, over all noise."""
    losses, chances = np.zeros(1), np.ones(1)
    groups: dict[int, list[int]] = {}
    for step, narrower in moved:
        groups.setdefault(narrower, []).append(step)
    for narrower, steps in groups.items():
        own = square / narrower
        total = np.ones(1)  # the law of the sum of step x noise, on whole numbers
        for step in steps:
            reach = math.ceil(7.5 * math.sqrt(own))
            law = np.zeros(2 * reach * step + 1)
            law[::step] = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * own))
            total = np.convolve(total, law / law.sum())
        middle = total.size // 2
        own_losses = (sum(step**2 for step in steps) / 2 + np.arange(total.size) - middle) / own
        kept = total > 1e-16
        losses = np.add.outer(losses, own_losses[kept]).ravel()
        chances = np.multiply.outer(chances, total[kept]).ravel()
    return losses, chances


def true_delta(release: PublishingPlan, thresholds: list[int], squares: list[float]) -> float:
    """Return the largest delta of any two tables that differ in one row, at the plan's epsilon.

    Nodes are independent; what is published is a function of them.
    """
    worst = 0.0
    columns = [changes_of(release.tree, threshold) for threshold in thresholds]
    for row in product(*columns):
        losses, chances = np.zeros(1), np.ones(1)
        for moved, square in zip(row, squares, strict=True):
            own, weights = losses_of(moved, square)
            losses = np.add.outer(losses, own).ravel()
            chances = np.multiply.outer(chances, weights).ravel()
        worst = max(worst, float(chances @ np.maximum(-np.expm1(release.epsilon - losses), 0)))
    return worst


def squares_of(release: PublishingPlan, thresholds: list[int]) -> list[float]:
    return [release.noise(threshold).variance for threshold in thresholds]


@pytest.fixture
def coarse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give filters small weights, so that all sums of noise can be enumerated."""
    monkeypatch.setattr(noise_ring, "_FINE", 2)


CASES = [(Tree(2, 3), [1, 1]), (Tree(2, 2), [1, 2]), (Tree(4, 1), [3, 1]), (Ring(2), [1])]


@pytest.mark.usefixtures("coarse")
@pytest.mark.parametrize(("shape", "thresholds"), CASES, ids=str)
def test_delta_is_kept_on_every_pair_of_neighbours(
    shape: Tree | Ring, thresholds: list[int]
) -> None:
    """It is spent, too: noise of a tenth less deviation, or for one column less, breaks it."""
    release = PublishingPlan(1.0, BOUND, Fixed(1), tree=shape, delta=1e-3, columns=len(thresholds))
    squares = squares_of(release, thresholds)
    assert 0.5e-3 < true_delta(release, thresholds, squares) <= 1e-3
    assert true_delta(release, thresholds, [0.81 * square for square in squares]) > 1e-3
    if len(thresholds) > 1:
        forgetful = squares_of(replace(release, columns=1), thresholds)
        assert true_delta(release, thresholds, forgetful) > 1e-3


def test_a_layer_that_is_forgotten_breaks_the_promise() -> None:
    release = PublishingPlan(1.0, BOUND, Fixed(1), tree=Tree(2, 3), delta=1e-3)
    fewer = replace(release, tree=Tree(2, 2))
    assert true_delta(release, [1], squares_of(fewer, [1])) > 1e-3


@pytest.mark.parametrize("per_person", [0, 1, 3])
@pytest.mark.parametrize("reuse", [0.0, 0.2])
def test_choices_and_noise_of_a_plan_keep_epsilon_and_delta(per_person: int, reuse: float) -> None:
    release = gaussian_plan(
        epsilon=1.0,
        delta=1e-6,
        columns=3,
        bound=1000,
        holdout=500,
        limit=4096,
        reuse=reuse,
        per_person=per_person,
    )
    budget = release.budget
    assert budget.choice == release.threshold.epsilon > 0
    assert budget.both == (reuse > 0)
    assert 0.999e-6 < budget.delta_at(budget.mu) <= 1e-6
    law = release.noise(10)
    assert isinstance(law, GaussianLaw)
    values = max(per_person, 1)
    moved = 3 * (10 * values) ** 2 * release.tree.changes / law.variance
    assert 0.99 * budget.mu < math.sqrt(moved) < budget.mu
    with pytest.raises(ConfigurationError, match="threshold is chosen with epsilon"):
        replace(release, threshold=ScaleFree(0.5, 10.0))


@pytest.mark.parametrize(("per_person", "reuse"), [(0, 0.2), (4, 0.0)])
def test_a_threshold_chosen_for_all_groups_stays_paid_for(per_person: int, reuse: float) -> None:
    """The plan of each stream has as much noise as if it had chosen the threshold itself."""
    release = gaussian_plan(
        epsilon=1.0,
        delta=1e-6,
        bound=100,
        holdout=40,
        limit=256,
        reuse=reuse,
        per_person=per_person,
    )
    groups = Groups(release, KEY)
    groups.feed(np.array(["a"] * 50), np.arange(50))
    assert groups.each.noise(7) == release.noise(7)


# ---- what is published ------------------------------------------------------------------------


def test_a_plan_survives_plain_data_and_batches_change_nothing() -> None:
    release = gaussian_plan(epsilon=1.0, delta=1e-6, columns=3, bound=100, threshold=50, limit=4096)
    assert isinstance(release.tree, Ring)
    assert PublishingPlan.from_configuration(release.configuration()) == release
    values = seeded(1).simulator().integers(0, 101, 20_000)
    whole, pieces = Publisher(release, KEY), Publisher(release, KEY)
    once = whole.feed(values).sums.tolist()
    parts = [pieces.feed(part).sums for part in np.split(values, [1, 999, 1024, 13_000])]
    assert np.concatenate(parts).tolist() == once


def test_the_guarantee_says_all_that_is_promised() -> None:
    release = gaussian_plan(epsilon=1.0, delta=1e-6, columns=3, bound=100, threshold=50)
    assert together([release] * 3) == release.guarantee
    assert str(release.guarantee) == (
        "Each row, with its values in all 3 streams, is protected with epsilon 1, delta 1e-06 and "
        "zCDP rho 0.0281 (central: blurred by a trusted curator before it is published), provided "
        "that the number of values is public."
    )


@pytest.mark.statistics
def test_intervals_of_gaussian_noise_cover_as_often_as_they_say() -> None:
    release = gaussian_plan(
        epsilon=1.0, delta=1e-6, columns=2, bound=100, threshold=100, block=4, limit=1024
    )
    values = np.full(600 * 1024, 40)
    hits: dict[tuple[int, int], int] = {(1, 4): 0, (5, 400): 0, (101, 1000): 0}
    stream = Released(release, 100, Publisher(release, KEY).feed(values))
    for ring in range(600):
        for first, last in hits:
            answer = stream.sum(first + 1024 * ring, last + 1024 * ring, level=0.8)
            hits[first, last] += answer.low <= 40 * (last - first + 1) <= answer.high
    spread = math.sqrt(600 * 0.8 * 0.2)
    for count in hits.values():
        assert abs(count - 480) < 6 * spread  # 0.7 to 0.9


# ---- how much less noise ----------------------------------------------------------------------


def both_ways(columns: int, threshold: int | None = None) -> tuple[PublishingPlan, PublishingPlan]:
    """Return the plans of a column with Laplace and with Gaussian noise, at epsilon 1."""
    each = part_of_each(1.0, columns)
    return (
        plan(epsilon=each, bound=30_000, threshold=threshold),
        gaussian_plan(epsilon=1.0, delta=1e-6, columns=columns, bound=30_000, threshold=threshold),
    )


@pytest.mark.parametrize(("columns", "gain"), [(3, 1.5), (10, 3.5)])
def test_gaussian_columns_have_less_expected_error(columns: int, gain: float) -> None:
    """The exact variance of noise in random ranges; what blocks hide comes on top for both."""
    laplace, gaussian = both_ways(columns, threshold=1000)
    errors = [release.expected_error(1000, 1 << 20) ** 2 for release in (laplace, gaussian)]
    assert errors[0] / errors[1] > gain
    assert gaussian.block <= laplace.block


@pytest.mark.slow
@pytest.mark.parametrize(
    ("columns", "threshold", "gain"),
    [(3, 10_000, 1.5), (10, 10_000, 3.5), (3, None, 1.5), (10, None, 3.5)],
)
def test_gaussian_columns_have_less_measured_error(
    columns: int, threshold: int | None, gain: float
) -> None:
    """Squared errors of random range sums of a million made-up fares.

    Where thresholds are chosen from the data, what they cut off is in the error of both ways.
    """
    draw = seeded(5).simulator()
    size = (1 << 20) + (1 << 16)
    daily = 1 + 0.5 * np.sin(np.arange(size) * (2 * np.pi / 86_400))
    values = np.minimum(draw.exponential(2000, size) * daily, 10_000).astype(np.int64)
    prefix = np.append(0, np.cumsum(values))
    squares: list[list[float]] = [[], []]
    for repeat in range(200):
        ends = np.sort(draw.integers(1 << 16, size, (2, 200)), axis=0)
        for release, errors in zip(both_ways(columns, threshold), squares, strict=True):
            errors.append(_squared_error(release, values, prefix, ends, repeat))
    assert np.mean(squares[0]) / np.mean(squares[1]) > gain


def _squared_error(
    release: PublishingPlan, values: Ints, prefix: Ints, ends: NDArray[np.int64], seed: int
) -> float:
    publisher = Publisher(release, bytes(seeded(seed).take(32)))
    first, last = publisher.feed(values), publisher.finish()
    blocks = type(first)(*(np.concatenate(pair) for pair in zip(first, last, strict=True)))
    stream = Released(release, publisher.state.threshold or 0, blocks)
    sums = stream.sums(ends[0] + 1, ends[1] + 1)
    return float(np.mean((sums - (prefix[ends[1] + 1] - prefix[ends[0]])) ** 2))


# ---- bad plans --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"delta": 0.0}, "delta is 0.0; "),
        ({"delta": 1.0}, "delta is 1.0; "),
        ({"delta": -0.5}, "delta is -0.5; "),
        ({"columns": 0}, "columns is 0; "),
        ({"per_person": 2000}, "values is 2000; "),
        ({"epsilon": 100.0}, "epsilon is 100.0; "),
    ],
)
def test_a_plan_that_cannot_be_is_refused(options: dict[str, object], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        gaussian_plan(**{"epsilon": 1.0, "delta": 1e-6, "bound": 100, **options})  # type: ignore[arg-type]


def test_laplace_noise_is_that_of_one_column_and_a_tree() -> None:
    with pytest.raises(ConfigurationError, match="delta is 0 with 3 columns"):
        PublishingPlan(1.0, BOUND, Fixed(1), columns=3)
    with pytest.raises(ConfigurationError, match="ring of 4 leaves; Laplace noise"):
        PublishingPlan(1.0, BOUND, Fixed(1), tree=Ring(4))
    with pytest.raises(ConfigurationError, match="threshold is a quantile with a delta"):
        PublishingPlan(1.0, BOUND, Quantile(0.1, 1e-9, 0.9), 10, delta=1e-6)
