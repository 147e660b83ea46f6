"""Rivals with one thing wrong, some of it as printed or published, each caught by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato.checks import MECHANISM_CHECKS, CheckFailed
from sfumato.core import Estimate, Mechanism, Tally
from sfumato.core.exact import exp_below
from sfumato.core.law import Law
from sfumato.mechanisms import (
    DDRM,
    EFMRTT,
    KVUE,
    PCKVAGRR,
    PCKVGRR,
    PCKVUE,
    FutureRand,
    PrivKV,
    Succinct,
    ToPLTernary,
)
from sfumato.mechanisms.sparse.rivals.laplace_scale import LaplaceScale
from sfumato.mechanisms.sparse.sparse_mechanism import weight_above
from sfumato.randomness import ONE, Source

MUTANTS: list[tuple[Mechanism, str]] = []
EPSILON = "epsilon_is_spent_and_not_exceeded"
SAMPLER = "sampler_follows_its_law"
PATHS = "every_path_follows_the_law"
ESTIMATES = "estimates_are_unbiased_and_cover"


def caught_by(check: str, *arguments: Any, **named: Any) -> Callable[[type[Any]], type[Any]]:
    def register(mutant: type[Any]) -> type[Any]:
        MUTANTS.append((mutant(*arguments, **named), check))
        return mutant

    return register


# ---- privacy --------------------------------------------------------------------------------


@caught_by(EPSILON, 1.0, 3, 3)
class OneDummyForAll(PCKVAGRR):
    """All padding is one dummy symbol instead of s distinct ones."""

    def law(self, value: Any, public: Any = None) -> Law:
        del public
        encoded, s = self.encode([value])[0], self.sparsity
        grown = s * (exp_below(self.epsilon) - 1) + 1
        places, signs = encoded["position"].tolist(), encoded["sign"].tolist()
        symbols = [
            2 * min(place, self.dimension) + (sign < 0)
            for place, sign in zip(places, signs, strict=True)
        ]
        weights = [
            sum(grown if symbol == sent else Fraction(1) for symbol in symbols)
            for sent in range(2 * self.dimension + 1)
        ]
        whole = sum(weights)
        numerators = [int(weight * (1 << 200) / whole) for weight in weights]
        outputs = np.zeros(len(weights), dtype=self.report_dtype)
        outputs["packed"] = np.arange(len(weights))[:, None]
        return Law(outputs, tuple(numerators), sum(numerators))


@caught_by(EPSILON, 1.0, 2, 1)
class TwoEntriesOneBudget(EFMRTT):
    """The coin has the epsilon of two entries, as if only one of them could differ."""

    @property
    def spent(self) -> Fraction:
        return 2 * super().spent


@caught_by(EPSILON, 1.0, 2, 2)
class EpsilonForEach(DDRM):
    """Each of the entries that are kept has the whole epsilon."""

    @property
    def spent(self) -> Fraction:
        return self.kept * super().spent


@caught_by(EPSILON, 1.0, 2, 1)
class EpsilonTwice(PrivKV):
    """Presence and sign have all of epsilon each."""

    @cached_property
    def rows(self) -> Any:
        return replace(PrivKV(2.0, 2, 1), epsilon=2 * self.epsilon).rows


@caught_by(EPSILON, 1.0, 2, 1)
class SignsAreFree(PCKVUE):
    """Entries are sent as often as in unary coding without signs."""

    @cached_property
    def rows(self) -> Any:
        low = weight_above(-Fraction(self.epsilon))
        return super().rows[0], (low, low, 2 * ONE)


@caught_by(EPSILON, 1.0, 3, 2, constants="calibrated")
class NoRange(FutureRand):
    """Coins of epsilon each, without a range of flips; the class itself would refuse them."""

    def _check_options(self) -> None:
        pass

    @cached_property
    def sign_weights(self) -> tuple[int, ...]:
        s, low = self.sparsity, weight_above(-Fraction(self.epsilon))
        return tuple(ONE**agree * low ** (s - agree) for agree in range(s + 1))


@caught_by(EPSILON, 1.0, 2, 1, exact_sparsity=True, steps=1)
class NoiseForOneSide(Succinct):
    """The noise has the scale of the clip, although two sums differ by twice the clip."""

    @cached_property
    def _scale(self) -> LaplaceScale:
        return LaplaceScale(Fraction(self.epsilon) / self.grid)


@caught_by(EPSILON, 1.0, 2, 1, exact_sparsity=True, steps=1)
class NoiseThatEnds(Succinct):
    """Noise beyond the last step is left out, and not counted with it."""

    @cached_property
    def _scale(self) -> LaplaceScale:
        right = super()._scale
        shorter = object.__new__(LaplaceScale)
        vars(shorter).update(rate=right.rate, weights=right.weights[:-1])
        return shorter


# ---- the sampler ----------------------------------------------------------------------------


@caught_by(SAMPLER, 8.0, 2, 2)
class FairOutside(FutureRand):
    """If too many coins are flipped, every sign is a fair one of its own."""

    def _agree_weights(self, hits: int) -> Any:
        low, kept = weight_above(-Fraction(self.coin_epsilon)), {0}  # no flip is kept, here
        tossed = [ONE ** (hits - flips) * low**flips for flips in range(hits + 1)]
        mass = sum(
            comb(hits, flips) * tossed[flips] for flips in range(hits + 1) if flips not in kept
        )
        for agree in range(hits + 1):
            flips = hits - agree
            inside = tossed[flips] << hits if flips in kept else 0
            yield comb(hits, agree) * (inside + mass)


@caught_by(SAMPLER, 2.0, 2, 2)
class ForgetsTheSign(DDRM):
    """The sign of an entry never gets into the report, as in the published FutureRand code."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        encoded = encoded.copy()
        encoded["sign"] = 1
        super()._randomize(encoded, rng, reports)


@caught_by(PATHS, 2.0, 2, 2)
class FirstNonZero(PCKVUE):
    """The first non-zero is favoured, not one drawn by chance."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        encoded = encoded.copy()
        encoded["position"], encoded["sign"] = encoded["position"][:, :1], encoded["sign"][:, :1]
        super()._randomize(encoded, rng, reports)


@caught_by("people_do_not_touch_each_other", 1.0, 2, 1)
class ZerosSaveCoins(KVUE):
    """Nothing is drawn for people who hold nothing."""

    def _randomize(self, encoded: NDArray[Any], rng: Source, reports: NDArray[Any]) -> None:
        rng.bits(int((encoded["position"] < self.dimension).sum()))
        super()._randomize(encoded, rng, reports)


# ---- the server -----------------------------------------------------------------------------


@caught_by(ESTIMATES, 2.0, 2, 2, reading="all")
class SignsAsNumbers(ToPLTernary):
    """Plus and minus count as 1 and -1, as printed, which makes values too small."""

    def _estimate(self, tally: Tally) -> Estimate:
        right = super()._estimate(tally)
        return replace(right, values=right.values * self.probabilities.contrast)


@caught_by(ESTIMATES, 3.0, 3, 2, amplified=False)
class DecodedAsAmplified(PCKVGRR):
    """Estimates are those of the amplified mechanism, although reports are not."""

    def _estimate(self, tally: Tally) -> Estimate:
        return PCKVGRR(3.0, 3, 2)._estimate(tally)  # noqa: SLF001


@caught_by(ESTIMATES, 1.0, 3, 2, goal="frequency")
class CountsAnswersOnly(KVUE):
    """How many say that an entry is there, not corrected for those who only say so."""

    def _held(self, tally: Tally) -> NDArray[np.float64]:
        return np.asarray(tally.sums[:2].sum(axis=0) / tally.n / self.probabilities.asked)


@caught_by(ESTIMATES, 4.0, 3, 2, exact_sparsity=True, steps=8, debiased=False)
class AsPapersCompare(Succinct):
    """The plain estimate, which is too small by what clipping takes away."""


@pytest.mark.parametrize(
    ("mutant", "check"), MUTANTS, ids=[type(mutant).__name__ for mutant, _ in MUTANTS]
)
def test_every_mutant_is_caught(mutant: Mechanism, check: str) -> None:
    by_name = {check.__name__: check for check in MECHANISM_CHECKS}
    with pytest.raises(CheckFailed):
        by_name[check](mutant)
