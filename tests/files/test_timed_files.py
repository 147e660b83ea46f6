"""Values by time: what neighbouring files show, read by the code that reads files of curators."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.arrays import Ints
from sfumato.files.published_files import Origin
from sfumato.files.time_axis import TimeAxis
from sfumato.files.timed_files import timed_values
from sfumato.mechanisms.central import NoisyMax
from sfumato.randomness import seeded
from sfumato.streams.published import PublishingPlan, periods, plan_periods
from sfumato.streams.published.amounts import Amounts
from sfumato.streams.published.noise_tree import Tree
from sfumato.streams.published.periods import TimedValues, publish_periods
from sfumato.streams.published.thresholds import Fixed

EPSILON = 2.0
BOUND = 3
AMOUNTS = Amounts(float(BOUND), 1.0, "clip")
FIRST, SECOND, THIRD = "2026-03-28", "2026-03-29T23:30", "2026-03-30T00:00+02:00"
NOWHERE = ("2026-04-01", "yesterday")
Row = tuple[str, str]
ROWS: list[Row] = [(FIRST, "1"), *((at, "3") for at in (FIRST, SECOND, THIRD, *NOWHERE))]
"""Some rows: in three days of Berlin, on a day that is in no period, and without a time."""


@pytest.fixture(autouse=True)
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees add nothing: what they would add has a known law."""

    def draw(tree: Tree, *_: Any) -> list[Ints]:
        return [np.zeros(tree.fanout**depth, dtype=np.int64) for depth in range(tree.layers)]

    monkeypatch.setattr(Tree, "draw", draw)
    monkeypatch.setattr(Tree, "together", 1)


READ: dict[tuple[str, tuple[Row, ...]], TimedValues] = {}


def read(folder: Path, times: Any, rows: tuple[Row, ...]) -> TimedValues:
    """Return what the real code reads in a file with these rows, once for all tests."""
    if (times, rows) not in READ:
        path = folder / "rows.csv"
        path.write_text("at,fare\n" + "".join(f"{at},{fare}\n" for at, fare in rows))
        axis = TimeAxis("at", "1d", "2026-03-28", "2026-03-30", "Europe/Berlin", times)
        READ[times, rows] = timed_values(Origin(path), axis, AMOUNTS)
    return READ[times, rows]


class Reader:
    """Reads made-up files, and knows what each tells about the threshold and the sums."""

    def __init__(self, folder: Path, release: PublishingPlan, most: int | None = None) -> None:
        self.release, self._folder, self._most = release, folder, most
        self._known: dict[tuple[Row, ...], tuple[dict[int, float], dict[int, Ints]]] = {}

    def of(self, rows: tuple[Row, ...]) -> tuple[dict[int, float], dict[int, Ints]]:
        """Return the probability of each threshold, and the sums of all nodes if it is chosen."""
        if rows not in self._known:
            values = read(self._folder, self.release.times, rows)
            chances = chosen(self.release, values.units)
            sums = {cut: self._nodes(values, cut) for cut in chances}
            self._known[rows] = chances, sums
        return self._known[rows]

    def _nodes(self, values: TimedValues, cut: int) -> Ints:
        """Return the sums of the nodes of all layers, from what is published if noise is zero."""
        known = replace(self.release, threshold=Fixed(cut), holdout=0)
        whole = publish_periods(known, bytes(32), values, self._most).sums
        tree: Any = self.release.tree
        fanout, layers = tree.fanout, tree.layers
        sizes = [fanout**layer for layer in range(layers)]
        return np.concatenate(
            [np.add.reduceat(whole, np.arange(0, whole.size, size)) for size in sizes]
        ).astype(np.int64)

    def loss(self, one: tuple[Row, ...], other: tuple[Row, ...]) -> float:
        """Return the log of the largest ratio of the two files' probabilities of any output."""
        (mine, sums), (theirs, others) = self.of(one), self.of(other)
        losses = []
        for cut in mine:
            shift = int(np.abs(sums[cut] - others[cut]).sum())
            nodes = float(rate_of(self.release, cut) * shift)
            losses.append(math.log(mine[cut] / theirs[cut]) + nodes)
        return max(losses)


def rate_of(release: PublishingPlan, cut: int) -> Fraction:
    law: Any = release.noise(cut)
    return Fraction(law.rate)


def chosen(release: PublishingPlan, units: Ints) -> dict[int, float]:
    """Return the law of the threshold, from the scores that the real choice is made by."""
    if isinstance(release.threshold, Fixed):
        return {release.threshold.threshold: 1.0}
    asked: list[tuple[NoisyMax, Ints]] = []

    def select(noise: NoisyMax, scores: Ints, _: Any) -> int:
        asked.append((noise, scores))
        return 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NoisyMax, "select", select)
        release.threshold.choose(units, BOUND, seeded(1))
    [(noise, scores)] = asked
    assert noise.noise == "geometric"
    return law(float(noise.rate), tuple(scores.tolist()))


@cache
def law(rate: float, scores: tuple[int, ...]) -> dict[int, float]:
    """Return the probability that each threshold has the largest score after geometric noise."""
    z = np.arange(int(40 / rate))
    chances = {}
    for mine, score in enumerate(scores):
        total = -math.expm1(-rate) * np.exp(-rate * z)
        for other, rival in enumerate(scores):
            if other != mine:
                reach = score + z - rival - (other < mine)
                total *= np.where(reach >= 0, -np.expm1(-rate * (reach + 1)), 0)
        chances[mine + 1] = float(total.sum())
    assert sum(chances.values()) == pytest.approx(1, abs=1e-9)
    return chances


def plans(times: str) -> Iterator[PublishingPlan]:
    """Yield the plan for three rows and days, with its own tree, and with a tree of two layers."""
    own = plan_periods(times, epsilon=EPSILON, bound=BOUND, rows=3, periods=3)
    yield own
    yield replace(own, tree=Tree(2, 2))


def files(times: str) -> list[tuple[Row, ...]]:
    if times == "private":
        return list(itertools.combinations_with_replacement(ROWS, 3))
    at = (FIRST, FIRST, SECOND)
    return [tuple(zip(at, values, strict=True)) for values in itertools.product("013", repeat=3)]


def neighbours(times: str) -> Iterator[tuple[tuple[Row, ...], tuple[Row, ...]]]:
    """Yield files that differ in one row, whose other rows have come in another order as well."""
    there = files(times)
    if times == "private":
        for first, *rest in ((row, *file) for row in ROWS for file in {f[1:] for f in there}):
            for row in ROWS:
                if row != first:
                    yield tuple(sorted((first, *rest))), tuple(sorted((row, *rest), reverse=True))
    else:
        for one, other in itertools.permutations(there, 2):
            if sum(a != b for a, b in zip(one, other, strict=True)) == 1:
                yield one, other[::-1]


def worst(reader: Reader) -> float:
    return max(reader.loss(*pair) for pair in neighbours(reader.release.times))


@pytest.mark.parametrize("most", [None, 1, 2])
def test_a_row_that_is_moved_changed_or_made_invalid_is_private(
    tmp_path: Path, most: int | None
) -> None:
    for release in plans("private"):
        assert worst(Reader(tmp_path, release, most)) <= EPSILON * (1 + 1e-9)
        known = replace(release, threshold=Fixed(2), holdout=0, reuse=0.0)
        assert worst(Reader(tmp_path, known, most)) == pytest.approx(EPSILON)  # it is attained


def test_with_public_times_values_are_private_and_have_half_the_noise(tmp_path: Path) -> None:
    for release, moving in zip(plans("public"), plans("private"), strict=True):
        assert worst(Reader(tmp_path, release)) <= EPSILON * (1 + 1e-9)
        known = replace(release, threshold=Fixed(2), holdout=0, reuse=0.0)
        assert worst(Reader(tmp_path, known)) == pytest.approx(EPSILON)
        sizes = release.tree.changes, moving.tree.changes
        assert rate_of(release, 7) * sizes[0] == 2 * rate_of(moving, 7) * sizes[1]


@pytest.mark.parametrize("times", ["private", "public"])
def test_rows_in_any_order_say_the_same(tmp_path: Path, times: str) -> None:
    reader = Reader(tmp_path, next(plans(times)), 1 if times == "private" else None)
    for rows in files(times)[::5]:
        chances, sums = reader.of(rows)
        for order in itertools.permutations(rows):
            others = reader.of(order)
            assert others[0] == chances
            assert all((others[1][cut] == sums[cut]).all() for cut in sums)


# ---- wrong ways ---------------------------------------------------------------------------------


def first_of_the_file(units: Ints, places: Ints, count: int, most: int | None = None) -> Ints:
    sums, seen = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for value, period in zip(units.tolist(), places.tolist(), strict=True):
        if period >= 0 and (most is None or seen[period] < most):
            sums[period] += value
            seen[period] += 1
    return sums


def none_if_too_many(units: Ints, places: Ints, count: int, most: int | None = None) -> Ints:
    sums = first_of_the_file(units, places, count)
    sizes = np.bincount(places[places >= 0], minlength=count)
    return sums if most is None else np.where(sizes > most, 0, sums)


@pytest.mark.parametrize("wrong", [first_of_the_file, none_if_too_many])
def test_another_treatment_of_too_many_values_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: Any
) -> None:
    monkeypatch.setattr(periods, "period_sums", wrong)
    known = replace(next(plans("private")), threshold=Fixed(3), holdout=0, reuse=0.0)
    assert worst(Reader(tmp_path, known)) <= EPSILON * (1 + 1e-9)  # without a maximum it is right
    assert worst(Reader(tmp_path, known, 1 + (wrong is none_if_too_many))) > EPSILON * 1.2


def test_forgetting_that_a_row_is_in_two_periods_is_caught(tmp_path: Path) -> None:
    wrong = next(plans("public"))  # whose noise is for one period
    reader = Reader(tmp_path, wrong)
    moved = (
        ((FIRST, "3"), (FIRST, "3"), (SECOND, "3")),
        ((FIRST, "3"), (SECOND, "3"), (SECOND, "3")),
    )
    assert reader.loss(*moved) > EPSILON * 1.2
