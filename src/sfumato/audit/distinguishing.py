"""Events that one value makes likelier than another, looked for in outputs that were drawn before.

Values of a feature are put in the order of their likelihood ratios in one half of the outputs. The
other half says how many of them, from the top, make the best event; an order that is only a
coincidence of the first half shows there. What is chosen is then tried on new outputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sfumato.audit.features import Binned, Feature, Score, Single, Table, TwoFeatures, column_of
from sfumato.audit.visible import WHOLE

__all__ = ["EVENTS", "Distinction", "search"]

EVENTS: Final = 12
"""The number of events that a search returns, at most."""
FEW: Final = 64
"""A column with more values is also grouped, and is part of a pair only so."""
PAIRED: Final = 16
"""The number of columns whose pairs are looked at: those that differ most."""

Indices = list[NDArray[np.int64]]
"""The values of a feature: an array for each value that outputs were drawn for."""


@dataclass(frozen=True, eq=False)
class Distinction:
    """An event that is expected to be likelier for one value than for another.

    Parameters
    ----------
    feature
        What is looked at.
    chosen
        Which values of the feature belong to the event.
    first, second
        The indices of the likelier and of the other value.

    """

    feature: Feature
    chosen: NDArray[np.bool_]
    first: int
    second: int

    def occurs(self, table: Table) -> NDArray[np.bool_]:
        """Return for each output whether the event has happened."""
        return np.asarray(self.chosen[self.feature.index(table)])


def search(tables: Sequence[Table], epsilon: float, delta: float = 0.0) -> list[Distinction]:
    """Return events that speak most against a claim, and those with the largest sure ratios.

    Parameters
    ----------
    tables
        What was seen of the outputs of each value; all values have equally many.
    epsilon, delta
        The claim.

    """
    scored: list[tuple[float, float, Distinction]] = []
    for feature, indices in _features(tables):
        halves = [np.array_split(own, 2) for own in indices]
        counts = [
            np.array([np.bincount(own[half], minlength=feature.size + 1) for own in halves])
            for half in (0, 1)
        ]
        for first, second in permutations(range(len(tables)), 2):
            ordering, judging = counts[0][[first, second]], counts[1][[first, second]]
            for chosen, against, ratio in _prefixes(ordering, judging, epsilon, delta):
                scored.append((against, ratio, Distinction(feature, chosen, first, second)))
    most_against = sorted(scored, key=lambda each: -each[0])[: EVENTS // 2]
    surest = sorted(scored, key=lambda each: -each[1])[: EVENTS // 2]
    return [event for *_, event in most_against + surest]


def _prefixes(
    ordering: NDArray[np.int64], judging: NDArray[np.int64], epsilon: float, delta: float
) -> Iterator[tuple[NDArray[np.bool_], float, float]]:
    """Yield the two best events of a feature, with what speaks against the claim and for a ratio.

    Parameters
    ----------
    ordering, judging
        How often each value of the feature came in each half, for the two values compared.
    epsilon, delta
        The claim.

    """
    seen = np.flatnonzero(ordering.sum(axis=0))
    ratios = np.diff(np.log(ordering[:, seen] + 0.5), axis=0)[0]
    order = seen[np.argsort(ratios, kind="stable")]
    n = judging.sum(axis=1)
    x, y = np.cumsum(judging[:, order], axis=1).astype(float)
    p, q = (x + 0.5) / (n[0] + 1), (y + 0.5) / (n[1] + 1)
    times = math.exp(epsilon)
    spread = p * (1 - p) / n[0] + times**2 * q * (1 - q) / n[1]
    against = (x / n[0] - delta - times * y / n[1]) / np.sqrt(spread)
    excess = np.maximum(p - delta, 1e-300)
    sure = np.log(excess / q) - 2 * np.sqrt(1 / (x + 0.5) + 1 / (y + 0.5))
    for best in {int(np.argmax(against)), int(np.argmax(sure))}:
        chosen = np.zeros(ordering.shape[1], dtype=bool)
        chosen[order[: best + 1]] = True
        yield chosen, float(against[best]), float(sure[best])


def _features(tables: Sequence[Table]) -> Iterator[tuple[Feature, Indices]]:
    """Yield features of all outputs: columns, pairs of columns, and scores of two values."""
    singles: list[tuple[float, Feature, Indices]] = []
    for name in dict.fromkeys(name for table in tables for name in table):
        for feature in _of_column(name, tables):
            indices = [feature.index(table) for table in tables]
            yield feature, indices
            if feature.size <= FEW and name != WHOLE:
                singles.append((_difference(feature, indices), feature, indices))
    singles.sort(key=lambda each: -each[0])
    for (_, first, own), (_, second, other) in combinations(singles[:PAIRED], 2):
        pairs = [a * (second.size + 1) + b for a, b in zip(own, other, strict=True)]
        yield TwoFeatures(first, second), pairs
    if len(singles) > 2:
        for first_value, second_value in combinations(range(len(tables)), 2):
            yield _score(singles, first_value, second_value)


def _of_column(name: str, tables: Sequence[Table]) -> Iterator[Feature]:
    """Yield the features of one column, if it says anything."""
    columns = [column_of(table, name) for table in tables]
    symbols = np.unique(np.concatenate([column.codes for column in columns]))
    if len(symbols) > 1:
        yield Single(name, symbols)
    if len(symbols) > FEW and (name != WHOLE or columns[0].ordered is not None):
        yield Binned.of(name, columns)


def _first_halves(indices: Indices) -> Indices:
    return [own[: -(-len(own) // 2)] for own in indices]


def _difference(feature: Feature, indices: Indices) -> float:
    """Return the largest difference of a feature's shares for any two values."""
    shares = [np.bincount(own, minlength=feature.size + 1) for own in _first_halves(indices)]
    return max(float(np.abs(a - b).sum()) for a, b in combinations(shares, 2))


def _score(
    singles: Sequence[tuple[float, Feature, Indices]], first: int, second: int
) -> tuple[Feature, Indices]:
    """Return the sum of all columns' log ratios as a feature."""
    weights, learnt = [], []
    for _, feature, indices in singles:
        halves = _first_halves(indices)
        counts = [np.bincount(halves[own], minlength=feature.size + 1) for own in (first, second)]
        weights.append(np.log((counts[0] + 0.5) / (counts[1] + 0.5)))
        learnt.append(np.concatenate(halves))
    score = Score.of([feature for _, feature, _ in singles], weights, learnt)
    values = range(len(singles[0][2]))
    return score, [score.index_of([each[2][value] for each in singles]) for value in values]
