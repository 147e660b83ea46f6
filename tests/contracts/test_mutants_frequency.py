"""Subset selection and the adaptive oracle with one thing wrong, each caught by name."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.contracts.mutants import Mutants, is_caught_by

from sfumato.core import Law, Mechanism, Tally
from sfumato.mechanisms import Adaptive, SubsetSelection
from sfumato.mechanisms.frequency.oracle import kept_threshold
from sfumato.randomness import ONE, Source, members

BITS = (1.0, 6, 2)  # reports of six bits, two of them set
LISTS = (2.0, 17, 2)  # reports of two items of seventeen

MUTANTS = Mutants()
caught_by = MUTANTS.caught_by


# ---- privacy --------------------------------------------------------------------------------


@caught_by("epsilon_is_spent_and_not_exceeded", *BITS)
class KeepsAsIfOneItemWereSent(SubsetSelection):
    """The threshold of GRR: private, but most of epsilon is left unused."""

    def _kept(self, members: int) -> int:
        del members
        return kept_threshold(self.epsilon, self.size)


@caught_by("epsilon_is_spent_and_not_exceeded", *BITS)
class KeepsAsIfMoreItemsWereSent(SubsetSelection):
    def _kept(self, members: int) -> int:
        return kept_threshold(self.epsilon, Fraction(self.size, members + 1))


@caught_by("epsilon_is_spent_and_not_exceeded", *LISTS)
class KeepsOneInTwoToTheSixtyFourTooOften(SubsetSelection):
    def _kept(self, members: int) -> int:
        return super()._kept(members) + 1


@caught_by("epsilon_is_spent_and_not_exceeded", *BITS)
class ThresholdOfTheOtherParametrisation(SubsetSelection):
    """How often the set holds the item at all, taken for how often it is forced to."""

    def _kept(self, members: int) -> int:
        p, _ = SubsetSelection(self.epsilon, self.domain, members).supports
        return int(p * ONE)


# ---- the sampler ----------------------------------------------------------------------------


@caught_by("sampler_follows_its_law", *LISTS)
class ReplacesTheFirstMember(SubsetSelection):
    """Of a sorted set the first is not any member: small items go missing more often."""

    def _list_items(
        self, encoded: NDArray[Any], kept: NDArray[np.bool_], rng: Source, reports: NDArray[Any]
    ) -> None:
        chosen = np.sort(rng.subsets(self.size, self.members, encoded.size), axis=1)
        absent = np.flatnonzero(kept & (chosen != encoded[:, None]).all(axis=1))
        chosen[absent, 0] = encoded[absent]
        chosen.sort(axis=1)
        reports["items"] = chosen


@caught_by("sampler_follows_its_law", *BITS)
class ReplacesTheLowestBit(SubsetSelection):
    def _raise_bits(
        self, encoded: NDArray[Any], kept: NDArray[np.bool_], rng: Source, reports: NDArray[Any]
    ) -> None:
        (words,) = rng.subset_lanes(self.size, self.members, encoded.size)
        own = np.uint64(1) << encoded.astype(np.uint64)
        absent = kept & (words & own == 0)
        reports["bits"][:, 0] = np.where(absent, words & (words - np.uint64(1)) | own, words)


@caught_by("sampler_follows_its_law", *BITS)
class PutsTheItemBesideItsNeighbour(SubsetSelection):
    """Items are in as often as they should be on average, but what is kept comes with company."""

    def _raise_bits(
        self, encoded: NDArray[Any], kept: NDArray[np.bool_], rng: Source, reports: NDArray[Any]
    ) -> None:
        super()._raise_bits(encoded, kept, rng, reports)
        beside = 1 << (encoded + 1) % self.size
        reports["bits"][kept, 0] = ((1 << encoded) | beside)[kept]


@caught_by("sampler_follows_its_law", *LISTS)
class TheOrderTellsTheItem(SubsetSelection):
    """The item comes last when it was put there; the set would be as it should."""

    def _list_items(
        self, encoded: NDArray[Any], kept: NDArray[np.bool_], rng: Source, reports: NDArray[Any]
    ) -> None:
        chosen = rng.subsets(self.size, self.members, encoded.size)
        absent = np.flatnonzero(kept & (chosen != encoded[:, None]).all(axis=1))
        chosen[absent, -1] = encoded[absent]
        reports["items"] = chosen

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        items = np.sort(reports["items"], axis=1)
        return np.asarray((np.diff(items) > 0).all(axis=1) & (items[:, -1] < self.size))


@caught_by("wire_round_trip", *LISTS)
class SendsItsItemsUnsorted(SubsetSelection):
    def _list_items(
        self, encoded: NDArray[Any], kept: NDArray[np.bool_], rng: Source, reports: NDArray[Any]
    ) -> None:
        super()._list_items(encoded, kept, rng, reports)
        reports["items"] = reports["items"][:, ::-1].copy()


@caught_by("people_do_not_touch_each_other", *LISTS)
class DrawsTheReplacedOnlyWhereNeeded(SubsetSelection):
    """Saves coins where the item is there already, and so tells the next person's coins of it."""

    def _list_items(
        self, encoded: NDArray[Any], kept: NDArray[np.bool_], rng: Source, reports: NDArray[Any]
    ) -> None:
        chosen = rng.subsets(self.size, self.members, encoded.size)
        absent = np.flatnonzero(kept & (chosen != encoded[:, None]).all(axis=1))
        chosen[absent, rng.below(self.members, absent.size)] = encoded[absent]
        chosen.sort(axis=1)
        reports["items"] = chosen


# ---- the server -----------------------------------------------------------------------------


@caught_by("garbage_is_refused", *BITS)
class AcceptsSetsOfAnySize(SubsetSelection):
    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(reports["bits"][:, -1] >> self.size == 0)


@caught_by("garbage_is_refused", *BITS)
class AcceptsBitsBeyondTheLastItem(SubsetSelection):
    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(np.bitwise_count(reports["bits"]).sum(axis=1) == self.members)


@caught_by("garbage_is_refused", *LISTS)
class AcceptsAnItemTwice(SubsetSelection):
    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        items = reports["items"]
        return np.asarray((items[:, 0] <= items[:, 1]) & (items[:, 1] < self.size))


@caught_by("simulated_tallies_agree", *BITS)
class SimulatesUniformSets(SubsetSelection):
    def sample_tally(self, histogram: NDArray[np.int64], rng: Source) -> Tally:
        n = int(histogram.sum())
        drawn = members(rng.subset_lanes(self.size, self.members, n))
        return Tally(n, np.bincount(drawn.ravel(), minlength=self.size))


# ---- the choice -----------------------------------------------------------------------------


@caught_by("epsilon_is_spent_and_not_exceeded", 1.0, 6)
class StatesTheLawOfAnother(Adaptive):
    def law(self, value: Any, public: Any = None) -> Law:
        return replace(self.chosen, epsilon=self.epsilon / 2).law(value, public)


@caught_by("configuration_round_trip", 1.0, 6, "papers")
class ForgetsItsRule(Adaptive):
    def configuration(self) -> dict[str, Any]:
        return super().configuration() | {"rule": "least"}


@MUTANTS.each
def test_every_mutant_is_caught(mutant: Mechanism, check: str) -> None:
    assert is_caught_by(check, mutant)
