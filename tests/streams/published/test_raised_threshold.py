"""The default threshold: private by enumeration, and never far from that of an oracle."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.errors import ConfigurationError
from sfumato.mechanisms.central import DiscreteLaplace
from sfumato.randomness import seeded
from sfumato.streams.published import thresholds
from sfumato.streams.published.publishing_methods import plan
from sfumato.streams.published.publishing_plan import PublishingPlan
from sfumato.streams.published.thresholds import RaisedThreshold, ScaleFree

Ints = NDArray[np.int64]

VALUES = 300_000
BOUND = 1 << 20

# ---- privacy ---------------------------------------------------------------------------------

TINY = 8  # the bound of the enumerated universe: with a first threshold of 1, one octave is far


def winners(threshold: ScaleFree, values: Ints) -> NDArray[np.float64]:
    """Return the probability that noisy max takes each candidate, to 1e-12."""
    grid = thresholds.candidates(TINY, all_integers=False)
    cost = np.rint(1024 * threshold.weight * np.log(grid)).astype(np.int64)
    scores = -cost - 1024 * (values[:, None] > grid).sum(axis=0)
    rate = threshold.epsilon / 1024
    reach = np.arange(int(30 / rate) + int(np.ptp(scores)))
    chance = -np.expm1(-rate) * np.exp(-rate * reach)
    won = []
    for mine, score in enumerate(scores):
        below = score + reach[:, None] - scores - (np.arange(grid.size) < mine)
        others = np.where(below >= 0, -np.expm1(-rate * (below + 1)), 0.0)
        others[:, mine] = 1
        won.append(float((chance * others.prod(axis=1)).sum()))
    assert sum(won) == pytest.approx(1, abs=1e-12)
    return np.array(won)


def noise_law(noise: DiscreteLaplace, around: int) -> NDArray[np.float64]:
    """Return the law of a count with noise, on whole numbers from -150 to 150."""
    rate = float(noise.law().rate)
    reach = np.abs(np.arange(-150, 151) - around)
    return np.asarray(np.tanh(rate / 2) * np.exp(-rate * reach))


def law(threshold: RaisedThreshold, values: Ints) -> NDArray[np.float64]:
    """Return the probability of each threshold, by enumeration of what every look sees."""
    grid = thresholds.candidates(TINY, all_integers=False)
    outcome = winners(threshold.scored, values)
    seen = noise_law(threshold.counted, int((values > 4).sum()))
    cell = noise_law(threshold.located, int((values > 4).sum()))
    raised = float(seen @ _raised(threshold) @ cell) * outcome[0]
    return np.asarray(outcome + raised * ((grid == TINY).astype(float) - (grid == 1)))


@cache
def _raised(threshold: RaisedThreshold) -> NDArray[np.float64]:
    """Return for each count and each cell whether a first threshold of 1 is raised."""

    def raised(seen: int, cell: int) -> bool:
        return threshold.raised(1, seen, np.array([0, 0, cell]), TINY) > 1

    counts = range(-150, 151)
    enough = np.array([raised(seen, 150) for seen in counts])
    full = np.array([raised(150, cell) for cell in counts])
    table = np.outer(enough, full)
    for seen, cell in seeded(1).simulator().integers(-150, 151, (300, 2)).tolist():
        assert table[seen + 150, cell + 150] == raised(seen, cell)
    return table.astype(np.float64)


def worst_ratio(threshold: RaisedThreshold) -> float:
    """Return the largest logarithm of a ratio of probabilities between neighbouring streams."""
    universe = (0, 1, 2, 5, 8)
    laws = {
        values: law(threshold, np.array(values))
        for values in itertools.combinations_with_replacement(universe, 2)
    }
    return max(
        float(np.abs(np.log(laws[pair(one, rest)] / laws[pair(other, rest)])).max())
        for rest in universe
        for one, other in itertools.combinations(universe, 2)
    )


def pair(one: int, other: int) -> tuple[int, int]:
    return min(one, other), max(one, other)


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_no_threshold_tells_more_than_epsilon_of_any_value(epsilon: float) -> None:
    threshold = RaisedThreshold(epsilon, weight=1.0, above=0.5)
    assert worst_ratio(threshold) <= epsilon


class Careless(RaisedThreshold):
    """Counts as if changing a value moved no count by more than a tenth."""

    @cached_property
    def counted(self) -> DiscreteLaplace:
        return DiscreteLaplace(10 * self.epsilon, 1)


def test_the_enumeration_sees_too_little_noise() -> None:
    assert worst_ratio(Careless(1.0, weight=1.0, above=0.5)) > 1


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 1 / 3, 7.77])
@pytest.mark.parametrize("share", [0.36, 0.1, 1 / 3])
def test_the_looks_never_use_more_than_epsilon(epsilon: float, share: float) -> None:
    looks = RaisedThreshold(epsilon, 1.0, 1.0, share)
    parts = [looks.scored.epsilon, looks.counted.epsilon, looks.located.epsilon]
    assert sum(Fraction(repr(part)) for part in parts) <= Fraction(repr(epsilon))
    assert sum(parts) == pytest.approx(epsilon)


def test_one_value_moves_the_count_by_one_and_two_cells_by_one() -> None:
    """Which is what the noise of the second and the third look is made for."""
    draw = seeded(5).simulator()
    values = (10 * draw.pareto(0.7, 500)).astype(np.int64).clip(0, BOUND)
    edges = thresholds.octaves(BOUND)

    def cells(of: Ints) -> Ints:
        return np.diff(np.searchsorted(np.sort(of), edges, side="right"))

    moved = 0
    for _ in range(200):
        other = values.copy()
        other[draw.integers(500)] = min(int(10 * draw.pareto(0.7)), BOUND)
        step = np.abs(cells(values) - cells(other))
        moved = max(moved, int(step.sum()))
        assert step.sum() <= 2
        assert all(abs((cells(values) - cells(other))[at:].sum()) <= 1 for at in range(step.size))
    assert moved == 2


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0])
def test_noise_alone_raises_one_threshold_in_ten_thousand(epsilon: float) -> None:
    """And 47 / epsilon values far above are enough to be seen, where the documentation says so."""
    looks = RaisedThreshold(epsilon, weight=1.0, above=1.0)
    empty, full = np.zeros(20, dtype=np.int64), np.zeros(20, dtype=np.int64)
    full[18] = 10**6  # so that a raise always pays
    least = next(n for n in range(10**5) if looks.raised(1, n, full, BOUND) > 1)
    assert least <= 47.4 / epsilon + 2  # a whole number, and noise in whole steps
    x = math.exp(-float(looks.counted.law().rate))
    assert x**least / (1 + x) <= 1e-4 < x ** (least - 1) / (1 + x)  # P[noise >= least], and before
    assert looks.raised(1, least - 1, empty, BOUND) == 1


def test_a_share_that_leaves_nothing_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="share is 1"):
        RaisedThreshold(1.0, 1.0, 1.0, share=1.0)


def test_plain_data_describe_it() -> None:
    release = plan(epsilon=0.3, bound=BOUND)
    assert isinstance(release.threshold, RaisedThreshold)
    assert PublishingPlan.from_configuration(release.configuration()) == release


def test_with_few_values_there_is_one_look_with_all_of_epsilon() -> None:
    few = plan(epsilon=0.05, bound=BOUND, holdout=4096).threshold
    assert isinstance(few, ScaleFree)
    assert few.epsilon == 0.05


# ---- accuracy --------------------------------------------------------------------------------


def spikes(share: float) -> Ints:
    draw = seeded(11).simulator()
    values: Ints = draw.poisson(5, VALUES)
    values[draw.random(VALUES) < share] = 100_000
    return values


def drawn(name: str) -> Ints:
    """Return a generated stream."""
    draw = seeded(12).simulator()
    if name.startswith("spikes"):
        return spikes(float(name.split()[1]))
    streams: dict[str, Callable[[], NDArray[Any]]] = {
        "pareto 1.1": lambda: 10 * (1 + draw.pareto(1.1, VALUES)),
        "lognormal 3": lambda: draw.lognormal(3, 3, VALUES),
        "zeros": lambda: np.zeros(VALUES),
        "constant": lambda: np.full(VALUES, 1000),
        "poisson": lambda: draw.poisson(5, VALUES),
        "exponential": lambda: draw.exponential(1000, VALUES),
        "lognormal 1": lambda: draw.lognormal(6, 1, VALUES),
        "uniform": lambda: draw.integers(0, 5000, VALUES),
        "pareto 2": lambda: 100 * (1 + draw.pareto(2, VALUES)),
        "half zeros": lambda: draw.integers(90_000, 110_000, VALUES) * draw.integers(0, 2, VALUES),
    }
    values: Ints = np.minimum(streams[name](), BOUND).astype(np.int64)
    return values


@dataclass(frozen=True)
class Judged:
    """The expected squared error of random ranges of a stream, for any threshold."""

    values: Ints
    release: PublishingPlan

    @cached_property
    def _ends(self) -> tuple[Ints, Ints]:
        size = self.values.size - self.release.skipped
        ends = np.sort(seeded(3).simulator().integers(0, size + 1, (400, 2)), axis=1)
        return ends[:, 0], ends[:, 1]

    def error(self, threshold: int) -> float:
        """Return noise, amounts cut off and what blocks hide, exactly."""
        published, block = self.values[self.release.skipped :], self.release.block
        edges = np.unique(np.arange(0, published.size + block, block).clip(max=published.size))
        start, end = self._ends
        cut = np.concatenate([[0], np.cumsum(np.minimum(published, threshold))])[edges]
        true = np.concatenate([[0], np.cumsum(published)])
        kept = np.interp(end, edges, cut) - np.interp(start, edges, cut)
        noise = self.release.tree.mean_square(start / block, end / block).mean()
        off = ((kept - (true[end] - true[start])) ** 2).mean()
        return float(off + self.release.noise(threshold).variance * noise)

    def ratio_to_oracle(self, runs: int = 12) -> float:
        """Return the mean error of chosen thresholds, relative to the best threshold."""
        grid = thresholds.candidates(BOUND, all_integers=False)
        best = min(self.error(int(t)) for t in grid[:: max(grid.size // 80, 1)])
        return self.mean_error(runs) / best

    def mean_error(self, runs: int = 12) -> float:
        """Return the mean error of the thresholds that the plan chooses."""
        held = self.values[: self.release.holdout]
        chosen = [
            self.release.threshold.choose(held, BOUND, seeded(1000 + run)) for run in range(runs)
        ]
        return float(np.mean([self.error(t) for t in chosen]))


def ratio(name: str, epsilon: float, method: str = "tuned") -> float:
    return Judged(drawn(name), plan(method, epsilon=epsilon, bound=BOUND)).ratio_to_oracle()


FAST = [("spikes 0.02", 0.05), ("spikes 0.001", 1.0), ("lognormal 3", 0.3), ("zeros", 1.0)]
LIMITS = {"spikes 0.02": 15.0, "spikes 0.001": 15.0, "exponential": 3.0}
NAMES = [
    *("spikes 0.02", "spikes 0.001", "pareto 1.1", "lognormal 3", "zeros", "constant", "poisson"),
    *("exponential", "lognormal 1", "uniform", "pareto 2", "half zeros"),
]


@pytest.mark.parametrize(("name", "epsilon"), FAST)
def test_the_threshold_is_near_that_of_an_oracle(name: str, epsilon: float) -> None:
    assert ratio(name, epsilon) <= LIMITS.get(name, 2.5)


def test_the_first_look_alone_misses_what_carries_the_sum() -> None:
    """Why there is a second one: the same test refuses the scale-free threshold."""
    release = plan(epsilon=0.05, bound=BOUND)
    assert isinstance(release.threshold, RaisedThreshold)
    alone = ScaleFree(0.05, max(release.threshold.above, 8 / 0.05))
    once = Judged(
        spikes(0.02),
        PublishingPlan(0.05, BOUND, alone, release.holdout, release.tree, release.block),
    )
    assert once.ratio_to_oracle() > 100


@pytest.mark.slow
def test_the_claim_over_all_streams() -> None:
    """Error / oracle: each at most 2.5 (spikes 15, exponential 3), 1.7 in the geometric mean."""
    ratios, gains = [], []
    for name, epsilon in itertools.product(NAMES, (0.05, 0.3, 1.0)):
        values = drawn(name)
        ours = Judged(values, plan(epsilon=epsilon, bound=BOUND))
        theirs = Judged(values, plan("tops", epsilon=epsilon, bound=BOUND))
        ratios.append(ours.ratio_to_oracle())
        gains.append(theirs.mean_error() / ours.mean_error())
        assert ratios[-1] <= LIMITS.get(name, 2.5), (name, epsilon)
        assert gains[-1] >= 0.9, (name, epsilon)
    assert math.exp(np.mean(np.log(ratios))) <= 1.7
    assert math.exp(np.mean(np.log(gains))) >= 1.8
