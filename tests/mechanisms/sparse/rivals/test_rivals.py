"""Rivals have the errors that were derived for them, and estimate without bias."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from sfumato import catalog, planner
from sfumato.core.exact import log_above
from sfumato.errors import ConfigurationError
from sfumato.mechanisms import (
    DDRM,
    EFMRTT,
    KVUE,
    PCKVAGRR,
    PCKVGRR,
    PCKVUE,
    ExSub,
    FutureRand,
    PrivKV,
    Succinct,
    ToPLTernary,
)
from sfumato.mechanisms.sparse.sparse_mechanism import SparseMechanism
from sfumato.randomness import seeded

RIVALS = [name for name in catalog.names() if catalog.find(name).role == "rival"]
FINE = {"steps": 1 << 24}

VARIANCES: list[tuple[Any, dict[str, Any], str, str]] = [
    (PrivKV, {}, "1039.63 1713.06", "603.239 1638.77"),
    (PrivKV, {"split": "tight"}, "247.906 459.892", "130.308 545.583"),
    (KVUE, {}, "204.553 379.292", "117.766 492.971"),
    (PCKVUE, {}, "419.276 440.79", "21.2416 28.7237"),
    (PCKVGRR, {"amplified": False}, "5623.7 6226.65", "406.38 729.928"),
    (PCKVGRR, {}, "96.018 177.511", "26.3379 109.475"),
    (PCKVAGRR, {}, "96.018 177.511", "26.3379 109.475"),
    (EFMRTT, {"budget": "half"}, "1066.93 1065.93", "74.9231 73.9231"),
    (EFMRTT, {}, "299.692 298.692", "27.585 26.585"),
    (DDRM, {}, "256.667 255.667", "16.6708 15.6708"),
    (FutureRand, {}, "1393.45 1392.45", "178.334 177.334"),
    (Succinct, FINE, "162.635 161.635", "22.5005 21.5005"),
    (Succinct, {"noise": "rounding", **FINE}, "90.2598 89.2598", "15.7417 14.7417"),
]
"""The variance of one person's estimate of a zero and of a non-zero entry, in two settings."""


@pytest.mark.parametrize(("kind", "options", "first", "second"), VARIANCES)
def test_variances_are_those_of_the_definitions(
    kind: Any, options: dict[str, Any], first: str, second: str
) -> None:
    for sizes, expected in (((1.0, 64, 8), first), ((2.0, 256, 4), second)):
        law = kind(*sizes, exact_sparsity=True, **options).probabilities
        assert " ".join(f"{variance:.6g}" for variance in law.value_variances()) == expected


def test_presence_uses_how_many_were_asked() -> None:
    p = math.exp(1) / (math.exp(1) + 2)
    q = (1 - p) / 2
    zero, held = KVUE(1.0, 64, 8, goal="frequency").probabilities.presence_variances()
    assert zero == pytest.approx(64 * 2 * q * (1 - 2 * q) / (p - q) ** 2)
    assert held == pytest.approx(64 * ((1 - q) * (1 - 2 * q) ** 2 + 4 * q**3) / (p - q) ** 2 - 1)


@pytest.mark.parametrize(
    ("mechanism", "spends"),
    [
        (PrivKV(1.0, 9, 3), 1 + math.log(2 / (1 + math.exp(0.5)))),
        (PrivKV(1.0, 9, 3, split="tight"), 1.0),
        (KVUE(1.0, 9, 3), 1.0),
        (PCKVUE(1.0, 9, 3), 1.0),
        (PCKVGRR(1.0, 9, 3), 1.0),
        (PCKVGRR(1.0, 9, 3, amplified=False), math.log((math.e + 2) / 3)),
        (EFMRTT(1.0, 9, 3, budget="half"), 0.5),
        *((DDRM(1.0, 9, 3, keep=keep), 1.0) for keep in (1, 2, 3)),
        *((ToPLTernary(1.0, 9, 3, reading=reading), 1.0) for reading in ("one", "all")),
        *((Succinct(1.0, 9, 3, noise=noise), 1.0) for noise in ("laplace", "rounding")),
    ],
    ids=str,
)
def test_what_is_spent_is_stated_exactly(mechanism: SparseMechanism, spends: float) -> None:
    assert log_above(mechanism.worst_ratio) == pytest.approx(spends, rel=1e-12)


@pytest.mark.parametrize("sparsity", [1, 4, 20])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_flips_within_a_range_keep_epsilon(epsilon: float, sparsity: int) -> None:
    printed, calibrated = (
        FutureRand(epsilon, 128, sparsity, constants=constants)
        for constants in ("printed", "calibrated")
    )
    assert 0.1 * epsilon < log_above(printed.worst_ratio) < 0.6 * epsilon
    assert 0.6 * epsilon < log_above(calibrated.worst_ratio) <= epsilon
    assert calibrated.mse < printed.mse


def test_agrr_is_exsub_with_subsets_of_one() -> None:
    for exact in (False, True):
        agrr, grr = (kind(1.0, 3, 2, exact_sparsity=exact) for kind in (PCKVAGRR, PCKVGRR))
        exsub = ExSub(1.0, 3, 2, subset_size=1, exact_sparsity=exact)
        for value in exsub.inputs():
            ours, theirs, its = (each.law(value) for each in (agrr, grr, exsub))
            assert ours.numerators == theirs.numerators == its.numerators
            assert ours.outputs.tobytes() == its.outputs.tobytes()


def _sure(mechanism: SparseMechanism, seed: int) -> None:
    """Assert that estimates are unbiased, by so many people that 5% off would show."""
    d, s = mechanism.dimension, mechanism.sparsity
    held = mechanism.probabilities.value_variances()[1]
    n = int(held * (2 * 6.0 / 0.05) ** 2) + 1
    vector = np.zeros(d, dtype=np.int8)
    vector[[1, d - 1][:s]] = [1, -1][:s]
    tally = mechanism.tally(mechanism.randomize(np.tile(vector, (n, 1)), seeded(seed)))
    values = mechanism.estimate(tally).values
    limit = 5.8 * math.sqrt(held / n)
    assert limit < 0.025  # so that values that are off by a twentieth are refused
    for place in np.flatnonzero(vector):
        assert abs(values[place] - vector[place]) < limit
        for wrong in (0.95, 1.05):
            assert abs(values[place] - wrong * vector[place]) > limit
    zeros = values[vector == 0]
    assert (np.abs(zeros) < 6.5 * math.sqrt(mechanism.probabilities.value_variances()[0] / n)).all()


@pytest.mark.statistics
@pytest.mark.parametrize("name", RIVALS)
def test_estimates_are_unbiased(name: str) -> None:
    _sure(catalog.build(name, epsilon=6.0, dimension=6, sparsity=2), seed=1)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "options", "_first", "_second"), VARIANCES)
def test_estimates_are_unbiased_with_every_option(
    kind: Any, options: dict[str, Any], _first: str, _second: str
) -> None:
    _sure(kind(4.0, 12, 2, **{k: v for k, v in options.items() if k != "steps"}), seed=2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [PrivKV, KVUE, PCKVUE, PCKVGRR, PCKVAGRR])
def test_frequencies_are_unbiased_and_vary_as_stated(kind: Any) -> None:
    mechanism, n, rounds = kind(3.0, 8, 2, goal="frequency"), 2_000, 4_000
    vector = np.array([0, 1, 0, 0, -1, 0, 0, 0])
    reports = mechanism.randomize(np.tile(vector, (n * rounds, 1)), seeded(3))
    values = np.array(
        [mechanism.estimate(mechanism.tally(part)).values for part in reports.reshape(rounds, n)]
    )
    absent, present = mechanism.probabilities.presence_variances()
    stated = np.where(vector != 0, present, absent) / n
    assert (np.abs(values.mean(0) - np.abs(vector)) < 5.8 * np.sqrt(stated / rounds)).all()
    assert (np.abs(values.var(0) / stated - 1) < 5.8 * math.sqrt(2.2 / rounds)).all()


def _error(mechanism: SparseMechanism, each: int, groups: int) -> tuple[float, float]:
    """Return n times the squared error of n people, and its standard error over the groups."""
    vector = np.zeros(mechanism.dimension, dtype=np.int8)
    vector[: mechanism.sparsity] = np.resize([1, -1], mechanism.sparsity)
    people = np.broadcast_to(vector, (groups * each, mechanism.dimension))
    reports = mechanism.randomize(people, seeded(5))
    errors = [
        each * np.square(mechanism.estimate(mechanism.tally(part)).values - vector).sum()
        for part in reports.reshape(groups, each)
    ]
    return float(np.mean(errors)), float(np.std(errors, ddof=1)) / math.sqrt(groups)


@pytest.mark.slow
@pytest.mark.parametrize("name", RIVALS)
def test_the_simulated_error_is_the_exact_one(name: str) -> None:
    mechanism: Any = catalog.build(name, epsilon=1.0, dimension=256, sparsity=8)
    # One number for all entries makes their errors move together.
    groups = 3_000 if name == "succinct" else 600
    error, spread = _error(mechanism, 2_000 if name in ("privkv", "kvue") else 100, groups)
    assert abs(error - mechanism.mse) < 5.8 * spread
    assert 8.8 * spread < 0.05 * mechanism.mse  # so that one that is off by a twentieth is refused


@pytest.mark.parametrize("noise", ["laplace", "rounding"])
def test_what_clipping_takes_away_is_known(noise: Any) -> None:
    plain, debiased = (Succinct(1.0, 64, 8, noise=noise, debiased=on) for on in (False, True))
    assert plain.shrinkage == pytest.approx(0.7821, abs=5e-4)
    tally = plain.tally(plain.randomize(np.eye(64, dtype=int), seeded(1)))
    shrunk, whole = plain.estimate(tally), debiased.estimate(tally)
    assert shrunk.values == pytest.approx(plain.shrinkage * whole.values)
    assert shrunk.standard_errors == pytest.approx(plain.shrinkage * whole.standard_errors)
    biased, unbiased = (
        Succinct(1.0, 64, 8, debiased=on, devices=10**6).mse for on in (False, True)
    )
    assert biased > 5 * unbiased  # with many people the bias is all that remains


@pytest.mark.parametrize(
    ("kind", "options", "sentence"),
    [
        (PrivKV, {"split": "third"}, "split is 'third'; half or tight"),
        (EFMRTT, {"budget": 1}, "budget is 1; whole or half"),
        (DDRM, {"keep": 3}, "keep is 3; a whole number in 1..2"),
        (ToPLTernary, {"reading": "none"}, "reading is 'none'; one or all"),
        (FutureRand, {"constants": "new"}, "constants is 'new'; printed or calibrated"),
        (PCKVGRR, {"amplified": 1}, "amplified is 1; true or false"),
        (Succinct, {"noise": "gauss"}, "noise is 'gauss'; laplace or rounding"),
        (Succinct, {"steps": 0}, "steps is 0; a whole number in 1"),
        (DDRM, {"goal": "frequency"}, "goal is 'frequency'; ddrm sends something for every entry"),
        (KVUE, {"goal": "shares"}, "goal is 'shares'; value or frequency"),
    ],
)
def test_a_wrong_option_gets_one_sentence(
    kind: Any, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        kind(1.0, 4, 2, **options)


def test_rivals_are_compared_only_on_request_and_never_recommended() -> None:
    question: dict[str, Any] = {"epsilon": 1.0, "dimension": 40, "sparsity": 4}
    usual = {mechanism.name for mechanism in planner.candidates(**question)}
    assert not usual & set(RIVALS)
    every = {mechanism.name for mechanism in planner.candidates(rivals=True, **question)}
    assert every == usual | set(RIVALS)
    shares = planner.candidates(rivals=True, **question, goal="frequency")
    named = {mechanism.name for mechanism in shares if mechanism.role == "rival"}
    assert named == {"kvue", "pckv_agrr", "pckv_grr", "pckv_ue", "privkv"}
