"""Chaff hides what its bound says: every dataset of a few devices, and mutants that are caught."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, combinations_with_replacement
from math import comb

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.accounting.shuffle.enumeration import Shuffled

from sfumato import ExSub
from sfumato.accounting.shuffle import (
    BatchedReport,
    Chaff,
    Chaffed,
    Requirement,
    best,
    composed,
    holds,
    sized,
)
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse.subset.chaffed_vectors import ChaffedVectors
from sfumato.randomness import seeded

Floats = NDArray[np.float64]
HALF = Fraction(1, 2)


def binomial(n: int, chance: float) -> list[float]:
    return [comb(n, k) * chance**k * (1 - chance) ** (n - k) for k in range(n + 1)]


@dataclass(frozen=True)
class Enumerated:
    """All that is seen of n devices, one signal and some dummies each."""

    ratio: int
    symbols: int
    own: int
    n: int
    dummies: Fraction

    @property
    def norm(self) -> float:
        return 1 + (self.ratio - 1) * self.own / self.symbols

    @cached_property
    def laws(self) -> Floats:
        rows = []
        for held in combinations(range(self.symbols), self.own):
            row = np.ones(self.symbols)
            row[list(held)] = self.ratio
            rows.append(row / row.sum())
        return np.array(rows)

    @property
    def counts(self) -> dict[int, float]:
        """The chance of each number of dummies of all devices."""
        certain = self.n * int(self.dummies)
        return {certain + k: p for k, p in enumerate(binomial(self.n, float(self.dummies % 1)))}

    def neighbours(self, number: int) -> Iterator[Floats]:
        """Yield, for every choice of the others' values, the law of all messages by the one's."""
        bags = Shuffled(self.laws, self.n + number)
        even = np.full(self.symbols, 1 / self.symbols)
        start = np.ones(1)
        for size in range(number):
            start = bags._with(start, size, even)  # noqa: SLF001
        inputs = range(len(self.laws))
        for others in combinations_with_replacement(inputs, self.n - 1):
            law = start
            for size, held in enumerate(others, number):
                law = bags._with(law, size, self.laws[held])  # noqa: SLF001
            yield np.array(
                [bags._with(law, self.n - 1 + number, self.laws[one]) for one in inputs]  # noqa: SLF001
            )

    def truth(self, epsilon: float) -> float:
        """Return the largest divergence over all neighbouring datasets, in both directions."""
        total: list[Floats] = []
        for number, chance in self.counts.items():
            if not chance:
                continue
            for index, laws in enumerate(self.neighbours(number)):
                apart = laws[:, None, :] - math.exp(epsilon) * laws[None, :, :]
                share = chance * np.maximum(apart, 0).sum(axis=2)
                if index == len(total):
                    total.append(share)
                else:
                    total[index] = total[index] + share
        return max(float(each.max()) for each in total)

    def bound(
        self, epsilon: float, *, twice: int = 0, expected: bool = False, more: int = 0
    ) -> float:
        """Return the bound as it is proven, or one of its mutants.

        ``twice`` counts the own signal once more, ``expected`` the mean number of dummies, and
        ``more`` the dummies of so many devices that tell theirs.
        """
        counts = self.counts
        if expected:
            counts = {round(self.n * float(self.dummies)): 1.0}
        signals = binomial(self.n - 1, 1 / self.norm)
        return sum(
            chance * other * self._mean(number + k + 1 + twice + more, epsilon)
            for number, chance in counts.items()
            for k, other in enumerate(signals)
        )

    def _mean(self, messages: int, epsilon: float) -> float:
        """Return E[(G_1 + ... + G_k)_+]/k for so many messages."""
        e, r, norm, share = math.exp(epsilon), self.ratio, self.norm, self.own / self.symbols
        high, low, rest = (r - e) / norm, (1 - e * r) / norm, (1 - e) / norm
        total = 0.0
        for first in range(messages + 1):
            for second in range(messages + 1 - first):
                neither = messages - first - second
                ways = comb(messages, first) * comb(messages - first, second)
                chance = ways * share ** (first + second) * (1 - 2 * share) ** neither
                total += chance * max(first * high + second * low + neither * rest, 0.0)
        return total / messages

    @property
    def chaffed(self) -> Chaffed:
        return Chaffed(Fraction(self.ratio), self.symbols, self.own, Chaff(self.dummies))

    @property
    def epsilons(self) -> list[float]:
        return [part * math.log(self.ratio) for part in (0.05, 0.25, 0.5, 0.8)]


FEW = [
    Enumerated(ratio, symbols, own, n, Fraction(dummies))
    for ratio in (2, 6)
    for symbols, own in ((4, 1), (4, 2), (6, 1), (6, 2))
    for n in (1, 2, 3)
    for dummies in (0, HALF, 1, 2)
    if (symbols, n) != (6, 3) or own == 1
]
MORE = [
    Enumerated(ratio, symbols, own, n, Fraction(dummies))
    for ratio in (2, 6)
    for symbols, own, n in ((6, 2, 3), (4, 1, 4), (4, 2, 4), (6, 1, 4), (6, 2, 4))
    for dummies in (0, HALF, 1, Fraction(3, 2), 2)
]


@pytest.mark.statistics
@pytest.mark.parametrize("more", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_no_dataset_of_a_few_devices_tells_more_than_is_proven(*, more: bool) -> None:
    equal = every = 0
    for case in MORE if more else FEW:
        for epsilon in case.epsilons[:: 1 if case.n < 3 else 3]:
            true, bound = case.truth(epsilon), case.bound(epsilon)
            assert true <= bound * (1 + 1e-9) + 1e-12, (case, epsilon)
            # What is computed counts on certain dummies only, and loses something by smoothing.
            assert case.chaffed.delta_among(case.n, epsilon, 0.0) >= bound * (1 - 1e-9), case
            equal, every = equal + (true >= bound * (1 - 1e-6)), every + 1
    assert equal >= 0.5 * every


def _caught(case: Enumerated, **wrong: int) -> bool:
    return any(case.truth(eps) > case.bound(eps, **wrong) * 1.001 for eps in case.epsilons)  # type: ignore[arg-type]


def test_wrong_bounds_are_caught() -> None:
    case = Enumerated(6, 4, 1, 3, Fraction(1))
    assert not _caught(case)
    assert _caught(case, twice=1)
    assert _caught(case, more=1)  # the dummy of a fourth device, which tells it
    half = Enumerated(6, 4, 1, 2, HALF)
    assert not _caught(half)
    assert _caught(half, expected=True)


def test_a_dummy_that_repeats_the_signal_is_caught() -> None:
    case = Enumerated(6, 4, 1, 2, Fraction(1))
    epsilon = case.epsilons[1]

    def seen(one: int, other: int) -> Floats:
        """Return the law of two devices' messages if each sends its symbol twice."""
        both = np.outer(case.laws[one], case.laws[other])
        unordered = both + both.T - np.diag(np.diag(both))
        return np.asarray(unordered[np.triu_indices(case.symbols)])

    apart = seen(0, 2) - math.exp(epsilon) * seen(1, 2)
    assert np.maximum(apart, 0).sum() > 1.01 * case.bound(epsilon)


def test_what_is_counted_on_is_there() -> None:
    """The tails are those of the exact laws, with chances that can be listed."""
    for dummies, n, even in ((Fraction(3, 4), 300, 0.2), (Fraction(5, 4), 100, 0.6)):
        chaff, rare = Chaff(dummies), 1e-3
        reached = chaff.reached(n, even, rare)
        more, signals = binomial(n, float(chaff.chance)), binomial(n - 1, even)
        total = np.convolve(more, signals)
        fewer = total[: max(reached - 1 - n * chaff.certain, 0)].sum()
        assert fewer <= rare
        assert reached > n * chaff.certain + 1
        sent = round(n * (1 + float(dummies)))
        senders = chaff.senders(sent, rare)
        assert 0.8 * n < senders <= n
        many = sent - (senders - 1) * (1 + chaff.certain)  # one device less would need so many
        assert sum(binomial(senders - 1, float(chaff.chance))[many:]) <= rare
    assert Chaff(Fraction(2)).senders(300, 1e-9) == 100
    assert Chaff(Fraction(2)).senders(301, 1e-9) == 101
    assert Chaff(HALF).senders(10, 0.0) == 5


# ---- sizes and errors ---------------------------------------------------------------------------


def test_without_dummies_it_is_one_symbol_of_exsub() -> None:
    required = Requirement(0.05, 1e-6, 10_000)
    alone = ChaffedVectors.best(256, 8, required, most=8.0, messages=0)
    exsub = sized(ExSub(8.0, 256, 8, subset_size=1), required)
    assert alone.signal.epsilon == pytest.approx(exsub.epsilon, rel=1e-6)
    assert exsub.epsilon == pytest.approx(2.28590, abs=1e-5)
    assert alone.mse == pytest.approx(4461.40, abs=0.01)
    assert alone.least_epsilon(10_000, 1e-6) > 0.98 * 0.05


@pytest.mark.parametrize(
    ("question", "epsilon", "n", "most", "error"),
    [
        ((256, 8), 0.05, 10_000, 4.0, 4259),
        ((256, 8), 0.25, 10_000, 8.0, 255),
        ((256, 8), 0.05, 100_000, 4.0, 532),
        ((256, 8), 0.05, 100_000, 8.0, 468),
        ((256, 8), 0.25, 100_000, 8.0, 77.7),
        ((64, 8), 0.05, 100_000, 4.0, 177),
        ((64, 8), 0.05, 100_000, 8.0, 155),
        ((256, 20), 0.05, 10_000, 4.0, 10_870),
        ((256, 4), 0.05, 100_000, 8.0, 220),
        ((1024, 8), 0.05, 10_000, 4.0, 16_260),
        ((1024, 20), 0.25, 10_000, 8.0, 2409),
    ],
)
def test_the_best_number_of_dummies_is_as_derived_on_paper(
    question: tuple[int, int], epsilon: float, n: int, most: float, error: float
) -> None:
    required = Requirement(epsilon, 1e-6, n)
    chosen = ChaffedVectors.best(*question, required, most, 4)
    assert chosen.mse <= 1.01 * error  # a finer grid may do better
    assert chosen.mse >= 0.975 * error
    assert chosen.signal.epsilon <= most
    assert chosen.chaff.dummies <= 4
    assert holds(chosen, epsilon, 1e-6, required.crowd)
    found = best(chosen, n, 1e-6)
    assert found.epsilon is not None
    assert found.lower is not None
    assert 0.85 * epsilon <= found.lower <= found.epsilon <= epsilon * (1 + 1e-8)


def test_errors_are_those_of_simulated_devices() -> None:
    _simulated(120, 0.1)


@pytest.mark.slow
def test_errors_are_those_of_many_simulated_devices() -> None:
    _simulated(1600, 0.02)


def _simulated(runs: int, far: float) -> None:
    d, s, n, rng = 64, 4, 400, seeded(21)
    vectors = ChaffedVectors(ExSub(3.0, d, s, subset_size=1), Chaff(Fraction(3, 2)))
    held = np.zeros((n, d), dtype=np.int8)
    draw = np.random.default_rng(5)
    for row in held:
        row[draw.choice(d, size=draw.integers(0, s + 1), replace=False)] = draw.choice([-1, 1])
    truth, there = held.mean(axis=0), np.abs(held).mean(axis=0)
    zero, other = vectors.value_variances()
    predicted = (zero * (d - np.abs(held).sum(1)) + other * np.abs(held).sum(1)).mean()
    errors, presences = [], []
    for _ in range(runs):
        counts = vectors.signal.tally(vectors.signal.randomize(held, rng)).sums[:2].copy()
        sent = np.bincount(vectors.dummies(n, rng), minlength=2 * vectors.signal.padded_dimension)
        counts += sent.reshape(-1, 2).T[:, :d]
        values, presence = vectors.estimate(counts, n)
        errors.append(n * ((values - truth) ** 2).sum())
        presences.append(presence)
    assert np.mean(errors) == pytest.approx(predicted, rel=far)
    deviation = np.std(presences, axis=0) / math.sqrt(runs)
    assert (np.abs(np.mean(presences, axis=0) - there) < 5.5 * deviation).all()


def test_composition_takes_chaff() -> None:
    chosen = ChaffedVectors.best(64, 4, Requirement(0.05, 1e-6, 10_000), 4.0, 2)
    often = composed([BatchedReport(chosen, 10_000, times=9)], 1e-6)
    assert 2.5 * 0.05 < often < 4 * 0.05


def test_wrong_numbers_of_dummies_get_a_sentence() -> None:
    for wrong in (Fraction(-1), Fraction(1, 3)):
        with pytest.raises(ConfigurationError, match="dummies is"):
            Chaff(wrong)
    with pytest.raises(ConfigurationError, match="subset_size = 1"):
        ChaffedVectors(ExSub(1.0, 16, 2, subset_size=2), Chaff(HALF))
