"""Subset selection: its law, its errors and its reports, against enumeration."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import combinations
from math import comb, exp, sqrt
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2

from sfumato.checks.sampler import people_do_not_touch_each_other
from sfumato.core.exact import exp_below
from sfumato.errors import ConfigurationError, ReportError
from sfumato.mechanisms import GRR, OUE, SubsetSelection
from sfumato.mechanisms.frequency import subset_selection
from sfumato.randomness import secure, seeded

SMALL = [
    SubsetSelection(1.0, 2),
    SubsetSelection(1.0, 5, subset_size=2),
    SubsetSelection(0.3, 6),
    SubsetSelection(2.0, 5, subset_size=4),
    SubsetSelection(2.0, 17),
]


def held(mechanism: SubsetSelection) -> NDArray[np.int64]:
    """Which items each output of the law holds, by tallying it alone."""
    outputs = mechanism.law(0).outputs
    return np.array([mechanism.tally(outputs[i : i + 1]).sums for i in range(len(outputs))])


@pytest.mark.parametrize("mechanism", SMALL, ids=str)
def test_the_law_is_the_mixture_of_the_formula(mechanism: SubsetSelection) -> None:
    d, w = mechanism.size, mechanism.members
    kept = Fraction(mechanism.kept, 1 << 64)
    table = held(mechanism)
    assert sorted(map(tuple, table.tolist()), reverse=True) == [
        tuple(int(i in chosen) for i in range(d)) for chosen in combinations(range(d), w)
    ]
    for value in range(d):
        law = mechanism.law(value)
        for row, numerator in zip(table, law.numerators, strict=True):
            own = kept / comb(d - 1, w - 1) if row[value] else 0
            assert Fraction(numerator, law.denominator) == own + (1 - kept) / comb(d, w)


@pytest.mark.parametrize("mechanism", SMALL, ids=str)
def test_supports_and_covariance_are_those_of_the_law(mechanism: SubsetSelection) -> None:
    d = mechanism.size
    table = held(mechanism).astype(float)
    people = [0, 0, 1, d - 1]
    total = np.zeros((d, d))
    for value in range(d):
        law = mechanism.law(value)
        exact = [
            sum(
                Fraction(number, law.denominator)
                for number, row in zip(law.numerators, table, strict=True)
                if row[item]
            )
            for item in range(d)
        ]
        p, q = mechanism.supports
        assert exact == [p if item == value else q for item in range(d)]
        mean = law.probabilities @ table
        second = (table.T * law.probabilities) @ table
        total += people.count(value) * (second - np.outer(mean, mean))
    n = len(people)
    stated = mechanism._covariance(mechanism.truth(people), n).matrix()  # noqa: SLF001
    assert stated == pytest.approx(total / (n * mechanism.gap) ** 2, rel=1e-9, abs=1e-12)


def test_what_sums_to_a_constant_has_no_variance() -> None:
    mechanism = SubsetSelection(1.0, 300)
    estimate = mechanism.estimate(mechanism.tally(mechanism.randomize([7] * 500, seeded(1))))
    assert estimate.values.sum() == pytest.approx(1)
    assert float(estimate.variance_of(np.ones(300))) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0, 20.0])
def test_no_other_size_has_a_smaller_variance(epsilon: float) -> None:
    for d in (*range(2, 24), 57, 100):
        best = min(SubsetSelection(epsilon, d, subset_size=w).mse for w in range(1, d))
        assert SubsetSelection(epsilon, d).mse == best


@pytest.mark.parametrize("d", [2, 10, 128, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_variances_have_the_closed_form(epsilon: float, d: int) -> None:
    mechanism = SubsetSelection(epsilon, d)
    w, e = mechanism.members, exp(epsilon)
    gap = w * (d - w) * (e - 1) / ((d - 1) * (w * e + d - w))
    q = w * (e * (w - 1) + d - w) / ((d - 1) * (w * e + d - w))
    for share in (0.0, 0.2, 1.0):
        expected = q * (1 - q) / gap**2 + share * (1 - q - gap - q) / gap
        assert mechanism.variance(share) == pytest.approx(expected, rel=1e-9)
    over_all = (d - 1) ** 2 * (w * e + d - w) ** 2 / (d * w * (d - w) * (e - 1) ** 2)
    average = (over_all - (d - 1) / d) / d
    assert mechanism.mse == pytest.approx(average, rel=1e-9)


def test_one_item_is_randomized_response() -> None:
    for epsilon in (0.5, 3.0):
        one, response = SubsetSelection(epsilon, 6, subset_size=1), GRR(epsilon, 6)
        assert one.supports == response.supports
        assert one.worst_ratio == response.worst_ratio


@pytest.mark.parametrize("epsilon", [0.5, 0.75, 1.0])
def test_at_ten_items_it_needs_a_fifth_fewer_people_than_the_papers_choose(epsilon: float) -> None:
    best = min(GRR(epsilon, 10).mse, OUE(epsilon, 10).mse)
    assert 0.195 < 1 - SubsetSelection(epsilon, 10).mse / best < 0.25
    assert 1.24 < best / SubsetSelection(epsilon, 10).mse < 1.32


def test_all_of_epsilon_is_spent_at_any_size() -> None:
    for epsilon, d, size in [(1.0, 10**6, None), (0.01, 999, None), (5.0, 50, 49), (20.0, 7, 3)]:
        mechanism = SubsetSelection(epsilon, d, size)
        assert mechanism.worst_ratio <= exp_below(epsilon)
        # One step of 2^-64 more would be too much.
        more = Fraction(mechanism.kept + 1, (1 << 64) - mechanism.kept - 1)
        assert 1 + more * Fraction(d, mechanism.members) > exp_below(epsilon)


# ---- reports --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "d", "field", "size"),
    [
        (1.0, 8, "bits", 1),
        (1.0, 128, "bits", 16),
        (1.0, 1000, "bits", 125),
        (3.0, 128, "items", 6),
        (4.0, 1000, "items", 36),
        (5.0, 100_000, "items", 4 * 669),
    ],
)
def test_a_report_takes_the_fewer_bytes(epsilon: float, d: int, field: str, size: int) -> None:
    mechanism = SubsetSelection(epsilon, d)
    assert mechanism.report_dtype.names == (field,)
    assert mechanism.report_bytes == size


def packed(mechanism: SubsetSelection, *fields: Any) -> bool:
    reports = np.empty(1, dtype=mechanism.report_dtype)
    reports[mechanism.report_dtype.names[0]] = fields  # type: ignore[index]
    return bool(mechanism.valid(reports)[0])


def test_sets_of_bits_are_judged() -> None:
    mechanism = SubsetSelection(1.0, 10, subset_size=3)
    assert packed(mechanism, 0b111, 0)
    assert packed(mechanism, 0b1, 0b11)
    assert not packed(mechanism, 0b11, 0)  # too few
    assert not packed(mechanism, 0b1111, 0)  # too many
    assert not packed(mechanism, 0b11, 0b100)  # there is no item 10


def test_lists_of_items_are_judged() -> None:
    mechanism = SubsetSelection(3.0, 40, subset_size=3)
    assert packed(mechanism, 0, 7, 39)
    assert not packed(mechanism, 7, 0, 39)  # not in order
    assert not packed(mechanism, 0, 7, 7)  # twice
    assert not packed(mechanism, 0, 7, 40)  # there is no item 40
    assert not packed(mechanism, 255, 0, 7)
    with pytest.raises(ReportError, match="cannot come from subset_selection"):
        mechanism.decode(bytes([7, 0, 39]))


@pytest.mark.parametrize("subset_size", [0, 5, -1, 2.0, True, "2"])
def test_a_size_that_cannot_be_is_refused(subset_size: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"subset_size is .*; a whole number in 1\.\.4"):
        SubsetSelection(1.0, 5, subset_size)


@pytest.mark.parametrize(
    "mechanism",
    [
        SubsetSelection(1.0, 200),
        SubsetSelection(1.0, 70, subset_size=50),
        SubsetSelection(3.0, 200),
        SubsetSelection(4.0, 9000),
    ],
    ids=str,
)
def test_the_sampler_keeps_to_its_supports_in_large_domains(mechanism: SubsetSelection) -> None:
    n, d = 6000, mechanism.size
    people = np.full(n, d - 2)
    counts = mechanism.tally(mechanism.randomize(people, seeded(d))).sums
    chance = np.full(d, mechanism.q)
    chance[d - 2] = mechanism.p
    z = (counts - n * chance) / np.sqrt(n * chance * (1 - chance))
    assert counts.sum() == n * mechanism.members
    assert np.abs(z).max() < 6
    people_do_not_touch_each_other(mechanism)


def test_it_works_with_secure_coins_and_labels() -> None:
    mechanism = SubsetSelection(4.0, ("a", "b", "c", "d"))
    estimate = mechanism.estimate(mechanism.tally(mechanism.randomize(["c"] * 400, secure())))
    assert int(estimate.values.argmax()) == 2


# ---- simulation -----------------------------------------------------------------------------


def joint_law(mechanism: SubsetSelection, people: list[int]) -> dict[tuple[int, ...], float]:
    table = held(mechanism)
    sums: dict[tuple[int, ...], float] = {(0,) * mechanism.size: 1.0}
    for value in people:
        more: Counter[tuple[int, ...]] = Counter()
        for row, chance in zip(table, mechanism.law(value).probabilities, strict=True):
            for before, weight in sums.items():
                more[tuple((np.array(before) + row).tolist())] += weight * chance
        sums = dict(more)
    return sums


@pytest.mark.statistics
@pytest.mark.parametrize("people_at_once", [10**9, 3])
@pytest.mark.parametrize(
    ("mechanism", "people"),
    [
        (SubsetSelection(1.0, 4, subset_size=2), [0, 0, 2]),
        (SubsetSelection(1.0, 4, subset_size=3), [1, 3, 3]),
        (SubsetSelection(2.0, 3), [0, 2, 2, 2]),
    ],
    ids=str,
)
def test_simulated_tallies_follow_the_joint_law(
    mechanism: SubsetSelection,
    people: list[int],
    people_at_once: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(subset_selection, "_DRAWN_AT_ONCE", people_at_once)
    law = joint_law(mechanism, people)
    histogram = np.bincount(people, minlength=mechanism.size)
    rng, n = seeded(3), 1500
    seen = Counter(tuple(mechanism.sample_tally(histogram, rng).sums.tolist()) for _ in range(n))
    assert set(seen) <= set(law)
    common = {sums: chance for sums, chance in law.items() if n * chance >= 5}
    cells = [(seen[sums], n * chance) for sums, chance in common.items()]
    rest = n - sum(count for count, _ in cells), n - sum(mean for _, mean in cells)
    cells += [rest] if rest[1] >= 1 else []
    statistic = sum((count - mean) ** 2 / mean for count, mean in cells)
    assert chi2.sf(statistic, len(cells) - 1) > 1e-6


def test_a_simulated_tally_of_a_large_domain_has_the_right_sum_and_spread() -> None:
    mechanism = SubsetSelection(1.0, 400)
    histogram = np.zeros(400, dtype=np.int64)
    histogram[7] = 10**6
    tally = mechanism.sample_tally(histogram, seeded(1))
    assert tally.n == 10**6
    assert tally.sums.sum() == 10**6 * mechanism.members
    z = (tally.sums - 10**6 * mechanism.q) / sqrt(10**6 * mechanism.q * (1 - mechanism.q))
    assert np.abs(np.delete(z, 7)).max() < 6
    assert 0.85 < np.delete(z, 7).std() < 1.15
