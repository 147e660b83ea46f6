"""Publishing online: any batches, any restart, one result; noise of the right scale."""

from __future__ import annotations

import copy
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sfumato.core.noise import NoiseLaw
from sfumato.errors import ConfigurationError, InputError
from sfumato.randomness import Keyed, seeded
from sfumato.streams.published import METHODS, Publisher, PublishingPlan, plan
from sfumato.streams.published.noise_tree import Tree
from sfumato.streams.published.thresholds import Fixed, Quantile, ScaleFree

Ints = NDArray[np.int64]

KEY = bytes(range(32))
RELEASE = PublishingPlan(0.5, 100, ScaleFree(0.5, 5.0), holdout=40, tree=Tree(3, 3), block=4)
VALUES = seeded(1).simulator().integers(0, 101, 500)


def published(release: PublishingPlan, cuts: list[int], *, restart: bool = False) -> list[float]:
    """Return all places and sums, fed in pieces."""
    publisher = Publisher(release, KEY)
    found: list[float] = []
    for part in np.split(VALUES, sorted(cuts)):
        blocks = publisher.feed(part)
        found += [*blocks.to.tolist(), *blocks.sums.tolist()]
        if restart:
            publisher = Publisher(release, KEY, copy.deepcopy(publisher.state))
    blocks = publisher.finish()
    return sorted([*found, *blocks.to.tolist(), *blocks.sums.tolist()])


@given(st.lists(st.integers(0, 500), max_size=6), st.booleans())
@settings(max_examples=40)
def test_batches_and_restarts_change_nothing(cuts: list[int], restart: bool) -> None:  # noqa: FBT001
    assert published(RELEASE, cuts, restart=restart) == published(RELEASE, [])


def test_what_is_published_is_offline_consistency_bit_for_bit() -> None:
    """The whole noisy tree, fitted afterwards, gives the published sums to the last bit."""
    tree = Tree(3, 3)
    release = PublishingPlan(0.5, 100, Fixed(30), tree=tree, block=2)
    row = tree.together * tree.leaves
    values = np.resize(VALUES, 2 * row * 2)
    online = Publisher(release, KEY).feed(values).sums
    leaves = np.minimum(values, 30).reshape(2, row, 2).sum(axis=2)
    offline = []
    for index, true in enumerate(leaves):
        noise = tree.draw(release.noise(30), Keyed(KEY, f"trees {index}"))
        nodes = [level + true.reshape(level.size, -1).sum(axis=1) for level in noise]
        integers, corrections = tree.leaf_sums(nodes)
        offline.append(integers + corrections)
    assert np.concatenate(offline).tobytes() == online.tobytes()


@pytest.mark.parametrize("name", METHODS)
def test_the_scale_of_a_node_is_threshold_times_layers_over_epsilon(name: str) -> None:
    release = plan(name, epsilon=0.1, bound=1000, limit=1 << 12)
    assert release.noise(250) == NoiseLaw(Fraction(1, 10) / (250 * release.tree.changes))


@pytest.mark.parametrize("tree", [Tree(3, 3), Tree(2, 4, consistent=False), Tree(4, 1)], ids=str)
def test_one_value_moves_each_layer_by_the_threshold_at_most(tree: Tree) -> None:
    """The sensitivity behind that scale, counted over the true sums of all nodes."""
    values = VALUES[: tree.leaves * 2].copy()
    other = values.copy()
    values[1], other[1] = 10, 100

    def sums(values: Ints) -> Ints:
        cut = np.minimum(values, 30).reshape(-1, 2).sum(axis=1)
        return np.concatenate(
            [cut.reshape(tree.fanout**depth, -1).sum(axis=1) for depth in range(tree.layers)]
        )

    moved = np.abs(sums(values) - sums(other)).sum()
    assert 0 < moved <= 30 * tree.layers


def test_noise_is_that_of_the_law_and_not_a_tenth_less_or_more() -> None:
    release = PublishingPlan(1.0, 1000, Fixed(500), tree=Tree(16, 1))
    sums = Publisher(release, KEY).feed(np.full(200_000, 700)).sums - 500
    variance = release.noise(500).variance
    error = 6 * np.sqrt(5 / sums.size)  # of a variance, for noise of kurtosis six
    assert abs(sums.var() / variance - 1) < error
    for factor in (0.9, 1.1):
        assert abs(sums.var() / (variance * factor) - 1) > error
    assert abs(sums.mean()) < 6 * np.sqrt(variance / sums.size)


def test_held_out_values_are_forgotten_once_the_threshold_is_chosen() -> None:
    publisher = Publisher(RELEASE, KEY)
    publisher.feed(VALUES[:39])
    assert publisher.state.threshold is None
    assert sum(part.size for part in publisher.state.held) == 39
    publisher.feed(VALUES[39:41])
    assert publisher.state.threshold is not None
    assert publisher.state.held == []
    assert "held" not in publisher.state.plain()


@pytest.mark.parametrize("bad", [-1, 101])
def test_values_outside_of_the_bound_are_refused(bad: int) -> None:
    with pytest.raises(InputError, match=r"outside of 0..100 units"):
        Publisher(RELEASE, KEY).feed(np.array([5, bad]))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"epsilon": 0}, "epsilon is 0; it must lie in 1e-06..20."),
        ({"bound": 0}, "bound is 0; a whole number from 1 on is expected."),
        ({"bound": 1 << 41}, "bound is 2199023255552 units; 2^40 is the most, so use a larger"),
        ({"holdout": 0}, "holdout is 0; a whole number from 1 on is expected."),
        ({"method": "magic"}, "method is 'magic'; tuned, tops, pak"),
        ({"smoother": "magic"}, "smoother is 'magic'; recent, mean"),
        ({"limit": 1}, "limit is 1; a whole number from 2 on is expected."),
        ({"reuse": 1.0}, "reuse is 1.0; a number from 0 to below 1 is expected."),
        ({"block": 0}, "block is 0; a whole number from 1 on is expected."),
    ],
)
def test_a_plan_that_cannot_be_is_refused(change: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        plan(**({"epsilon": 1.0, "bound": 100} | change))  # type: ignore[arg-type]
    assert str(caught.value).startswith(says)


@pytest.mark.parametrize(
    ("change", "most"),
    [
        ({"threshold": ScaleFree(0.6, 5.0)}, 0.5),
        ({"per_person": 2}, 0.25),
        ({"reuse": 0.25}, 0.125),
        ({"threshold": Fixed(9), "reuse": 0.5, "renew": 9, "later": ScaleFree(0.3, 5.0)}, 0.25),
        ({"threshold": Quantile(0.6, 1e-6, 0.9)}, 0.5),
    ],
)
def test_a_choice_that_takes_more_than_its_share_is_refused(change: Any, most: float) -> None:
    """What is promised to a value covers the choice of thresholds, whoever put it together."""
    with pytest.raises(ConfigurationError, match=f"epsilon 0.[356]; {most:g} is the most"):
        replace(RELEASE, **change)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_survives_plain_data(name: str) -> None:
    release = plan(name, epsilon=0.1, bound=1000)
    assert PublishingPlan.from_configuration(release.configuration()) == release


@pytest.mark.parametrize(("epsilon", "reuse"), [(0.1, 0.2), (0.3, 0.1), (1.0, 1 / 3), (0.7, 0.9)])
def test_a_reused_holdout_is_published_and_the_shares_never_exceed_epsilon(
    epsilon: float, reuse: float
) -> None:
    release = plan(epsilon=epsilon, bound=100, holdout=40, limit=256, reuse=reuse, block=4)
    law, tree = release.noise(7), release.tree
    assert isinstance(law, NoiseLaw)
    assert isinstance(tree, Tree)
    spent = Fraction(repr(release.threshold.epsilon)) + law.epsilon(7 * tree.layers)
    assert spent <= Fraction(repr(epsilon))
    assert spent > Fraction(repr(epsilon)) * (1 - Fraction(1, 10**12))
    assert release.guarantee.epsilon == epsilon
    whole = published(release, [])
    assert whole == published(release, [3, 39, 41, 300], restart=True)
    assert 4 in whole  # the first block ends with the fourth value
    assert 500 in whole
    assert PublishingPlan.from_configuration(release.configuration()) == release


def test_memory_does_not_grow_with_the_stream() -> None:
    release = plan(epsilon=0.1, bound=100, threshold=50)
    publisher = Publisher(release, KEY)
    for _ in range(50):
        publisher.feed(np.full(1 << 16, 7))
    assert publisher.state.count == 50 << 16
    held = {name: v for name, v in vars(publisher.state).items() if isinstance(v, list)}
    assert held == {"held": [], "thresholds": [50]}


def test_a_threshold_too_large_for_the_unit_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="use a larger unit"):
        Publisher(plan(epsilon=1e-6, bound=1 << 40, threshold=1 << 40), KEY)


# ---- epsilon, exactly, on small trees -----------------------------------------------------------


def spent(tree: Tree, threshold: int, bound: int, law: NoiseLaw) -> Fraction:
    """Return the epsilon of all noisy nodes, over every change of one value anywhere in a tree.

    What is published is a function of these nodes, so it has at most this epsilon.
    """

    def nodes(values: Ints) -> Ints:
        cut = np.minimum(values, threshold)
        layers = (cut.reshape(tree.fanout**depth, -1).sum(axis=1) for depth in range(tree.layers))
        return np.concatenate([*layers])

    worst = Fraction(0)
    for place in range(tree.leaves):
        for before in range(bound + 1):
            for after in range(bound + 1):
                one, other = (np.zeros(tree.leaves, dtype=np.int64) for _ in range(2))
                one[place], other[place] = before, after
                worst = max(worst, law.epsilon(int(np.abs(nodes(one) - nodes(other)).sum())))
    return worst


@pytest.mark.parametrize("tree", [Tree(2, 3), Tree(3, 2), Tree(4, 1), Tree(2, 3, consistent=False)])
@pytest.mark.parametrize("threshold", [1, 3, 5])
def test_the_nodes_of_a_tree_have_epsilon_exactly(tree: Tree, threshold: int) -> None:
    release = PublishingPlan(0.3, 6, Fixed(threshold), tree=tree)
    law = release.noise(threshold)
    assert isinstance(law, NoiseLaw)
    assert spent(tree, threshold, 6, law) == Fraction(3, 10)


@pytest.mark.parametrize(
    "rate",
    [
        lambda layers, _: Fraction(3, 10) / layers,  # as printed: the threshold is missing
        lambda _, threshold: Fraction(3, 10) / threshold,  # as if there were one layer only
    ],
    ids=["without the threshold", "without the layers"],
)
def test_noise_of_a_smaller_scale_breaks_the_promise(rate: Any) -> None:
    tree, threshold = Tree(2, 3), 5
    law = NoiseLaw(rate(tree.layers, threshold))
    assert spent(tree, threshold, 6, law) >= 3 * Fraction(3, 10)
