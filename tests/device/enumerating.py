"""Every coin a device can toss, one path after the other, with its exact weight."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.randomness import ONE, Source


class Path:
    """One path: what was drawn for each name and place, and how likely all of it is."""

    def __init__(self, choices: list[int]) -> None:
        self.choices = list(choices)
        self.sizes: list[int] = []
        self.weight = Fraction(1)
        self._drawn: dict[Hashable, int] = {}

    def choose(self, name: Hashable, weights: tuple[int, ...]) -> int:
        """Return the choice that this name has on this path; the same whenever it is asked."""
        if name not in self._drawn:
            if len(self.sizes) == len(self.choices):
                self.choices.append(0)
            drawn = self.choices[len(self.sizes)]
            self.sizes.append(len(weights))
            self.weight *= Fraction(weights[drawn], sum(weights))
            self._drawn[name] = drawn
        return self._drawn[name]


class Tape(Source):
    """Keyed coins as an ideal: independent for each name, the same for the same name."""

    def __init__(self, path: Path, *name: Hashable) -> None:
        self._path, self._name, self._place = path, name, 0

    def _choose(self, weights: tuple[int, ...]) -> int:
        self._place += 1
        return self._path.choose((self._name, self._place), weights)

    def take(self, size: int) -> bytearray:
        raise AssertionError(f"{size} bytes are drawn; only whole choices can be listed.")

    def bound(self, code: Iterable[int]) -> Source:
        return Tape(self._path, *self._name, tuple(code))

    def bernoulli(self, threshold: int, n: int) -> NDArray[np.bool_]:
        return np.array([self._choose((ONE - threshold, threshold)) == 1 for _ in range(n)])

    def below(self, k: int, n: int, dtype: Any = np.int64) -> NDArray[Any]:
        return np.array([self._choose((1,) * k) for _ in range(n)], dtype=dtype)

    def subsets(self, k: int, m: int, n: int) -> NDArray[Any]:
        every = list(combinations(range(k), m))
        return np.array([every[self._choose((1,) * len(every))] for _ in range(n)])


class PeriodTape(Tape):
    """Coins that follow from the period alone, as those of format 1 did."""

    def bound(self, code: Iterable[int]) -> Source:
        del code
        return self


def law_of(run: Callable[[Path], Hashable]) -> dict[Any, Fraction]:
    """Return the exact law of what is returned, over all coins."""
    law: dict[Any, Fraction] = defaultdict(Fraction)
    left: list[list[int]] = [[]]
    while left:
        before = left.pop()
        path = Path(before)
        outcome = run(path)
        law[outcome] += path.weight
        for place in range(len(before), len(path.sizes)):
            left += [[*path.choices[:place], other] for other in range(1, path.sizes[place])]
    assert sum(law.values()) == 1
    return {outcome: chance for outcome, chance in law.items() if chance}
