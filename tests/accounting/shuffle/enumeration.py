"""The privacy loss of shuffled reports of a few people, found by listing every outcome."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from itertools import combinations_with_replacement
from math import comb

import numpy as np
from numpy.typing import NDArray

from sfumato.core.mechanism import Mechanism

__all__ = ["Shuffled", "laws_of"]

Floats = NDArray[np.float64]


@cache
def laws_of(mechanism: Mechanism) -> Floats:
    """Return the law of every input (a row); reports that say the same are one column."""
    publics, alike = len(mechanism.publics()), Counter[tuple[tuple[int, ...], tuple[int, ...]]]()
    for laws in zip(*map(mechanism.laws, mechanism.inputs()), strict=True):
        wholes = tuple(law.denominator for law in laws)
        columns_of = zip(*(law.numerators for law in laws), strict=True)
        alike.update((numerators, wholes) for numerators in columns_of)
    columns: dict[tuple[Fraction, ...], Fraction] = {}
    for (numerators, wholes), count in alike.items():
        chances = [*map(Fraction, numerators, wholes)]
        if total := sum(chances, Fraction(0)):
            shape = tuple(chance / total for chance in chances)
            columns[shape] = columns.get(shape, Fraction(0)) + total * count / publics
    return np.array([[float(part * total) for part in shape] for shape, total in columns.items()]).T


@dataclass(frozen=True)
class Shuffled:
    """The exact law of n people's shuffled reports."""

    laws: Floats
    n: int

    @classmethod
    def largest(cls, laws: Floats, work: int, most: int = 6) -> Shuffled:
        """Return as many people as can be listed with so much work."""

        def cost(n: int) -> int:
            inputs, kinds = laws.shape
            bags, datasets = comb(n + kinds - 1, n), comb(n - 2 + inputs, n - 1)
            return int(bags * datasets * inputs * inputs)

        return cls(laws, max(n for n in range(1, most + 1) if n <= 2 or cost(n) <= work))

    @cached_property
    def _bags(self) -> list[list[tuple[int, ...]]]:
        kinds = range(self.laws.shape[1])
        return [list(combinations_with_replacement(kinds, size)) for size in range(self.n + 1)]

    @cached_property
    def _grown(self) -> list[NDArray[np.int64]]:
        """Which bag results if a report of each kind is added to a bag."""
        places = [{bag: index for index, bag in enumerate(bags)} for bags in self._bags]
        return [
            np.array(
                [
                    [
                        places[size + 1][tuple(sorted((*bag, kind)))]
                        for kind in range(self.laws.shape[1])
                    ]
                    for bag in self._bags[size]
                ]
            )
            for size in range(self.n)
        ]

    def _with(self, bags: Floats, size: int, law: Floats) -> Floats:
        found = np.zeros(len(self._bags[size + 1]))
        np.add.at(found, self._grown[size], np.outer(bags, law))
        return found

    def neighbours(self) -> Iterator[Floats]:
        """Yield, for every choice of the others' inputs, the law of all reports by the one's."""
        inputs = range(self.laws.shape[0])
        for others in combinations_with_replacement(inputs, self.n - 1):
            bags = np.ones(1)
            for size, held in enumerate(others):
                bags = self._with(bags, size, self.laws[held])
            yield np.array([self._with(bags, self.n - 1, law) for law in self.laws])

    def deltas(self, epsilons: Sequence[float]) -> Floats:
        """Return the largest divergence over all neighbouring datasets, in both directions."""
        worst = np.zeros(len(epsilons))
        for laws in self.neighbours():
            for index, epsilon in enumerate(epsilons):
                apart = laws[:, None, :] - np.exp(epsilon) * laws[None, :, :]
                worst[index] = max(worst[index], np.maximum(apart, 0).sum(axis=2).max())
        return worst
