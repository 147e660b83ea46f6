"""Subsets of sparse vectors and of sets with one thing wrong, each caught by name."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.contracts.mutants import Mutants, is_caught_by

from sfumato.core import Covariance, FrequencyEstimate, Mechanism, Tally
from sfumato.mechanisms import Concord, ExSub, PrivSet
from sfumato.mechanisms.sparse.subset.subset_form import SubsetForm
from sfumato.randomness import ONE, Source

BITS = (1.0, 4, 2, 2)  # sets in bits
LISTS = (1.0, 17, 1, 2)  # sets in lists
EXACT = (1.0, 5, 2, 2, True)  # sets of exactly two items: no stubs
SIGNS = (1.0, 9, 2, 2)  # signed entries in lists
DENSE = (1.0, 3, 2, 5)  # a sign for every entry

MUTANTS = Mutants()
caught_by = MUTANTS.caught_by


# ---- privacy --------------------------------------------------------------------------------


@caught_by("epsilon_is_spent_and_not_exceeded", *BITS)
class RefusesOneInTwoToTheSixtyFourTooOften(PrivSet):
    @cached_property
    def refused_weight(self) -> int:
        return super().refused_weight - 1


@caught_by("epsilon_is_spent_and_not_exceeded", *BITS)
class FavoursEveryHit(PrivSet):
    """One more factor of e^epsilon for each further hit."""

    def _weight(self, agree: int, oppose: int) -> int:
        del oppose
        return ONE * 3 ** max(agree - 1, 0) if agree else self.refused_weight


# ---- the sampler ----------------------------------------------------------------------------


@caught_by("sampler_follows_its_law", *BITS)
class FavoursNothing(PrivSet):
    """The number of hits is that of a uniform subset."""

    def _favour(self, hits: int) -> int:
        del hits
        return ONE


@caught_by("sampler_follows_its_law", *LISTS)
class AlwaysHits(PrivSet):
    def _favour(self, hits: int) -> int:
        return ONE if hits else 0


@caught_by("sampler_follows_its_law", *LISTS)
class ZerosMayBeHits(PrivSet):
    """The zeros are drawn without stepping over the items that are held."""

    def _listed(self, positions: Any, signs: Any, hits: Any, rng: Source) -> Any:
        far = np.full_like(positions, self.padded_dimension)
        symbols = super()._listed(far, signs, hits, rng)
        return np.where(symbols == self.padded_dimension, positions[0], symbols)


@caught_by("sampler_follows_its_law", *EXACT)
class MakesNoRoom(PrivSet):
    """What was drawn for the place of a held item is lost."""

    def _make_room(self, inside: Any, positions: Any) -> None:
        pass


@caught_by("sampler_follows_its_law", *SIGNS)
class AgreesTooOften(ExSub):
    """Of the non-zeros that are hit none is opposed."""

    def _agreeing(self, hits: int, n: int, rng: Source) -> NDArray[Any]:
        return np.full_like(super()._agreeing(hits, n, rng), hits)


@caught_by("sampler_follows_its_law", *DENSE)
class MarksInOrder(Concord):
    """The first non-zeros are those agreed with."""

    def _marks(self, hits: NDArray[np.int32], rng: Source) -> NDArray[np.int8]:
        return -np.sort(-super()._marks(hits, rng), axis=0)


@caught_by("people_do_not_touch_each_other", *BITS)
class StubsSaveCoins(PrivSet):
    """Nothing is drawn for people whose set is empty."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        rng.words(int((encoded["position"][:, 0] < self.dimension).sum()))
        super()._randomize(encoded, rng, reports)


# ---- the server -----------------------------------------------------------------------------


@caught_by("wire_round_trip", *SIGNS)
class InOrderOfTheDraw(ExSub):
    """Symbols in the order they were drawn, which puts those of the input first."""

    @cached_property
    def form(self) -> SubsetForm:
        class Unsorted(SubsetForm):
            def write_symbols(self, symbols: Any, reports: Any) -> None:
                reports["symbols"] = np.minimum(symbols, self.absent).T

        right = super().form
        return Unsorted(right.dimension, right.padded, right.size, right.signed)


@caught_by("garbage_is_refused", *LISTS)
class AnyOrderWillDo(PrivSet):
    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray((reports["symbols"] <= self.form.absent).all(axis=1))


@caught_by("estimates_are_unbiased_and_cover", *BITS)
class ForgetsTheOthers(PrivSet):
    """Divides by p as if nobody's report held an item by chance."""

    def _estimate(self, tally: Tally) -> FrequencyEstimate:
        right = super()._estimate(tally)
        return replace(right, values=tally.sums / tally.n / self.probabilities.p_true)


@caught_by("estimates_are_unbiased_and_cover", 1.0, 5, 1, 1)
class TakesItemsForIndependent(PrivSet):
    def _estimate(self, tally: Tally) -> FrequencyEstimate:
        right = super()._estimate(tally)
        return replace(right, covariance=Covariance(right.covariance.variances()))


@caught_by("simulated_tallies_agree", *BITS)
class SimulatesEmptySets(PrivSet):
    def sample_counts(self, holders: NDArray[np.int64], n: int, rng: Source) -> Tally:
        return super().sample_counts(np.zeros_like(holders), n, rng)


@MUTANTS.each
def test_every_mutant_is_caught(mutant: Mechanism, check: str) -> None:
    assert is_caught_by(check, mutant)
