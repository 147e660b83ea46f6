"""The possible relations of two sparse vectors and a third, and who favours which subsets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from itertools import product
from math import comb
from typing import NamedTuple

import numpy as np

from sfumato.arrays import Bools, Floats, Ints
from sfumato.mechanisms.sparse.subset.hits import hits_law

__all__ = ["CoverForm", "Exposed", "Pair", "Walk", "split_at", "splits_of"]


Pair = tuple[int, int]
Walk = tuple[Floats, Callable[[Floats, Sequence[int], int], Floats], Bools]


class Exposed(NamedTuple):
    """The largest share of the subsets favoured by one of two vectors only that a third does not.

    ``splits`` has the numbers of entries that the third vector agrees with and opposes in each
    group: opposite signs, equal signs, the first vector's own, the second vector's own.
    """

    share: float
    splits: tuple[tuple[int, int], ...]


class CoverForm(ABC):
    """Subsets of one size, among vectors of one dimension and sparsity."""

    def __init__(self, dimension: int, sparsity: int, size: int) -> None:
        self.dimension, self.sparsity, self.size = dimension, sparsity, size
        self.apart = cache(self._apart)
        self.exposed = cache(self._exposed)

    @cached_property
    def pairs(self) -> list[Pair]:
        """All ways in which two vectors can differ: numbers of opposite and of equal entries."""
        s = self.sparsity
        return [
            (opposite, agreed)
            for agreed in range(s)
            for opposite in range(s - agreed + 1)
            if 2 * s - agreed - opposite <= self.dimension
        ]

    @property
    @abstractmethod
    def accepted(self) -> float:
        """The share of subsets that one vector favours."""

    @abstractmethod
    def _apart(self, pair: Pair) -> float:
        """Return the share favoured by exactly one of two vectors."""

    @abstractmethod
    def _exposed(self, pair: Pair) -> Exposed:
        """Return the largest part of that share which some third vector does not favour."""

    def kinds(self, pair: Pair) -> dict[tuple[int, ...], int]:
        """Return the number of entries for each pattern of signs in two vectors and a third."""
        opposite, agreed = pair
        own = self.sparsity - opposite - agreed
        splits = self.exposed(pair).splits
        groups = [((1, -1), opposite), ((1, 1), agreed), ((1, 0), own), ((0, 1), own)]
        numbers: dict[tuple[int, ...], int] = {}
        left = self.sparsity
        for (signs, count), (agree, oppose) in zip(groups, splits, strict=True):
            sign = signs[0] or signs[1]
            for third, number in ((sign, agree), (-sign, oppose), (0, count - agree - oppose)):
                if number:
                    numbers[*signs, third] = number
            left -= agree + oppose
        if left:
            numbers[0, 0, 1] = left
        return numbers

    def shares(self, kinds: Mapping[tuple[int, ...], int]) -> dict[tuple[int, ...], float]:
        """Return the base measure of subsets, keyed by which of three vectors favour them.

        Only positive numbers are added and multiplied, so that no digits cancel.
        """
        start, step, favours = self._walk()
        total = sum(kinds.values())
        law = np.zeros((total + 1, *start.shape))  # by the number of entries taken
        law[0] = start
        for signs, number in kinds.items():
            for _ in range(number):
                taken = (step(law[:-1], signs, 1) + step(law[:-1], signs, -1)) / 2
                law[1:] += taken
        # This counts subsets of the entries in use; with the same number of entries, all are
        # equally likely.
        first, chances = hits_law(self.dimension, total, self.size)
        weights = np.zeros(total + 1)
        for number, chance in enumerate(chances.tolist(), first):
            weights[number] = chance / comb(total, number)
        share = np.tensordot(weights, law, 1)
        measure = {}
        for pattern in product((0, 1), repeat=3):
            met = [favours if favour else ~favours for favour in pattern]
            measure[pattern] = float(share[np.ix_(*met)].sum())
        return measure

    @abstractmethod
    def _walk(self) -> Walk:
        """Return the initial agreements, how an entry changes them, and which ones suffice."""


def splits_of(count: int) -> Ints:
    """Return all pairs of numbers (agreeing, opposing) among ``count`` entries."""
    return np.array([(f, g) for f in range(count + 1) for g in range(count + 1 - f)])


def split_at(count: int, index: int) -> tuple[int, int]:
    """Return the pair of numbers (agreeing, opposing) at an index of :func:`splits_of`."""
    agree, oppose = splits_of(count)[index].tolist()
    return agree, oppose
