"""Trees of noise: least squares, online and offline, and the exact law of ranges."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.core.noise import NoiseLaw
from sfumato.errors import ConfigurationError
from sfumato.randomness import seeded
from sfumato.streams.published.noise_tree import Tree

SHAPES = [Tree(2, 2), Tree(2, 4), Tree(3, 3), Tree(5, 3), Tree(16, 2), Tree(4, 1)]


def incidence(tree: Tree, trees: int = 1) -> NDArray[np.float64]:
    """Return which leaves each node stands for, the roots first."""
    rows = []
    for depth in range(tree.layers):
        size = tree.fanout ** (tree.layers - 1 - depth)
        rows.append(np.kron(np.eye(trees * tree.leaves // size), np.ones(size)))
    return np.concatenate(rows)


def drawn(tree: Tree, seed: int) -> list[NDArray[np.int64]]:
    """Return the noise of the first of the trees that are drawn together."""
    nodes = tree.draw(NoiseLaw(Fraction(1, 50)), seeded(seed))
    return [level[: level.size // tree.together] for level in nodes]


def noisy(tree: Tree, leaves: NDArray[np.int64], seed: int) -> list[NDArray[np.int64]]:
    """Return the true sums of all nodes plus noise."""
    noise = drawn(tree, seed)
    sums = [leaves.reshape(level.size, -1).sum(axis=1) for level in noise]
    return [level + true for level, true in zip(noise, sums, strict=True)]


def fitted(tree: Tree, nodes: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    integers, corrections = tree.leaf_sums(nodes)
    return integers + corrections


@pytest.mark.parametrize("tree", SHAPES, ids=str)
def test_consistency_is_least_squares(tree: Tree) -> None:
    nodes = noisy(tree, np.arange(tree.leaves) * 7, 1)
    expected = np.linalg.lstsq(incidence(tree), np.concatenate(nodes).astype(float))[0]
    assert np.abs(fitted(tree, nodes) - expected).max() < 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize("tree", [*SHAPES, Tree(3, 4, consistent=False)], ids=str)
def test_online_equals_offline_bit_for_bit(tree: Tree) -> None:
    """True leaves plus fitted noise are what fitting the whole noisy tree gives."""
    leaves = seeded(2).simulator().integers(0, 10**9, tree.leaves)
    noise = drawn(tree, 3)
    integers, corrections = tree.leaf_sums(noise)
    online = (leaves + integers) + corrections
    offline = fitted(tree, noisy(tree, leaves, 3))
    assert online.tobytes() == offline.tobytes()


def test_huge_noise_stays_exact() -> None:
    tree = Tree(16, 4)
    nodes = [level * 10**11 for level in tree.draw(NoiseLaw(Fraction(1, 10**6)), seeded(4))]
    small = fitted(tree, [level // 10**11 for level in nodes])
    assert np.abs(fitted(tree, nodes) / 1e11 - small).max() < 1e-12 * np.abs(small).max()


def test_trees_drawn_together_are_fitted_one_by_one() -> None:
    for tree in (Tree(3, 3), Tree(2, 4, consistent=False), Tree(4, 1)):
        nodes = tree.draw(NoiseLaw(Fraction(1, 50)), seeded(7))
        whole = fitted(tree, nodes).reshape(tree.together, -1)
        for index in (0, 1, tree.together - 1):
            own = [level.reshape(tree.together, -1)[index] for level in nodes]
            assert whole[index].tolist() == fitted(tree, own).tolist()


def in_place(tree: Tree, nodes: list[NDArray[np.int64]]) -> NDArray[np.float64]:
    """As the paper reads at first sight: siblings are updated one after the other, in place."""
    b = tree.fanout
    levels = [level.astype(float) for level in nodes[::-1]]
    for height in range(2, tree.layers + 1):
        weight = (b**height - b ** (height - 1)) / (b**height - 1)
        below = levels[height - 2].reshape(-1, b).sum(axis=1)
        levels[height - 1] = weight * levels[height - 1] + (1 - weight) * below
    for height in range(tree.layers - 1, 0, -1):
        level = levels[height - 1]
        for index in range(level.size):
            family = slice(index // b * b, index // b * b + b)
            siblings = level[family].sum() - level[index]
            parent = levels[height][index // b]
            level[index] = (b - 1) / b * level[index] + (parent - siblings) / b
    return levels[0]


def test_updating_siblings_in_place_is_caught() -> None:
    tree = Tree(3, 3)
    nodes = noisy(tree, np.zeros(9, dtype=np.int64), 5)
    expected = np.linalg.lstsq(incidence(tree), np.concatenate(nodes).astype(float))[0]
    assert np.abs(in_place(tree, nodes) - expected).max() > 1


# ---- the law of ranges ------------------------------------------------------------------------


def weights(tree: Tree, trees: int, first: float, last: float) -> NDArray[np.float64]:
    """Return each node's weight in the answer, by linear algebra or node by node."""
    leaves = np.arange(trees * tree.leaves)
    share = np.clip(np.minimum(last, leaves + 1) - np.maximum(first, leaves), 0, None)
    everything = incidence(tree, trees)
    if tree.consistent:
        return np.asarray(everything @ np.linalg.solve(everything.T @ everything, share))
    nodes = len(everything)
    answers = np.zeros((nodes, leaves.size))
    for node in range(nodes):  # the leaves that one unit of noise on this node leads to
        levels, start = [], 0
        for depth in range(tree.layers):
            size = trees * tree.fanout**depth
            unit = np.zeros(size, dtype=np.int64)
            if start <= node < start + size:
                unit[node - start] = 1
            levels.append(unit.reshape(trees, -1))
            start += size
        rows = [tree.leaf_sums([level[row] for level in levels])[0] for row in range(trees)]
        answers[node] = np.concatenate(rows)
    return np.asarray(answers @ share)


RANGES = [(0, 3), (1, 2), (2, 9), (0.5, 0.75), (1.25, 7.5), (4, 8.5), (3.5, 16), (0, 18)]


@pytest.mark.parametrize("consistent", [True, False])
@pytest.mark.parametrize("shape", [(3, 3, 2), (2, 4, 3), (4, 1, 18)])
def test_the_moments_of_a_range_are_exact(shape: tuple[int, int, int], *, consistent: bool) -> None:
    fanout, layers, trees = shape
    tree = Tree(fanout, layers, consistent)
    for first, last in RANGES:
        expected = weights(tree, trees, first, last)
        found = tree.moments(first, last)
        assert found.square == pytest.approx((expected**2).sum())
        assert found.fourth == pytest.approx((expected**4).sum())
        assert tree.mean_square([first], [last])[0] == pytest.approx(found.square)


def test_a_long_range_over_many_trees_is_quick() -> None:
    flat = Tree(16, 1)
    assert flat.moments(3, 10**9).square == pytest.approx(10**9 - 3)
    tree = Tree(16, 3)
    assert tree.moments(17, 10**9).square == pytest.approx(tree.mean_square([17], [1e9])[0])


def test_consistency_halves_the_variance_and_a_fanout_of_sixteen_beats_two() -> None:
    draw = seeded(6).simulator()
    ends = np.sort(draw.integers(0, 1 << 16, (200, 2)), axis=1)

    def error(tree: Tree) -> float:  # each layer has its share of epsilon
        return float(tree.mean_square(*ends.T).mean()) * tree.layers**2

    plain, fitted = Tree(16, 4, consistent=False), Tree(16, 4)
    assert 1.5 < error(plain) / error(fitted) < 3.5
    assert 2 < error(Tree(2, 16, consistent=False)) / error(plain) < 8


@pytest.mark.parametrize(
    ("fanout", "layers", "says"),
    [
        (1, 3, "fanout is 1; a whole number from 2 on is expected."),
        (16, 0, "layers is 0; a whole number in 1..25 is expected."),
        (2, 1 << 60, "layers is 1152921504606846976; a whole number in 1..25 is expected."),
        (16, 8, "a tree of fanout 16 and 8 layers has 268435456 leaves; 16777216 is the most."),
    ],
)
def test_a_tree_that_cannot_be_is_refused(fanout: int, layers: int, says: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Tree(fanout, layers)
    assert str(caught.value) == says


def test_a_tree_of_a_file_says_whether_it_is_consistent() -> None:
    with pytest.raises(ConfigurationError, match=r"consistent is \{\}; True or False is expected"):
        Tree(consistent={})  # type: ignore[arg-type]
