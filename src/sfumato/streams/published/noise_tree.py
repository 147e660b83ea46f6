"""A tree of noisy sums whose noise is made consistent before any data arrive.

Each node of the tree is the sum of its leaves, with its own noise. *Consistency*
replaces the noisy nodes by the least-squares fit of a tree whose parents are the sums of their
children. The fit is linear and does not change consistent trees, and true sums are consistent. So
the noise can be fitted alone, in advance, and added to true leaves as they come. What is published
is then exactly what fitting the whole noisy tree afterwards would have given (Wang et al. 2021).

With q_l = 1 + b + ... + b^(l-1), the least-squares fit of the subtree below a node of height l (a
leaf has height 1) is Z / q_l, where Z, the sum of b^(height - 1) times the node over the subtree,
is an integer. On the way down each child gets its own fit plus 1/b of the difference between its
parent and the sum of the children. Put together, a leaf is its noisy integer plus the sum over its
ancestors of R / (q_l q_(l-1)), where R = q_(l-1) times the ancestor minus the Z of its children: an
integer in which true values cancel. So published values are functions of noisy integers alone, and
the same ones, to the last bit, whether noise is fitted in advance or the noisy tree afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from sfumato.arrays import Floats, Ints
from sfumato.core.field_checks import check_one_of, check_whole
from sfumato.core.noise import DrawnLaw
from sfumato.errors import ConfigurationError
from sfumato.randomness import Source

__all__ = ["Tree", "WeightMoments"]


_MOST_LEAVES = 1 << 24
_FEW_LEAVES = 1 << 12


class WeightMoments(NamedTuple):
    """The sums of squares and of fourth powers of the nodes' weights in a range."""

    square: float
    fourth: float


@dataclass(frozen=True)
class Tree:
    """The shape of one tree; a stream is published as a sequence of such trees.

    Parameters
    ----------
    fanout
        The number of children of a node.
    layers
        The number of layers, including that of the leaves; one layer is a flat row of leaves.
    consistent
        Whether nodes are made consistent. If not, a leaf is the difference of two successive prefix
        sums, each made of the fewest nodes.

    Examples
    --------
    >>> tree = Tree(fanout=2, layers=3)
    >>> tree.leaves
    4
    >>> nodes = [np.array([9]), np.array([4, 6]), np.array([1, 2, 3, 5])]
    >>> integers, corrections = tree.leaf_sums(nodes)
    >>> (integers + corrections).round(4).tolist()
    [1.1429, 2.1429, 2.1429, 4.1429]

    """

    fanout: int = 16
    layers: int = 3
    consistent: bool = True

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless the shape is allowed."""
        check_whole("fanout", self.fanout, 2)
        check_whole("layers", self.layers, 1, _MOST_LEAVES.bit_length())
        check_one_of("consistent", self.consistent, (True, False))
        if self.leaves > _MOST_LEAVES:
            raise ConfigurationError(
                f"a tree of fanout {self.fanout} and {self.layers} layers has {self.leaves} "
                f"leaves; {_MOST_LEAVES} is the most."
            )

    def __str__(self) -> str:
        if self.layers == 1:
            return "none: one sum for each block"
        return f"{self.layers} layers, fan-out {self.fanout}"

    @property
    def changes(self) -> int:
        """The squared changes that one unit in a leaf makes, over the variance of the noise."""
        return self.layers

    finest: ClassVar[int] = 1  # leaves have the noise of all nodes

    @property
    def leaves(self) -> int:
        """The number of leaves."""
        return int(self.fanout ** (self.layers - 1))

    # ---- from noise to leaves --------------------------------------------------------------

    @property
    def together(self) -> int:
        """The number of trees that are drawn at once, more than one if they are small."""
        return max(1, _FEW_LEAVES // self.leaves)

    def draw(self, law: DrawnLaw, rng: Source) -> list[Ints]:
        """Return noise for all nodes of the trees that are drawn together, roots first."""
        sizes = [self.together * self.fanout**depth for depth in range(self.layers)]
        return [law.draw(size, rng) for size in sizes]

    def leaf_sums(self, nodes: Sequence[Ints]) -> tuple[Ints, Floats]:
        """Return the leaves of noisy nodes (roots first): integers, and corrections to add."""
        if not self.consistent:
            return self._by_prefixes(nodes), np.zeros(1)
        return nodes[-1], self._corrections(nodes)

    def _by_prefixes(self, nodes: Sequence[Ints]) -> Ints:
        """Return differences of prefix sums, each made of the fewest nodes."""
        # The sum before each node of the layer so far.
        prefix = np.zeros(nodes[0].size, dtype=np.int64)
        for level in nodes[1:]:
            before = np.cumsum(level.reshape(-1, self.fanout), axis=1)
            before[:, 1:] = before[:, :-1]
            before[:, 0] = 0
            before += prefix[:, None]
            prefix = before.ravel()
        ends = np.empty((nodes[0].size, self.leaves), dtype=np.int64)
        starts = prefix.reshape(ends.shape)
        ends[:, :-1] = starts[:, 1:]
        ends[:, -1] = nodes[0]
        ends -= starts
        return ends.ravel()

    def _corrections(self, nodes: Sequence[Ints]) -> Floats:
        """Return the correction of each leaf, from integers in which true values cancel."""
        b = self.fanout
        kind = object if self._wide(nodes) else np.int64
        weighted = nodes[-1].astype(kind, copy=False)  # Z
        residuals = []
        for height, narrow in enumerate(reversed(nodes[:-1]), start=2):
            level = narrow.astype(kind, copy=False)
            below = weighted.reshape(-1, b).sum(axis=1)
            q, less = self._repunits[height - 1], self._repunits[height - 2]
            residuals.append((less * level - below).astype(np.float64) / (q * less))
            weighted = below + b ** (height - 1) * level
        corrections = np.zeros(1)
        for residual in reversed(residuals):
            corrections = np.repeat(corrections + residual, b)
        return corrections

    def _wide(self, nodes: Sequence[Ints]) -> bool:
        """Return whether the weighted sums might exceed 64 bits.

        Below a node of height l lie b^(l-k) nodes of each height k with weight b^(k-1), a total
        weight of l b^(l-1), which is largest at the roots.
        """
        largest = max(int(np.abs(level).max(initial=0)) for level in nodes)
        return largest * self.layers * self.leaves >= 1 << 62

    @cached_property
    def _repunits(self) -> list[int]:
        return [sum(self.fanout**k for k in range(height)) for height in range(1, self.layers + 1)]

    # ---- the law of ranges -----------------------------------------------------------------

    def mean_square(self, first: ArrayLike, last: ArrayLike) -> Floats:
        """Return the variance of ranges from first to last, in units of a node's noise variance.

        Positions are in leaves and may be fractional: a partly covered leaf counts in proportion.
        For consistent trees, the least-squares fit shrinks differences between children of height l
        - 1 by q_(l-1): with s_l the sum of squares of the covered share of each node of height l,
        times its leaves, the variance is s_L / q_L + sum over l of (s_(l-1) - s_l) / q_(l-1).
        """
        x, y = np.asarray(first, dtype=np.float64), np.asarray(last, dtype=np.float64)
        if not self.consistent:
            pairs = zip(np.ravel(x).tolist(), np.ravel(y).tolist(), strict=True)
            return np.array([self.moments(*pair).square for pair in pairs]).reshape(x.shape)
        total = np.zeros(x.shape)
        before: Floats | None = None
        for height in range(1, self.layers + 1):
            size = float(self.fanout ** (height - 1))
            left, right = np.floor(x / size), np.floor(y / size)
            start, end = 1 - (x / size - left), y / size - right
            apart = start**2 + np.maximum(right - left - 1, 0) + end**2
            squares = size * np.where(left == right, ((y - x) / size) ** 2, apart)
            if before is not None:
                total += (before - squares) / self._repunits[height - 2]
            before = squares
        assert before is not None  # noqa: S101 - there is at least one layer
        return total + before / self._repunits[-1]

    def moments(self, first: float, last: float) -> WeightMoments:
        """Return the sums of squares and fourth powers of the nodes' weights in a range."""
        square = fourth = 0.0
        for weight, count in self.weights(first, last):
            square += count * weight**2
            fourth += count * weight**4
        return WeightMoments(square, fourth)

    def weights(self, first: float, last: float) -> Iterator[tuple[float, float]]:
        """Yield the weights of nodes in a range's answer, with the number of nodes of each."""
        if self.consistent:
            return self._fitted_weights(first, last)
        return self._prefix_weights(first, last)

    def _fitted_weights(self, first: float, last: float) -> Iterator[tuple[float, float]]:
        """Yield the weights of nodes in the least-squares answer, with the number of each.

        A node of height k has weight n_k c, with c = (d_k - d_(k+1)) / q_k + c of its parent, where
        d is the covered share of a node; below a node that is covered completely or not at all, c
        is constant.
        """

        def share(height: int, index: int) -> float:
            size = self.fanout ** (height - 1)
            covered = min(last, (index + 1) * size) - max(first, index * size)
            return float(max(covered, 0.0) / size)

        def even(height: int, c: float, count: int) -> Iterator[tuple[float, float]]:
            for k in range(1, height + 1):
                yield self.fanout ** (k - 1) * c, count * self.fanout ** (height - k)

        def below(height: int, indices: range, c: float, d: float) -> Iterator[tuple[float, float]]:
            size, q = self.fanout ** (height - 1), self._repunits[height - 1]
            ends = {math.floor(first / size), math.floor(last / size)}
            inside = range(
                max(indices.start, math.ceil(first / size)),
                min(indices.stop, math.floor(last / size)),
            )
            cut = {
                index: share(height, index)
                for index in ends
                if index in indices and index not in inside
            }
            covered, rest = len(inside), len(indices) - len(inside) - len(cut)
            if covered:
                yield from even(height, c + (1 - d) / q, covered)
            if rest and (c or d):
                yield from even(height, c - d / q, rest)
            for index, part in cut.items():
                own = c + (part - d) / q
                yield float(size) * own, 1.0
                if height > 1:
                    children = range(index * self.fanout, (index + 1) * self.fanout)
                    yield from below(height - 1, children, own, part)

        roots = range(math.floor(first / self.leaves), math.floor(last / self.leaves) + 1)
        yield from below(self.layers, roots, 0.0, 0.0)

    def _prefix_weights(self, first: float, last: float) -> Iterator[tuple[float, float]]:
        """Yield the weights of nodes in the difference of two interpolated prefix sums."""
        roots = (math.floor(first / self.leaves), math.floor(last / self.leaves))
        weights: dict[tuple[int, int, int], float] = {}
        for index, root, sign in ((last, roots[1], 1.0), (first, roots[0], -1.0)):
            t = math.floor(index)
            for leaf, part in ((t, 1 - (index - t)), (t + 1, index - t)):
                for node in self._prefix(leaf - root * self.leaves) if part else ():
                    weights[root, *node] = weights.get((root, *node), 0.0) + sign * part
        if roots[0] < roots[1]:  # complete trees between the two count as one node each
            own = (roots[0], self.layers, 0)
            weights[own] = weights.get(own, 0.0) + 1
            yield 1.0, roots[1] - roots[0] - 1
        yield from ((weight, 1.0) for weight in weights.values())

    def _prefix(self, leaves: int) -> Iterator[tuple[int, int]]:
        """Yield the nodes (height, index) that make up the first ``leaves`` leaves of a tree."""
        start = 0
        for height in range(self.layers, 0, -1):
            size = self.fanout ** (height - 1)
            while leaves - start >= size:
                yield height, start // size
                start += size
