"""Decoders of the aligned hierarchy: the papers' path, and an exact, cheap recursion.

Nodes of the hierarchy are edges of the graph of periods: a node of span g ends at a multiple of g
and starts g periods before. *Path* adds up the fewest nodes that lead from 0 to a period, and
ignores all others. *Tree* fuses each node with its children when it ends, weighted by their
variances. The nodes that have ended by a period form complete subtrees, so this single pass from
below is the best linear unbiased estimate, in O(1) amortised time and O(r log T) memory.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sfumato.arrays import Floats
from sfumato.errors import ConfigurationError
from sfumato.streams.weave.fusion import Fusion

__all__ = ["HierarchyDecoder", "path", "tree"]


def path(fusion: Fusion) -> Floats:
    """Return the weight of each edge in the path to each period; nan if a node has no reports.

    This is "SaO2", Algorithm 2, with the top level's nodes counted from the first one: the last
    node on the path to a period is the longest that ends in it.

    Examples
    --------
    >>> start, end = np.array([0, 1, 2, 3, 0, 2]), np.array([1, 2, 3, 4, 2, 4])
    >>> path(Fusion(4, start, end, np.ones(6)))[2].tolist()
    [0.0, 0.0, 1.0, 0.0, 1.0, 0.0]

    """
    weights = np.zeros((fusion.periods + 1, fusion.start.size))
    longest = np.full(fusion.periods + 1, -1)
    for edge in np.argsort(fusion.end - fusion.start, kind="stable"):
        longest[fusion.end[edge]] = edge
    for period in range(1, fusion.periods + 1):
        edge = longest[period]
        if edge < 0 or not fusion.conductance[edge] > 0:
            weights[period] = np.nan
            continue
        weights[period] = weights[fusion.start[edge]]
        weights[period, edge] += 1
    return weights[1:]


def tree(fusion: Fusion) -> Floats:
    """Return the weight of each edge in the tree's estimate of each period.

    The recursion is linear, so unit vectors as inputs give its weights. They are nan in a period
    that no nodes with reports add up to.
    """
    state = HierarchyDecoder()
    weights = np.empty((fusion.periods, fusion.start.size))
    unit = np.eye(fusion.start.size)
    order = np.argsort(fusion.end, kind="stable")
    cuts = np.searchsorted(fusion.end[order], np.arange(1, fusion.periods + 2))
    for period in range(1, fusion.periods + 1):
        edges = order[cuts[period - 1] : cuts[period]]
        raw = {1: (np.zeros(len(unit)), 0.0)}  # stands unless a node of one period has reports
        raw |= {
            int(fusion.end[edge] - fusion.start[edge]): (unit[edge], fusion.conductance[edge])
            for edge in edges
        }
        weights[period - 1] = state.close(raw)[0]
    return weights


class HierarchyDecoder:
    """The best estimate on an aligned hierarchy, node by node.

    Examples
    --------
    >>> state = HierarchyDecoder()
    >>> value, variance = state.close({1: (np.array([0.5]), 1.0)})
    >>> value, variance = state.close({1: (np.array([0.1]), 1.0), 2: (np.array([0.9]), 1.0)})
    >>> value.round(3).tolist(), round(variance, 3)
    ([0.8], 0.667)

    """

    def __init__(self) -> None:
        self._period = 0
        # The complete subtrees from 0 on, longest first: start, end, estimate, variance.
        self._nodes: list[tuple[int, int, Floats, float]] = []

    def close(self, raw: Mapping[int, tuple[Floats, float]]) -> tuple[Floats, float]:
        """Close the next period, given the raw value and conductance of its nodes, by span.

        Returns the estimate of the period and its variance.
        """
        self._period += 1
        if 1 not in raw:
            raise ConfigurationError(
                f"period {self._period} has nodes of spans {sorted(raw)}; one of span 1 ends in "
                "every period."
            )
        for span in sorted(raw):
            self._finish(self._period - span, *raw[span])
        value = sum((node[2] for node in self._nodes[1:]), start=self._nodes[0][2])
        return value, sum(node[3] for node in self._nodes)

    def _finish(self, start: int, value: Floats, conductance: float) -> None:
        """Fuse a node's own reports with the subtrees that it spans."""
        inside = [node for node in self._nodes if node[0] >= start]
        below = sum((node[2] for node in inside[1:]), start=inside[0][2]) if inside else np.nan
        noise = sum(node[3] for node in inside) if inside else np.inf
        if not conductance > 0:
            fused, variance = below + 0 * value, noise
        elif np.isinf(noise):
            fused, variance = value, 1 / conductance
        else:
            variance = noise / (1 + conductance * noise)
            fused = variance * (conductance * value + below / noise)
        self._nodes = self._nodes[: len(self._nodes) - len(inside)]
        self._nodes.append((start, self._period, fused, variance))
