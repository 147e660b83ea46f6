"""Levels and compositions of random small laws, most of them not symmetric, against the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.accounting.shuffle.enumeration import Shuffled

from sfumato.accounting.shuffle import BatchedReport, Levels, composed, delta_above
from sfumato.core.contrast import Contrast, Contrasts, listed, mixed
from sfumato.core.law import Law
from sfumato.core.mechanism import Mechanism

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """A mechanism of two inputs with any law."""

    rows: tuple[tuple[int, ...], tuple[int, ...]]

    def inputs(self) -> Sequence[int]:
        return (0, 1)

    def publics(self) -> Sequence[None]:
        return (None,)

    def laws(self, value: int) -> list[Law]:
        row = self.rows[value]
        return [Law(np.arange(len(row)), row, sum(row))]

    @cached_property
    def chances(self) -> list[list[Fraction]]:
        return [[Fraction(weight, sum(row)) for weight in row] for row in self.rows]

    @property
    def worst_ratio(self) -> Fraction:
        first, second = self.chances
        ratios = [a / b for a, b in zip(first, second, strict=True)]
        return max(*ratios, *(1 / ratio for ratio in ratios))

    def contrasts(self) -> tuple[Contrasts, ...]:
        return listed(cast("Mechanism", self))


def drawn_table(rng: np.random.Generator) -> Table:
    kinds = int(rng.integers(2, 4))
    first, second = (tuple(rng.integers(1, 21, kinds).tolist()) for _ in range(2))
    return Table((first, second))


def drawn_levels(rng: np.random.Generator) -> list[tuple[float, Table]]:
    count = int(rng.integers(1, 3))
    weights = rng.integers(1, 5, count)
    shares = [float(weight / weights.sum()) for weight in weights]
    return [(share, drawn_table(rng)) for share in shares]


def all_laws(levels: Sequence[tuple[float, Table]]) -> Floats:
    """Return the law of every value: one input at each level, in all combinations."""
    rows = [
        np.concatenate(
            [
                share * np.array(table.chances[held], dtype=float)
                for held, (share, table) in zip(value, levels, strict=True)
            ]
        )
        for value in product((0, 1), repeat=len(levels))
    ]
    return np.array(rows)


def as_levels(levels: Sequence[tuple[float, Table]]) -> Levels:
    return Levels(cast("Any", levels))


def in_one_order(levels: Sequence[tuple[float, Table]]) -> Contrast:
    """Return what a bound would use that takes each level's pair in the order it comes in."""
    return mixed([(share, table.contrasts()[0].bounding[0]) for share, table in levels])


@pytest.mark.parametrize("cases", [50, pytest.param(500, marks=pytest.mark.slow)])
def test_levels_are_at_or_above_the_truth_in_drawn_cases(cases: int) -> None:
    rng = np.random.default_rng(500)
    caught = 0
    for _ in range(cases):
        levels, n = drawn_levels(rng), int(rng.integers(1, 4))
        local = math.log(max(table.worst_ratio for _, table in levels))
        epsilons = [local * part for part in (0.15, 0.5, 0.8)]
        true = Shuffled(all_laws(levels), n).deltas(epsilons)
        bounding = as_levels(levels).contrasts()[0].bounding
        for epsilon, least in zip(epsilons, true, strict=True):
            assert delta_above(bounding, n, epsilon) >= least * (1 - 1e-9), (levels, n, epsilon)
            caught += delta_above([in_one_order(levels)], n, epsilon) < least * (1 - 1e-6)
    assert caught >= cases // 50  # a bound that forgets the other order is found out


def test_two_levels_in_opposite_orders_hold_what_is_true() -> None:
    one = Table(((1, 19), (8, 12)))
    levels = [(0.5, one), (0.5, Table((one.rows[1], one.rows[0])))]
    epsilon = 0.963
    (true,) = Shuffled(all_laws(levels), 2).deltas([epsilon])
    assert true == pytest.approx(0.175, abs=0.001)
    assert delta_above(as_levels(levels).contrasts()[0].bounding, 2, epsilon) >= true


@pytest.mark.statistics
@pytest.mark.parametrize("cases", [2, pytest.param(40, marks=pytest.mark.slow)])
def test_compositions_are_at_or_above_the_truth_in_drawn_cases(cases: int) -> None:
    rng = np.random.default_rng(501)
    for _ in range(cases):
        levels = [drawn_levels(rng) for _ in range(2)]
        n = 2
        batches = [list(Shuffled(all_laws(each), n).neighbours()) for each in levels]
        worst = 0.0
        epsilon = 0.4 * sum(
            math.log(max(table.worst_ratio for _, table in each)) for each in levels
        )
        for first, second in product(*batches):
            # One person's value at each of the two batches may be any, so all pairs are compared.
            for a, b in product(range(len(first)), repeat=2):
                for c, d in product(range(len(second)), repeat=2):
                    both = np.outer(first[a], second[c]), np.outer(first[b], second[d])
                    over = np.maximum(both[0] - math.exp(epsilon) * both[1], 0).sum()
                    worst = max(worst, float(over))
        if worst > 1e-9:
            reports = [BatchedReport(as_levels(each), n) for each in levels]
            assert composed(reports, worst * (1 - 1e-9)) >= epsilon * (1 - 1e-9), levels
