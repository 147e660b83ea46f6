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

from sfumato import GRR, Collision, Concord
from sfumato.accounting.shuffle import BatchedReport, Levels, amplify, composed, delta_above
from sfumato.accounting.shuffle.covered import covered_epsilon
from sfumato.accounting.shuffle.named_bounds import stronger_clones
from sfumato.core.contrast import (
    Contrast,
    Contrasts,
    Cover,
    Covering,
    favoured,
    listed,
    mixed,
)
from sfumato.core.law import Law
from sfumato.core.mechanism import Mechanism
from sfumato.errors import ConfigurationError

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
    bounding = as_levels(levels).contrasts()[0].bounding
    assert delta_above(bounding, 2, epsilon) >= true
    # Each contrast is used as it is: no level counts as one of which only epsilon is known.
    clones = [stronger_clones(table.worst_ratio) for _, table in levels]
    assert delta_above(bounding, 2, epsilon) < 0.8 * delta_above(clones, 2, epsilon)


def test_a_report_alone_tells_exactly_what_the_levels_say() -> None:
    rng = np.random.default_rng(502)
    for _ in range(20):
        levels = drawn_levels(rng)
        epsilon = 0.3 * math.log(max(table.worst_ratio for _, table in levels))
        (true,) = Shuffled(all_laws(levels), 1).deltas([epsilon])
        bound = delta_above(as_levels(levels).contrasts()[0].bounding, 1, epsilon)
        assert bound == pytest.approx(true, rel=0.01, abs=1e-9)


def test_many_levels_of_one_mechanism_may_come_in_different_orders() -> None:
    """Levels that are alike are not one level: each has an order of its own."""
    table, n = Table(((1, 19), (8, 12))), 2
    levels = [(0.25, table)] * 4
    local = math.log(table.worst_ratio)
    epsilons = [0.2 * local, 0.45 * local]
    true = Shuffled(all_laws(levels), n).deltas(epsilons)
    bounding = as_levels(levels).contrasts()[0].bounding
    assert len(bounding) == 5  # by how many of the four come in the first order
    for epsilon, least in zip(epsilons, true, strict=True):
        assert delta_above(bounding, n, epsilon) >= least * (1 - 1e-9)


def test_too_many_orders_to_go_through_are_bounded_together() -> None:
    rng = np.random.default_rng(503)
    levels = [(1 / 8, drawn_table(rng)) for _ in range(8)]
    bounding = as_levels(levels).contrasts()[0].bounding
    assert len(bounding) <= 64
    local = math.log(max(table.worst_ratio for _, table in levels))
    for _ in range(5):
        orders = rng.integers(0, 2, 8)
        pair = mixed(
            (share, [contrast, contrast.swapped][order])
            for order, (share, table) in zip(orders, levels, strict=True)
            for contrast in table.contrasts()[0].bounding
        )
        for n, epsilon in ((2, 0.3 * local), (20, 0.1 * local)):
            assert delta_above([pair], n, epsilon) <= delta_above(bounding, n, epsilon) * (1 + 1e-9)


def test_chances_are_the_fractions_that_are_meant() -> None:
    thirds = [(Fraction(1, 3), GRR(1.0, kinds)) for kinds in (2, 3, 4)]
    rounded = [(float(chance), mechanism) for chance, mechanism in thirds]
    for levels in (Levels(thirds), Levels(rounded)):
        (contrast,) = levels.contrasts()[0].bounding
        mean = float(contrast.chances @ contrast.first)
        assert mean == pytest.approx(1.0, abs=1e-12)
    with pytest.raises(ConfigurationError, match=r"sum to 0\.9"):
        Levels([(Fraction(9, 10), GRR(1.0, 4))])


# ---- what others' own reports cover -------------------------------------------------------------


@dataclass(frozen=True)
class Favouring:
    """A mechanism that favours some of a few equally likely reports by a ratio of 2."""

    favours: tuple[tuple[int, ...], ...]
    accepted: float
    apart: float
    exposed: float

    @property
    def worst_ratio(self) -> Fraction:
        return Fraction(2)

    @property
    def laws(self) -> Floats:
        weights = np.where(np.array(self.favours), 2.0, 1.0)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def contrasts(self) -> tuple[Contrasts, ...]:
        a, m = self.accepted, self.apart
        pair = favoured(2, {(1, 0): m, (0, 1): m, (1, 1): a - m, (0, 0): 1 - a - m})
        cover = Cover(Fraction(2), a, m, self.exposed)
        return (Contrasts((pair,), (), covering=lambda: Covering(cover, ())),)


TWO = Favouring(((1, 0), (0, 1)), 1 / 2, 1 / 2, 1 / 2)
OTHER = Favouring(((0, 1), (1, 0)), 1 / 2, 1 / 2, 1 / 2)


def divergence(laws: Floats, others: Sequence[int], one: int, two: int, epsilon: float) -> float:
    """Return the exact divergence if so many others hold each input, from all counts."""
    size, axes = sum(others) + 2, laws.shape[1] - 1
    points = np.exp(-2j * np.pi * np.arange(size) / size)
    z = np.meshgrid(*[points] * axes, indexing="ij", sparse=True)
    shapes = {
        held: sum(laws[held][axis] * z[axis] for axis in range(axes)) + laws[held][-1]
        for held in (one, two, *(held for held, count in enumerate(others) if count))
    }
    total = shapes[one] - math.exp(epsilon) * shapes[two]
    for held, count in enumerate(others):
        if count:
            total = total * shapes[held] ** count
    return float(np.maximum(np.fft.ifftn(total).real, 0).sum())


def test_what_others_cover_at_all_levels_stays_above_the_truth() -> None:
    shares, n, delta = (0.6, 0.4), 150, 1e-3
    levels = Levels(cast("Any", list(zip(shares, (TWO, OTHER), strict=True))))
    (known,) = levels.contrasts()
    assert known.cover is not None
    epsilon = covered_epsilon(known.cover, n, delta, math.log(2))
    assert (
        delta_above(known.bounding, n, epsilon) > 1.05 * delta
    )  # more than the plain blanket says
    held = list(product(range(2), range(2)))
    laws = np.array(
        [
            np.concatenate([shares[0] * TWO.laws[first], shares[1] * OTHER.laws[second]])
            for first, second in held
        ]
    )
    crowds = [[n - 1, 0, 0, 0], [0, n - 1, 0, 0], [50, 0, 0, 99], [0, 75, 74, 0]]
    pairs = [(0, 3), (0, 1), (1, 2)]
    truth = [divergence(laws, crowd, *pair, epsilon) for crowd in crowds for pair in pairs]
    assert 0.4 * delta < max(truth) <= delta


def test_covers_are_used_where_all_levels_favour_by_one_ratio() -> None:
    alike = Levels([(0.5, GRR(1.0, 2)), (0.5, Concord(1.0, 64, 4))])
    bounds = {each.bound: each.epsilon for each in amplify(alike, 10_000, 1e-6)}
    covered, blanket = bounds["covered_blanket"], bounds["blanket"]
    assert covered is not None
    assert blanket is not None
    assert covered < 0.9 * blanket
    for other in (Concord(1.1, 64, 4), Collision(1.0, 64, 4)):
        assert Levels([(0.5, GRR(1.0, 2)), (0.5, other)]).contrasts()[0].cover is None


def apart(first: Sequence[Floats], second: Sequence[Floats], epsilon: float) -> float:
    """Return how far what is seen of two batches may be apart, over all datasets of both.

    A person's value at each of the two batches may be any, so all pairs are compared.
    """
    ones, twos = (
        np.concatenate([pair.reshape(-1, 2, pair.shape[-1]) for pair in map(_pairs, batch)])
        for batch in (first, second)
    )
    worst = 0.0
    for one in ones:
        over = one[0][:, None] * twos[:, 0, None] - math.exp(epsilon) * (
            one[1][:, None] * twos[:, 1, None]
        )
        worst = max(worst, float(np.maximum(over, 0).sum(axis=(1, 2)).max()))
    return worst


def _pairs(laws: Floats) -> Floats:
    """Return the laws of each ordered pair of the one's inputs."""
    return np.array([[a, b] for a in laws for b in laws])


@pytest.mark.statistics
@pytest.mark.parametrize("cases", [2, pytest.param(500, marks=pytest.mark.slow)])
def test_compositions_are_at_or_above_the_truth_in_drawn_cases(cases: int) -> None:
    rng = np.random.default_rng(501)
    for _ in range(cases):
        levels = [drawn_levels(rng) for _ in range(2)]
        n = 2
        batches = [list(Shuffled(all_laws(each), n).neighbours()) for each in levels]
        epsilon = 0.4 * sum(
            math.log(max(table.worst_ratio for _, table in each)) for each in levels
        )
        worst = apart(batches[0], batches[1], epsilon)
        if worst > 1e-9:
            reports = [BatchedReport(as_levels(each), n) for each in levels]
            assert composed(reports, worst * (1 - 1e-9)) >= epsilon * (1 - 1e-9), levels
