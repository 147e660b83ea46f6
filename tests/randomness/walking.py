"""Sources that hand out chosen words, or follow a path through the choices of a sampler."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sfumato.randomness import (
    Source,
)

__all__ = ["Fork", "Scripted", "Walking", "has_law", "z_of"]


class Scripted(Source):
    """Hands out these words and nothing else."""

    def __init__(self, *blocks: tuple[ArrayLike, str]) -> None:
        self.left = b"".join(np.asarray(words, dtype).tobytes() for words, dtype in blocks)

    def take(self, size: int) -> bytearray:
        assert size <= len(self.left), "more words were asked for than are in the script"
        taken, self.left = self.left[:size], self.left[size:]
        return bytearray(taken)


class Fork(Exception):
    """A choice was reached for which the path has no branch yet."""


class Walking(Source):
    """Follows one path through a sampler's choices; stops where the path ends."""

    def __init__(self, path: Sequence[int]) -> None:
        self.path = iter(path)

    def take(self, size: int) -> bytearray:
        raise AssertionError(f"{size} bytes were taken past the choices")

    def choose(self, *chances: float | Fraction) -> int:
        branch = next(self.path, None)
        if branch is None:
            raise Fork(*chances)
        return branch

    def below(self, k: int, n: int, dtype: Any = np.int64) -> NDArray[Any]:
        assert n == 1
        return np.array([self.choose(*[Fraction(1, k)] * k)], dtype=dtype)

    def rational(
        self, numerator: NDArray[Any] | int, denominator: int, n: int
    ) -> NDArray[np.bool_]:
        assert n == 1
        heads = Fraction(int(np.ravel(numerator)[0]), denominator)
        return np.array([self.choose(1 - heads, heads) == 1])


def has_law(
    sampler: Callable[[Source], NDArray[Any]],
    source: type[Walking],
    exact: Callable[[int], float],
    *,
    cut: float,
) -> None:
    """Add up all paths likelier than `cut`; what they lack of the law lies on the others."""
    law: dict[int, float] = {}
    rest = 0.0
    paths: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while paths:
        path, chance = paths.pop()
        if chance < cut:
            rest += chance
            continue
        try:
            outcome = int(sampler(source(path))[0])
            law[outcome] = law.get(outcome, 0.0) + chance
        except Fork as fork:
            paths += [((*path, i), chance * float(c)) for i, c in enumerate(fork.args) if c]
    assert rest < 4e-3
    for outcome, chance in law.items():
        assert exact(outcome) - rest - 1e-12 < chance < exact(outcome) + 1e-12


def z_of(coins: NDArray[np.bool_], chance: float) -> float:
    return float((coins.mean() - chance) / sqrt(chance * (1 - chance) / coins.size))
