"""Broken mechanisms, each of which one named check must catch.

Every mutant is a right mechanism with one thing wrong. The decorator names the check that must
catch it.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.contracts.wrong import Wrong
from tests.noise_free import NoiseFree

from sfumato import catalog
from sfumato.checks import MECHANISM_CHECKS, CheckFailed, check_mechanism
from sfumato.core import Contrasts, Covariance, FrequencyEstimate, Law, Mechanism, Tally
from sfumato.mechanisms import GRR, OLH, OUE
from sfumato.mechanisms.frequency.oracle import kept_threshold
from sfumato.randomness import ONE, Source, seeded

MUTANTS = Wrong()
caught_by = MUTANTS.caught_by


# ---- privacy --------------------------------------------------------------------------------


@caught_by("epsilon_is_spent_and_not_exceeded")
class LeaksATenthMore(GRR):
    @cached_property
    def kept(self) -> int:
        return kept_threshold(1.1 * self.epsilon, self.size)


@caught_by("epsilon_is_spent_and_not_exceeded")
class LeaksByOneInTwoToTheSixtyFour(GRR):
    @cached_property
    def kept(self) -> int:
        return kept_threshold(self.epsilon, self.size) + 1


@caught_by("epsilon_is_spent_and_not_exceeded")
class WastesHalf(OUE):
    @cached_property
    def raised(self) -> int:
        return replace(OUE(self.epsilon, self.domain), epsilon=self.epsilon / 2).raised


@caught_by("epsilon_is_spent_and_not_exceeded")
class IgnoresItsInput(GRR):
    """Reports that say nothing: perfectly private, perfectly useless."""

    def law(self, value: Any, public: Any = None) -> Law:
        del value
        return super().law(self.inputs()[0], public)

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize(np.zeros_like(encoded), rng, reports)


@caught_by("epsilon_is_spent_and_not_exceeded")
class NeverLiesAboutTheFirstItem(GRR):
    """One item is always told truthfully, so some reports are impossible under it."""

    def law(self, value: Any, public: Any = None) -> Law:
        law = super().law(value, public)
        if self.encode([value])[0] == 0:
            return replace(law, numerators=(law.denominator, *[0] * (self.size - 1)))
        return law


@caught_by("epsilon_is_spent_and_not_exceeded")
class LawDoesNotSumToOne(GRR):
    def law(self, value: Any, public: Any = None) -> Law:
        law = super().law(value, public)
        return replace(law, numerators=(law.numerators[0] + 1, *law.numerators[1:]))


@caught_by("epsilon_is_spent_and_not_exceeded")
class ListsLawsThatItDoesNotHave(GRR):
    """What is listed keeps the promise; what is said of one value does not."""

    def law(self, value: Any, public: Any = None) -> Law:
        return GRR(2 * self.epsilon, self.domain).law(value, public)

    def laws(self, value: Any) -> list[Law]:
        return [super().law(value)]


@caught_by("epsilon_is_spent_and_not_exceeded")
class ClaimsASmallerRatioThanItHas(GRR):
    @property
    def worst_ratio(self) -> Fraction:
        return super().worst_ratio * Fraction(9, 10)


@caught_by("reports_are_integers")
class FloatNoise(GRR):
    """Laplace noise in floating point on a one-hot vector: the bits of the noise give it away."""

    @property
    def report_dtype(self) -> np.dtype[Any]:
        return np.dtype([("noisy", "<f8", (self.size,))])

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        one_hot = np.eye(self.size)[encoded]
        noise = rng.simulator().laplace(scale=2 / self.epsilon, size=one_hot.shape)
        reports["noisy"] = one_hot + noise

    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.asarray(np.isfinite(reports["noisy"]).all(axis=1))


# ---- the sampler ----------------------------------------------------------------------------


@caught_by("sampler_follows_its_law")
class LiesIncludeTheTruth(GRR):
    """Keeps the item as often as if lies were other items, but draws lies from all items."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        told = int(self.supports[0] * ONE)
        kept = rng.bernoulli(told, encoded.size)
        reports["item"] = np.where(kept, encoded, rng.below(self.size, encoded.size))


@caught_by("sampler_follows_its_law")
class OffByOneBit(OUE):
    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize((encoded + 1) % self.size, rng, reports)


@caught_by("sampler_follows_its_law")
class SamplesAtNineTenths(OLH):
    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        weaker = OLH(0.9 * self.epsilon, self.domain, hash_range=self.buckets)
        weaker._randomize(encoded, rng, reports)  # noqa: SLF001


@caught_by("sampler_follows_its_law")
class HashWithoutOffset(OLH):
    """The hash is not uniform: the first item is always in bucket 0."""

    def _pack(self, numbers: NDArray[np.uint16], reports: NDArray[Any]) -> None:
        offset = numbers[1].copy()
        numbers[0] = (numbers[0] + self.buckets - offset) % self.buckets
        numbers[1] = 0
        super()._pack(numbers, reports)


@caught_by("sampler_follows_its_law")
class TellsOneItem(GRR):
    """One item of the domain is sent in the clear."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize(encoded, rng, reports)
        reports["item"] = np.where(encoded == 3, encoded, reports["item"])


@caught_by("one_report_is_as_private_as_many")
class OneAloneIsSentInTheClear(GRR):
    """Right in every batch, and naked on a device, which draws a batch of one."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize(encoded, rng, reports)
        if encoded.size == 1:
            reports["item"] = encoded


@caught_by("same_seed_same_reports")
class GlobalRandomness(GRR):
    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        del rng
        kept = np.random.random(encoded.size) < self.kept / ONE  # noqa: NPY002
        anything = np.random.randint(0, self.size, encoded.size)  # noqa: NPY002
        reports["item"] = np.where(kept, encoded, anything)


@caught_by("same_seed_same_reports")
class OwnRandomness(GRR):
    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        del rng
        own = seeded(int.from_bytes(os.urandom(8), "little"))
        super()._randomize(encoded, own, reports)


@caught_by("same_seed_same_reports")
class NoRandomness(GRR):
    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        del rng
        super()._randomize(encoded, seeded(0), reports)


@caught_by("people_do_not_touch_each_other")
class DependsOnTheLastPerson(GRR):
    """What a shadowed loop variable does: everybody's report knows the last person's value."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize(encoded, rng, reports)
        reports["item"] = (reports["item"] + encoded[-1]) % self.size


@caught_by("people_do_not_touch_each_other")
class CoinsDependOnTheData(GRR):
    """Holders of the first item take more coins, so the next person's coins tell of them."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        for index, code in enumerate(encoded):
            if code == 0:
                rng.words(1)
            super()._randomize(encoded[index : index + 1], rng, reports[index : index + 1])


@caught_by("people_do_not_touch_each_other")
class CoinsAtTheEnd(GRR):
    """Holders of the first item take coins after everybody's report is made."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        super()._randomize(encoded, rng, reports)
        rng.words(int((encoded == 0).sum()))


# ---- the server -----------------------------------------------------------------------------


@caught_by("tally_adds_up")
class CountsEachKindOnce(GRR):
    def _sums(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        return np.minimum(super()._sums(reports), 1)


@caught_by("engines_agree")
class ForgetsHowMany(GRR):
    def tally(self, reports: NDArray[Any]) -> Tally:
        return Tally(int(len(reports) > 0), super().tally(reports).sums)


@caught_by("wire_round_trip")
class SwapsBytesOnTheWire(GRR):
    def decode(self, data: bytes) -> NDArray[Any]:
        return super().decode(data[::-1])


@caught_by("garbage_is_refused")
class AcceptsGarbage(GRR):
    def valid(self, reports: NDArray[Any]) -> NDArray[np.bool_]:
        return np.ones(len(reports), dtype=bool)

    def _sums(self, reports: NDArray[Any]) -> NDArray[np.int64]:
        return np.bincount(np.minimum(reports["item"], self.size - 1), minlength=self.size)


@caught_by("garbage_is_refused")
class WrapsUnknownValues(GRR):
    def encode(self, values: Any) -> NDArray[np.int64]:
        array = np.asarray(values)
        wrapped = array.dtype.kind in "iu"
        return array.astype(np.int64) % self.size if wrapped else super().encode(values)


@caught_by("estimates_are_unbiased_and_cover")
class VarianceTooSmall(OUE):
    def _covariance(self, share: NDArray[np.float64], n: int) -> Covariance:
        return Covariance(super()._variances(share, n) / 2)


@caught_by("estimates_are_unbiased_and_cover")
class ForgetsToDebias(GRR):
    def _estimate(self, tally: Tally) -> FrequencyEstimate:
        return replace(super()._estimate(tally), values=tally.sums / tally.n)


def _with_interval(right: FrequencyEstimate, ends: Callable[[], Any]) -> FrequencyEstimate:
    """Return an estimate with the same interval at every level."""

    class Other(type(right)):  # type: ignore[misc]
        def interval(self, level: float = 0.95) -> Any:
            del level
            return ends()

    return Other(**{name: getattr(right, name) for name in right.__dataclass_fields__})


@caught_by("estimates_are_unbiased_and_cover")
class IntervalsOfOneSigma(GRR):
    def _estimate(self, tally: Tally) -> FrequencyEstimate:
        right = super()._estimate(tally)
        return _with_interval(right, lambda: right.interval(0.68))


@caught_by("estimates_are_unbiased_and_cover")
class IntervalsAreEndless(GRR):
    def _estimate(self, tally: Tally) -> FrequencyEstimate:
        right = super()._estimate(tally)
        return _with_interval(right, lambda: (right.values - 1e6, right.values + 1e6))


@caught_by("estimates_are_unbiased_and_cover")
class ForgetsThatSharesVaryTogether(GRR):
    def _covariance(self, share: NDArray[np.float64], n: int) -> Covariance:
        return Covariance(super()._covariance(share, n).variances())


@caught_by("shuffled_reports_hide_as_stated")
class ClaimsToHideBetter(GRR):
    def meets(self, count: int) -> Fraction:
        return super().meets(count) / 2


@caught_by("shuffled_reports_hide_as_stated")
class ClaimsToHideBetterInPerson(GRR):
    contrasts = Mechanism.contrasts  # as if the whole law were told

    def __post_init__(self) -> None:
        super().__post_init__()
        half = GRR(self.epsilon / 2, self.domain)
        object.__setattr__(self, "contrasts", half.contrasts)


@caught_by("shuffled_reports_hide_as_stated")
class ClaimsToTellMore(GRR):
    def contrasts(self) -> tuple[Contrasts, ...]:
        (right,) = super().contrasts()
        return (replace(right, attained=GRR(2 * self.epsilon, 5).contrasts()[0].attained),)


@caught_by("simulated_tallies_agree")
class SimulatesWithoutNoise(OUE):
    def sample_tally(self, histogram: NDArray[np.int64], rng: Source) -> Tally:
        del rng
        n = int(histogram.sum())
        return Tally(n, np.round(histogram * self.p + (n - histogram) * self.q).astype(np.int64))


@caught_by("configuration_round_trip")
@dataclass(frozen=True)
class HidesAParameter(GRR):
    secret: int = 3

    def configuration(self) -> dict[str, Any]:
        plain = super().configuration()
        del plain["secret"]
        return plain


@pytest.mark.parametrize(("mutant", "check"), MUTANTS, ids=[m.__name__ for m, _ in MUTANTS])
def test_every_mutant_is_caught(mutant: type[Mechanism], check: str) -> None:
    by_name = {check.__name__: check for check in MECHANISM_CHECKS}
    with pytest.raises(CheckFailed):
        by_name[check](mutant(1.0, 5))  # type: ignore[call-arg]


def test_every_check_catches_some_mutant() -> None:
    """Those of all files beside this one count; files of wrong streams have none."""
    files = sorted(Path(__file__).parent.glob("test_mutants*.py"))
    modules = [importlib.import_module(f"{__package__}.{file.stem}") for file in files]
    caught = {check for module in modules for _, check in getattr(module, "MUTANTS", ())}
    assert caught == {check.__name__ for check in MECHANISM_CHECKS}


def test_a_verdict_names_the_check_that_failed() -> None:
    verdict = check_mechanism(LeaksATenthMore(1.0, 5))
    assert [name for name, _ in verdict.failures] == ["epsilon_is_spent_and_not_exceeded"]
    assert verdict.epsilon_exact_upper == pytest.approx(1.1)


@pytest.mark.statistics
@pytest.mark.parametrize("mechanism", [GRR(1.0, 5), OUE(1.0, 5), OLH(1.0, 5)], ids=str)
def test_the_mechanisms_they_are_made_from_pass(mechanism: Mechanism) -> None:
    assert check_mechanism(mechanism).failures == ()


def test_the_noise_free_mechanism_is_caught_and_not_in_the_catalogue() -> None:
    failures = dict(check_mechanism(NoiseFree(1.0, 5)).failures)
    assert "impossible" in failures["epsilon_is_spent_and_not_exceeded"]
    assert NoiseFree.name not in catalog.names()
