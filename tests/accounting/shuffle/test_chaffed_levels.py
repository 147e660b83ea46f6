"""Chaff beside reports that say their level: every dataset of a few devices, and wrong dummies."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations_with_replacement, product
from math import comb
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.accounting.shuffle.enumeration import Shuffled

from sfumato import GRR, ExSub, SubsetSelection
from sfumato.accounting.shuffle import Chaff, ChaffedLevels, Levels, delta_above
from sfumato.core.mechanism import Mechanism
from sfumato.streams.weave.dummies import even_chance

Floats = NDArray[np.float64]


def binomial(n: int, chance: float) -> list[float]:
    return [comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(n + 1)]


def law_of(mechanism: Mechanism, held: Any) -> Floats:
    law = mechanism.law(held)
    return np.array([float(Fraction(each, law.denominator)) for each in law.numerators])


def even_law(mechanism: Mechanism) -> Floats:
    """Return the law of dummies: even, but that nothing is told of which stub is sent."""
    part = np.array([law_of(mechanism, held) for held in mechanism.inputs()]).min(axis=0)
    return np.asarray(part / part.sum())


@dataclass(frozen=True)
class Enumerated:
    """All that is seen of n devices, a signal and some dummies each."""

    parts: tuple[tuple[float, Mechanism], ...]
    n: int
    dummies: Fraction
    astray: bool = False
    """Whether all dummies are at the first level."""

    @property
    def epsilon(self) -> float:
        return float(self.parts[0][1].epsilon)

    @cached_property
    def laws(self) -> Floats:
        """The law of a signal for each choice of an input at each level."""
        each = [
            [share * law_of(mechanism, held) for held in mechanism.inputs()]
            for share, mechanism in self.parts
        ]
        return np.array([np.concatenate(rows) for rows in product(*each)])

    @cached_property
    def even(self) -> float:
        return float(sum(share * even_chance(each) for share, each in self.parts))

    @cached_property
    def dummy(self) -> Floats:
        rows = []
        for level, (share, mechanism) in enumerate(self.parts):
            chance = share * float(even_chance(mechanism)) / self.even
            chance = float(level == 0) if self.astray else chance
            rows.append(chance * even_law(mechanism))
        return np.concatenate(rows)

    @property
    def counts(self) -> dict[int, float]:
        certain = self.n * int(self.dummies)
        return {certain + k: p for k, p in enumerate(binomial(self.n, float(self.dummies % 1)))}

    def neighbours(self, number: int) -> Iterator[Floats]:
        bags = Shuffled(self.laws, self.n + number)
        start = np.ones(1)
        for size in range(number):
            start = bags._with(start, size, self.dummy)  # noqa: SLF001
        inputs = range(len(self.laws))
        for others in combinations_with_replacement(inputs, self.n - 1):
            law = start
            for size, held in enumerate(others, number):
                law = bags._with(law, size, self.laws[held])  # noqa: SLF001
            yield np.array(
                [bags._with(law, self.n - 1 + number, self.laws[one]) for one in inputs]  # noqa: SLF001
            )

    def truth(self, epsilon: float) -> float:
        total: list[Floats] = []
        for number, chance in self.counts.items():
            for index, laws in enumerate(self.neighbours(number) if chance else ()):
                apart = laws[:, None, :] - math.exp(epsilon) * laws[None, :, :]
                share = chance * np.maximum(apart, 0).sum(axis=2)
                if index == len(total):
                    total.append(share)
                else:
                    total[index] = total[index] + share
        return max(float(each.max()) for each in total)

    @cached_property
    def chaffed(self) -> ChaffedLevels:
        return ChaffedLevels(Levels(self.parts), Chaff(self.dummies), self.epsilon)

    def bound(
        self, epsilon: float, *, twice: int = 0, expected: bool = False, more: int = 0
    ) -> float:
        """Return the bound as it is proven, or one of its mutants, by all numbers of messages."""
        counts = {round(self.n * float(self.dummies)): 1.0} if expected else self.counts
        return sum(
            chance
            * other
            * delta_above([self.chaffed.contrast], number + k + 1 + twice + more, epsilon)
            for number, chance in counts.items()
            for k, other in enumerate(binomial(self.n - 1, self.even))
        )

    @property
    def epsilons(self) -> list[float]:
        return [part * self.epsilon for part in (0.05, 0.3, 0.6)]


def _one_symbol(epsilon: float, entries: int) -> ExSub:
    return ExSub(epsilon, entries, 1, subset_size=1)


PARTS = [
    tuple((share, mechanism) for share, mechanism in zip((0.5, 0.5), pair, strict=True))
    for epsilon in (0.7, 2.0)
    for pair in (
        (GRR(epsilon, 2), GRR(epsilon, 3)),
        (GRR(epsilon, 2), _one_symbol(epsilon, 1)),
        (SubsetSelection(epsilon, 3, 2), GRR(epsilon, 2)),
    )
]
CASES = [
    Enumerated(parts, n, Fraction(dummies))
    for parts in PARTS
    for n, dummies in ((1, 1), (2, 0), (2, Fraction(1, 2)), (2, 1), (3, Fraction(1, 2)))
]


def test_the_even_part_is_what_all_inputs_send() -> None:
    listed: list[Mechanism] = [each for parts in PARTS for _, each in parts]
    for mechanism in [*listed, SubsetSelection(3.0, 6, 2), ExSub(1.5, 4, 2, subset_size=1)]:
        laws = np.array([law_of(mechanism, held) for held in mechanism.inputs()])
        if isinstance(mechanism, ExSub):
            stubs = 2 * mechanism.sparsity / (2 * mechanism.padded_dimension)
            even = np.where(even_law(mechanism) == even_law(mechanism).max(), stubs, 0.0)
            even[even == 0] = (1 - stubs) / (even.size - 1)
        else:  # a dummy is the report of somebody who holds anything
            even = laws.mean(axis=0)
            assert even == pytest.approx(1 / even.size, rel=1e-9)
        assert even_law(mechanism) == pytest.approx(even, rel=1e-9)
        assert laws.min(axis=0).sum() == pytest.approx(float(even_chance(mechanism)), rel=1e-9)
        (bounding,) = mechanism.contrasts()[0].bounding
        assert float(bounding.chances.sum()) == pytest.approx(float(even_chance(mechanism)))


@pytest.mark.statistics
def test_no_dataset_of_a_few_devices_tells_more_than_is_proven() -> None:
    close = every = 0
    for case in CASES:
        for epsilon in case.epsilons:
            true, bound = case.truth(epsilon), case.bound(epsilon)
            assert true <= bound * (1 + 1e-9) + 1e-12, (case, epsilon)
            assert case.chaffed.delta_among(case.n, epsilon, 0.0) >= true * (1 - 1e-9), case
            close, every = close + (true >= 0.98 * bound), every + 1
    assert close >= 0.5 * every


def _caught(case: Enumerated, **wrong: int) -> bool:
    return any(case.truth(eps) > case.bound(eps, **wrong) * 1.001 for eps in case.epsilons)  # type: ignore[arg-type]


def test_wrong_bounds_are_caught() -> None:
    parts = ((0.5, GRR(2.0, 3)), (0.5, GRR(2.0, 2)))
    case = Enumerated(parts, 2, Fraction(1))
    assert not _caught(case)
    assert _caught(case, twice=1)
    assert _caught(case, more=1)  # the dummy of a third device, which tells it
    half = Enumerated(parts, 2, Fraction(1, 2))
    assert not _caught(half)
    assert _caught(half, expected=True)


def test_dummies_at_one_level_hide_less_than_is_proven() -> None:
    parts = ((0.5, GRR(3.0, 2)), (0.5, GRR(3.0, 3)))
    assert not _caught(Enumerated(parts, 2, Fraction(2)))
    assert _caught(Enumerated(parts, 2, Fraction(2), astray=True))
