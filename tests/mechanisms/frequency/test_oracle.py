"""What holds for GRR, OUE and OLH alike: privacy over all sizes, exact moments, bad input."""

from __future__ import annotations

from collections import defaultdict
from decimal import Context, Decimal
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from sfumato import GRR, OLH, OUE, Tally, seeded
from sfumato.core.exact import log_below
from sfumato.errors import InputError
from sfumato.mechanisms.frequency import FrequencyOracle

KINDS = pytest.mark.parametrize("kind", [GRR, OUE, OLH])
FINE = Context(prec=80)


# ---- privacy ----------------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.01, 0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0])
def test_epsilon_is_spent_and_not_exceeded_for_every_domain(
    kind: type[FrequencyOracle], epsilon: float
) -> None:
    allowed = Fraction(FINE.exp(Decimal(epsilon)))
    for d in (2, 3, 5, 16, 100, 1000, 1 << 14, (1 << 20) - 1, 1 << 20):
        ratio = kind(epsilon, d).worst_ratio
        assert ratio <= allowed
        assert log_below(ratio) >= epsilon * (1 - 1e-6)


@KINDS
@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 10.0])
def test_one_step_more_of_the_threshold_would_exceed_epsilon(
    kind: type[FrequencyOracle], epsilon: float
) -> None:
    """The 64-bit threshold is the last one on the safe side."""
    allowed = Fraction(FINE.exp(Decimal(epsilon)))
    mechanism: Any = kind(epsilon, 1000)
    if kind is OUE:
        vars(mechanism)["raised"] = mechanism.raised - 1
    else:
        vars(mechanism)["kept"] = mechanism.kept + 1
    assert mechanism.worst_ratio > allowed


@KINDS
def test_supports_are_probabilities_and_a_holder_supports_more(
    kind: type[FrequencyOracle],
) -> None:
    for epsilon in (1e-6, 1.0, 20.0):
        mechanism = kind(epsilon, 50)
        p, q = mechanism.supports
        assert 0 < q < p < 1
        assert mechanism.gap == float(p - q) > 0
        assert mechanism.influence == pytest.approx(float(1 / (p - q)))


# ---- moments, exactly -------------------------------------------------------------------------


def support_law(mechanism: FrequencyOracle, value: Any) -> dict[tuple[int, ...], Fraction]:
    """With what probability a report of this value supports which items."""
    found: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    publics = mechanism.publics()
    for public in publics:
        law = mechanism.law(value, public)
        for index, numerator in enumerate(law.numerators):
            sums = mechanism.tally(law.outputs[index : index + 1]).sums
            found[tuple(sums.tolist())] += Fraction(numerator, law.denominator * len(publics))
    return found


def tally_law(mechanism: FrequencyOracle, people: list[Any]) -> dict[tuple[int, ...], Fraction]:
    """With what probability these people's reports have which sums."""
    total = {(0,) * mechanism.size: Fraction(1)}
    laws = {value: support_law(mechanism, value) for value in set(people)}
    for value in people:
        more: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
        for sums, chance in total.items():
            for supports, also in laws[value].items():
                more[tuple(map(sum, zip(sums, supports, strict=True)))] += chance * also
        total = more
    return total


@pytest.mark.parametrize(
    ("mechanism", "people"),
    [
        (GRR(1.0, 3), [0, 0, 2]),
        (GRR(0.5, 4), [1, 2, 2]),
        (GRR(2.0, ("a", "b", "c")), ["a", "b", "c"]),
        (OUE(1.0, 3), [0, 2, 2]),
        (OUE(2.0, 4), [3, 3]),
        (OLH(1.0, 4), [0, 3, 3]),
        (OLH(1.5, 3, hash_range=6), [1, 2]),
        (OLH(0.7, 5, hash_range=2), [4, 0, 1]),
    ],
    ids=str,
)
def test_shares_are_unbiased_and_vary_together_exactly_as_stated(
    mechanism: FrequencyOracle, people: list[Any]
) -> None:
    """Over every outcome of a tiny collection, summed with its exact probability.

    The stated covariance is affine in the estimated shares, so its mean is the true one.
    """
    law = tally_law(mechanism, people)
    assert sum(law.values()) == 1
    chances = np.array([float(chance) for chance in law.values()])
    estimates = [mechanism.estimate(Tally(len(people), np.array(sums))) for sums in law]
    values = np.array([estimate.values for estimate in estimates])
    stated = np.array([estimate.covariance.matrix() for estimate in estimates])
    mean = chances @ values
    assert mean == pytest.approx(mechanism.truth(people), abs=1e-12)
    apart = values - mean
    assert np.einsum("i,ijk->jk", chances, stated) == pytest.approx(
        (apart * chances[:, None]).T @ apart, abs=1e-12
    )


def test_the_variances_are_those_of_the_literature() -> None:
    for epsilon in (0.5, 1.0, 3.0):
        e = np.exp(epsilon)
        best = 4 * e / (e - 1) ** 2
        assert OUE(epsilon, 50).variance(0) == pytest.approx(best)
        assert OUE(epsilon, 50).variance(0.3) == pytest.approx(best + 0.3)
        assert best <= OLH(epsilon, 50).variance(0) < 1.03 * best
        d, f = 50, 0.3
        assert GRR(epsilon, d).variance(f) == pytest.approx(
            (d - 2 + e) / (e - 1) ** 2 + f * (d - 2) / (e - 1)
        )


# ---- collections of realistic size ------------------------------------------------------------


@pytest.mark.parametrize(
    "mechanism", [GRR(1.0, 40), OUE(1.0, 40), OLH(1.0, 40), OLH(2.5, 40, hash_range=16)], ids=str
)
def test_simulated_tallies_have_the_moments_of_real_ones(mechanism: FrequencyOracle) -> None:
    n, rounds = 2_000, 250
    held = np.bincount(seeded(1).simulator().geometric(0.2, n) % 40, minlength=40)
    people = np.repeat(np.arange(40), held)
    drawn, real = np.empty((2, rounds, 40))
    for index in range(rounds):
        drawn[index] = mechanism.sample_tally(held, seeded(index)).sums
        real[index] = mechanism.tally(mechanism.randomize(people, seeded(9_000 + index))).sums
    p, q = mechanism.p, mechanism.q
    mean = held * p + (n - held) * q
    variance = held * p * (1 - p) + (n - held) * q * (1 - q)
    for sums in (drawn, real):
        z = (sums.mean(axis=0) - mean) / np.sqrt(variance / rounds)
        assert np.abs(z).max() < 6
        assert 0.5 < z.std() < 1.6
        ratio = sums.var(axis=0) / variance
        assert np.abs(ratio - 1).max() < 6 * np.sqrt(2 / rounds)


@KINDS
def test_labels_and_numbers_give_the_same_reports(kind: type[FrequencyOracle]) -> None:
    names = tuple("abcdefg")
    codes = seeded(2).below(7, 200)
    by_number = kind(1.0, 7).randomize(codes, seeded(3))
    by_name = kind(1.0, names).randomize([names[code] for code in codes], seeded(3))
    assert by_number.tobytes() == by_name.tobytes()


# ---- what a mechanism is handed ---------------------------------------------------------------


TABLE = "values is a table with columns a, b; one column is expected."
NUMBERS = "whole numbers 0..2 are expected."
BAD: list[tuple[Any, str]] = [
    ([], "values is empty; at least one value is expected."),
    ([0, None], "values[1] is missing; drop or fill it first."),
    ([0, float("nan")], "values[1] is nan; every value must be a finite number."),
    ([0, 1.0, float("-inf")], "values[2] is -inf; every value must be a finite number."),
    ([0, 1.5], f"values[1] is 1.5; {NUMBERS}"),
    ([0, "cat"], f"values[1] is 'cat'; {NUMBERS}"),
    ([0, 3], "values[1] is 3; the domain has the items 0..2."),
    ([0, 1, -1], "values[2] is -1; the domain has the items 0..2."),
    ([[0, 1]], "values has shape (1, 2); one column, a flat list of values, is expected."),
    (pl.Series([None, None, 1]), "values[0] and 1 more are missing; drop or fill them first."),
    (
        pa.table({"a": [1], "b": [2]}),
        "values is a table with columns a, b; one column is expected.",
    ),
    (object(), "values has type object; a list, array, series or column is expected."),
]


@KINDS
@pytest.mark.parametrize(("values", "says"), BAD, ids=[says for _, says in BAD])
def test_bad_input_is_refused_in_one_sentence(
    kind: type[FrequencyOracle], values: Any, says: str
) -> None:
    for ask in (partial(kind(1.0, 3).randomize, rng=seeded(0)), kind(1.0, 3).truth):
        with pytest.raises(InputError) as caught:
            ask(values)
        assert str(caught.value) == says


def exact_shares(people: NDArray[np.int64], size: int) -> list[float]:
    return [float((people == item).mean()) for item in range(size)]


@KINDS
def test_the_truth_is_the_share_of_each_item(kind: type[FrequencyOracle]) -> None:
    people = seeded(5).below(6, 100)
    assert kind(1.0, 6).truth(people).tolist() == exact_shares(people, 6)
