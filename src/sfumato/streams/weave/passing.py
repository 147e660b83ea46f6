"""The part of each edge's noise in all answers, by one pass forward and one backward.

No edge starts further back than the longest span, so the forward pass only keeps the last periods
(and the running sum): their covariance, and the gains of the edges. The backward pass keeps the sum
of squares of all later questions, in terms of the same periods; combined with a gain, it gives the
part of the edge's noise in the answers. Slots are used in turn; the last two are period 0 and the
sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from sfumato.arrays import Floats, Ints

__all__ = ["Asked", "Ending", "squared_weights"]

Asked = Literal["online", "prefix"]
Ending = tuple[Ints, Floats]
"""The starts of the edges that end in a period, and their noise (infinite without reports)."""


@dataclass(frozen=True, eq=False)
class _Step:
    """One period of the forward pass: its slot, the slots its edges start in, and their gains."""

    slot: int
    edges: Ints
    slots: Ints
    gain: Floats


def squared_weights(ended: Sequence[Ending], asked: Asked) -> list[Floats] | None:
    """Return the mean squared weight in answers of the edges that end in each period.

    The result is None if no reports lead to some period.

    Parameters
    ----------
    ended
        The edges that end in each period, from the first period on.
    asked
        The question: each period's mean when it closes, or the sum of the means up to it.

    """
    longest = max((int((t - s[s > 0]).max(initial=1)) for t, (s, _) in _numbered(ended)), default=1)
    steps = _forth(ended, longest + 1, asked)
    if steps is None:
        return None
    weights = []
    for (start, _), step, squares in zip(
        ended, steps, _back(steps, longest + 1, asked), strict=True
    ):
        row = np.zeros(start.size)
        row[step.edges] = squares / len(ended)
        weights.append(row)
    return weights


def _numbered(ended: Sequence[Ending]) -> list[tuple[int, Ending]]:
    return list(enumerate(ended, start=1))


def _forth(ended: Sequence[Ending], window: int, asked: Asked) -> list[_Step] | None:
    """Return the steps; None if no reports lead to some period."""
    zero, running = window, window + 1
    inside = np.zeros((window + 2, window + 2))
    steps: list[_Step] = []
    for period, (start, noise) in _numbered(ended):
        slot = period % window
        edges = np.flatnonzero(np.isfinite(noise))
        if not edges.size:
            return None
        indices = np.where(start[edges] == 0, zero, start[edges] % window)
        first = indices[0]
        inside[slot] = inside[first]
        inside[:, slot] = inside[:, first]
        inside[slot, slot] = inside[first, first] + noise[edges[0]]
        gain = np.zeros((window + 2, 0))
        if edges.size > 1:
            pull = inside[:, [slot]] - inside[:, indices[1:]]
            spread = pull[[slot]] - pull[indices[1:]] + np.diag(noise[edges[1:]])
            gain = np.asarray(np.linalg.solve(spread, pull.T).T)
            inside -= gain @ pull.T
        if asked == "prefix":
            inside[running] += inside[slot]
            inside[:, running] += inside[:, slot]
        steps.append(_Step(slot, edges, indices, gain))
    return steps


def _back(steps: Sequence[_Step], window: int, asked: Asked) -> list[Floats]:
    """Return the sum of squares of each edge's weights in all answers."""
    running = window + 1
    later = np.zeros((window + 2, window + 2))
    squares: list[Floats] = []
    for step in reversed(steps):
        slot, first, indices = step.slot, step.slots[0], step.slots[1:]
        if asked == "prefix":
            later[running, running] += 1
            later[slot] += later[running]
            later[:, slot] += later[:, running]
        else:
            later[slot, slot] += 1
        row = np.empty(step.edges.size)
        if indices.size:
            pulled = later @ step.gain
            among = step.gain.T @ pulled
            row[1:] = np.diagonal(among)
            _undo(later, slot, indices, pulled, among)
        row[0] = later[slot, slot]
        later[first] += later[slot]
        later[:, first] += later[:, slot]
        later[slot] = 0.0
        later[:, slot] = 0.0
        squares.append(row)
    return squares[::-1]


def _undo(told: Floats, slot: int, indices: Ints, pulled: Floats, among: Floats) -> None:
    """Transform questions about the state after an update to the state before it.

    The update maps x to x + K (z - H x), so M becomes (1 - KH)' M (1 - KH); a row of H is the slot
    minus the slot of an edge's start. Several edges from 0 share its slot, which has no
    uncertainty.
    """
    whole = pulled.sum(axis=1)
    told[slot] -= whole
    told[:, slot] -= whole
    row = among.sum(axis=0)
    told[slot, slot] += row.sum()
    for column, index in enumerate(indices):
        told[index] += pulled[:, column]
        told[:, index] += pulled[:, column]
        told[slot, index] -= row[column]
        told[index, slot] -= row[column]
        told[index, indices] += among[column]
