"""Samplers that are wrong too rarely, or in too few batches, for any number of draws to tell.

Every mutant keeps the stated law of a right mechanism, so that its epsilon looks right, and draws
from another one. Only following all paths tells the two apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.checks import CheckFailed
from sfumato.checks.path_checks import (
    every_path_adds_the_noise_of_the_law,
    every_path_follows_the_law,
)
from sfumato.core import Mechanism
from sfumato.mechanisms import GRR, OUE, CoCo, Concord, StochasticRounding, SubsetSelection
from sfumato.mechanisms.central import DiscreteLaplace
from sfumato.randomness import ONE, Source, Wheel

MUTANTS: list[tuple[Mechanism, str]] = []

Ints = NDArray[np.int64]


def made_with(*arguments: Any) -> Callable[[type[Mechanism]], type[Mechanism]]:
    def register(mutant: type[Mechanism]) -> type[Mechanism]:
        MUTANTS.append((mutant(*arguments), every_path_follows_the_law.__name__))
        return mutant

    return register


def _tell(mechanism: GRR, kept: NDArray[np.bool_], encoded: Ints, rng: Source) -> Ints:
    return np.where(kept, encoded, rng.below(mechanism.size, encoded.size))


# ---- rarely wrong ---------------------------------------------------------------------------


@made_with(1.0, 3)
class RawOnceInTwoThousand(GRR):
    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize(encoded, rng, reports)
        raw = rng.bernoulli(ONE // 2000, encoded.size)
        reports["item"] = np.where(raw, encoded, reports["item"])


@made_with(1.0, 3)
class ThresholdOffByOne(GRR):
    """Draws one in 2^64 too often, and states what it should draw."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        kept = rng.bernoulli(self.kept + 1, encoded.size)
        reports["item"] = _tell(self, kept, encoded, rng)


@made_with(1.0, 3)
class RawByRawWords(GRR):
    """Takes words to be raw with, which nobody can follow."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize(encoded, rng, reports)
        raw = rng.words(encoded.size) < ONE // 2000
        reports["item"] = np.where(raw, encoded, reports["item"])


@made_with(1.0, -1, 1)
class RoundsHalfUp(StochasticRounding):
    """Right on the grid; between its points numbers are rounded without a coin."""

    def _round(self, encoded: NDArray[np.float64], rng: Source) -> Ints:
        super()._round(encoded, rng)
        return np.rint(encoded).astype(np.int64)


@made_with(1.0, 3, 2, 3)
class WheelOffByOne(Concord):
    """The weights of the secret draw are wrong in their last place."""

    def _hits(self, n: int, rng: Source) -> NDArray[np.int32]:
        first, *weights = self.hit_weights()
        wheel = Wheel(lambda: [first + 1, *weights])
        return rng.spin(wheel, n).astype(np.int32) + np.int32(self._hit_range[0])


# ---- wrong in some batches ------------------------------------------------------------------


@made_with(1.0, 3)
class MoreTruthForOnePersonAlone(GRR):
    """Keeps the item 8% more often when it is given one person instead of many."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        kept = self.kept * 108 // 100 if encoded.size == 1 else self.kept
        reports["item"] = _tell(self, rng.bernoulli(kept, encoded.size), encoded, rng)


@made_with(1.0, 3)
class TheSecondReusesTheFirstOnesCoin(GRR):
    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        kept = np.repeat(rng.bernoulli(self.kept, (encoded.size + 1) // 2), 2)[: encoded.size]
        reports["item"] = _tell(self, kept, encoded, rng)


@made_with(1.0, 3)
class RightInBatchesOfUpToTwo(GRR):
    """The third person's lie is the second one's."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        lies = np.resize(rng.below(self.size, min(encoded.size, 2)), encoded.size)
        reports["item"] = np.where(rng.bernoulli(self.kept, encoded.size), encoded, lies)


@made_with(1.0, 3)
class RightInBatchesOfEvenSize(GRR):
    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        kept = self.kept + (encoded.size % 2)
        reports["item"] = _tell(self, rng.bernoulli(kept, encoded.size), encoded, rng)


@made_with(1.0, 2)
class ABitForTwoNeighbours(OUE):
    """The fair coin of the item held is tossed once for each pair of people."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize(encoded, rng, reports)
        own = np.uint8(1) << encoded.astype(np.uint8)
        coins = np.repeat(rng.bits((encoded.size + 1) // 2), 2)[: encoded.size]
        reports["bits"][:, 0] = reports["bits"][:, 0] & ~own | own * coins


# ---- loops and choices ----------------------------------------------------------------------


@made_with(1.0, 3)
class ABiasedRejectionLoop(GRR):
    """Lies are drawn below four and again if they are too large, but only twice."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        lies = rng.below(4, encoded.size)
        for _ in range(2):
            again = np.flatnonzero(lies >= self.size)
            lies[again] = rng.below(4, again.size)
        kept = rng.bernoulli(self.kept, encoded.size)
        reports["item"] = np.where(kept, encoded, lies % self.size)


@made_with(1.0, 3)
class ALoopThatFavoursTheTruth(GRR):
    """A loop that may go on for ever; what is too large is the truth once in sixteen times."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        lies = rng.below(4, encoded.size)
        while (again := np.flatnonzero(lies >= self.size)).size:
            lies[again] = rng.below(4, again.size)
            again = again[rng.bernoulli(ONE // 16, again.size)]
            lies[again] = encoded[again]
        reports["item"] = np.where(rng.bernoulli(self.kept, encoded.size), encoded, lies)


@made_with(1.0, 3)
class ALoopOfManyWays(GRR):
    """Numbers that are too large to follow them all: it is not called right unseen."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        lies = rng.below(64, encoded.size)
        while (again := np.flatnonzero(lies >= self.size)).size:
            lies[again] = rng.below(64, again.size)
        reports["item"] = np.where(rng.bernoulli(self.kept, encoded.size), encoded, lies)


@made_with(1.0, 5, 3)
class TakesTheFirstOfASubsetForAnyOfIt(SubsetSelection):
    """Subsets come in no particular order, so their first item is not a uniform one."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        kept = rng.bernoulli(self.kept, encoded.size)
        chosen = rng.subsets(self.size, self.members, encoded.size)
        absent = np.flatnonzero(kept & (chosen != encoded[:, None]).all(axis=1))
        chosen[absent, 0] = encoded[absent]
        held = np.zeros((encoded.size, self.size), dtype=np.uint8)
        np.put_along_axis(held, chosen, 1, axis=1)
        reports["bits"] = np.packbits(held, axis=1, bitorder="little")


@made_with(1.0, 3, 1, 4)
class TheSignOfTheHash(CoCo):
    """Which bucket of a free pair is sent is read off the seed instead of a coin."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize(encoded, rng, reports)
        free = reports["bucket"] % 2 != self._hashed(encoded, reports["seed"])[0] % 2
        odd = (reports["seed"] % 2).astype(np.uint8)
        reports["bucket"] = np.where(
            free, reports["bucket"] % 2 + self._pairs * odd, reports["bucket"]
        )


@pytest.mark.parametrize(
    "mutant", [mutant for mutant, _ in MUTANTS], ids=lambda mutant: type(mutant).__name__
)
def test_every_mutant_is_caught(mutant: Mechanism) -> None:
    with pytest.raises(CheckFailed):
        every_path_follows_the_law(mutant)


class ARejectionLoop(GRR):
    """A loop that may go on for ever, and is right."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        lies = rng.below(4, encoded.size)
        while (again := np.flatnonzero(lies >= self.size)).size:
            lies[again] = rng.below(4, again.size)
        reports["item"] = np.where(rng.bernoulli(self.kept, encoded.size), encoded, lies)


def test_a_loop_that_is_right_passes() -> None:
    every_path_follows_the_law(ARejectionLoop(1.0, 3))


# ---- noise ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExactZeroOnceInAMillion(DiscreteLaplace):
    def add(self, integers: Ints, rng: Source) -> Ints:
        raw = rng.bernoulli(ONE // 1_000_000, integers.size)
        return np.where(raw, integers, super().add(integers, rng))


@dataclass(frozen=True)
class TwiceTheRate(DiscreteLaplace):
    def add(self, integers: Ints, rng: Source) -> Ints:
        return integers + rng.discrete_laplace(2 * self.law().rate, integers.size)


@dataclass(frozen=True)
class RateOffByOne(DiscreteLaplace):
    def add(self, integers: Ints, rng: Source) -> Ints:
        rate = self.law().rate * Fraction((1 << 40) + 1, 1 << 40)
        return integers + rng.discrete_laplace(rate, integers.size)


@dataclass(frozen=True)
class OneNoiseForTwo(DiscreteLaplace):
    def add(self, integers: Ints, rng: Source) -> Ints:
        return integers + rng.discrete_laplace(self.law().rate, 1)


@dataclass(frozen=True)
class OneSided(DiscreteLaplace):
    def add(self, integers: Ints, rng: Source) -> Ints:
        return integers + rng.geometric(self.law().rate, integers.size)


@pytest.mark.parametrize(
    "kind", [ExactZeroOnceInAMillion, TwiceTheRate, RateOffByOne, OneNoiseForTwo, OneSided]
)
def test_every_wrong_noise_is_caught(kind: type[DiscreteLaplace]) -> None:
    with pytest.raises(CheckFailed):
        every_path_adds_the_noise_of_the_law(kind(0.5, 2))
