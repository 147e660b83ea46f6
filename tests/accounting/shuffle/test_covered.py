"""The bound that counts others' own reports is never below the truth, and close to it."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pytest
from numpy.typing import NDArray

from sfumato import OUE, Concord, ExSub, SubsetSelection
from sfumato.accounting.shuffle import amplify, best, covered, delta_above, delta_below
from sfumato.accounting.shuffle.covered import covered_delta, covered_epsilon
from sfumato.accounting.shuffle.profile import epsilon_above
from sfumato.core.contrast import Cover, favoured
from sfumato.core.mechanism import Mechanism
from sfumato.mechanisms.sparse.subset.signed_subset import SignedSubset
from sfumato.mechanisms.sparse.subset.subset_cover import _Hit, subset_cover

Floats = NDArray[np.float64]
RATIO = Fraction(2)


def _told(laws: Floats, others: list[int], one: int, two: int, epsilon: float) -> float:
    """Return the exact divergence if so many others hold each input, from all counts of reports."""
    size, axes = sum(others) + 2, laws.shape[1] - 1
    points = np.exp(-2j * np.pi * np.arange(size) / size)
    z = np.meshgrid(*[points] * axes, indexing="ij")
    shapes = [sum(law[axis] * z[axis] for axis in range(axes)) + law[-1] for law in laws]
    total = shapes[one] - math.exp(epsilon) * shapes[two]
    for shape, count in zip(shapes, others, strict=True):
        total = total * shape**count
    return float(np.maximum(np.fft.ifftn(total).real, 0).sum())


def _laws(favours: list[list[int]]) -> Floats:
    laws = np.where(np.array(favours), float(RATIO), 1.0)
    return np.asarray(laws / laws.sum(axis=1, keepdims=True))


TWO = (_laws([[1, 0], [0, 1]]), Cover(RATIO, 1 / 2, 1 / 2, 1 / 2))
THREE = (_laws([[1, 1, 0], [0, 1, 1], [1, 0, 1]]), Cover(RATIO, 2 / 3, 1 / 3, 1 / 3))


def test_no_dataset_of_two_values_reaches_what_is_promised() -> None:
    # Randomized response: all datasets there are.
    (laws, cover), n, delta = TWO, 400, 1e-4
    epsilon = covered_epsilon(cover, n, delta, math.log(RATIO))
    truth = [_told(laws, [k, n - 1 - k], 0, 1, epsilon) for k in range(n)]
    assert 0.5 * delta < max(truth) <= delta
    # The part that everybody sends would not do.
    blanket = favoured(RATIO, {(1, 0): 0.5, (0, 1): 0.5})
    assert delta_above([blanket], n, epsilon) > 1.3 * delta


def test_no_dataset_of_three_values_reaches_what_is_promised() -> None:
    (laws, cover), n, delta = THREE, 250, 1e-4
    epsilon = covered_epsilon(cover, n, delta, math.log(RATIO))
    steps = 6
    crowds = [
        [(n - 1) * k // steps, (n - 1) * j // steps]
        for k in range(steps + 1)
        for j in range(steps + 1 - k)
    ]
    truth = [_told(laws, [*crowd, n - 1 - sum(crowd)], 0, 1, epsilon) for crowd in crowds]
    assert 0.5 * delta < max(truth) <= delta
    blanket = favoured(RATIO, {(1, 0): 1 / 3, (0, 1): 1 / 3, (1, 1): 1 / 3})
    assert delta_above([blanket], n, epsilon) > 1.3 * delta


@pytest.mark.statistics
def test_a_cover_that_is_claimed_too_large_is_below_the_truth() -> None:
    (laws, honest), n, delta = THREE, 900, 1e-4
    wrong = Cover(RATIO, honest.accepted, honest.apart, 0.0)
    told = [
        _told(laws, [n - 1, 0, 0], 0, 1, covered_epsilon(cover, n, delta, math.log(RATIO)))
        for cover in (honest, wrong)
    ]
    assert told[0] <= delta < told[1]


def _shares(mechanism: SignedSubset) -> tuple[Floats, Floats]:
    """Return the base measure of all reports, and which input favours which, from the law."""
    laws = [mechanism.law(value) for value in mechanism.inputs()]
    rows = np.array([[n / law.denominator for n in law.numerators] for law in laws])
    low = rows.min(axis=0)
    return low / low.sum(), (rows > 1.5 * low).astype(float)


@pytest.mark.parametrize(
    "mechanism",
    [
        ExSub(1.0, 4, 2, subset_size=2, exact_sparsity=True),
        ExSub(1.0, 4, 2, subset_size=3, exact_sparsity=True),
        Concord(1.0, 4, 2, subset_size=4, exact_sparsity=True),
        Concord(1.0, 5, 2, subset_size=3, exact_sparsity=True),
        Concord(1.0, 4, 3, subset_size=4, threshold=1, exact_sparsity=True),
    ],
    ids=str,
)
def test_what_is_covered_is_what_all_triples_of_inputs_show(mechanism: SignedSubset) -> None:
    base, favours = _shares(mechanism)
    found = subset_cover(
        mechanism.worst_ratio,
        mechanism.padded_dimension,
        mechanism.sparsity,
        mechanism.size,
        mechanism.accept_threshold,
    )
    assert found is not None
    cover, ratio = found.cover, float(mechanism.worst_ratio)
    assert cover.accepted == pytest.approx(float(base @ favours[0]), abs=1e-9)
    told = 0.0
    for one, two in combinations_with_replacement(favours, 2):
        differ = np.abs(one - two) * base
        apart, exposed = float(differ.sum()), float((differ @ (1 - favours).T).max())
        assert apart <= 2 * cover.apart + 1e-9
        assert exposed <= cover.exposed + 1e-9 or apart <= 2 * cover.plain + 1e-9
        told = max(told, exposed + (apart - exposed) / ratio)
    # The three vectors that are given do tell as much as any.
    shares = found.shares
    exposed = shares[1, 0, 0] + shares[0, 1, 0]
    covered = shares[1, 0, 1] + shares[0, 1, 1]
    assert sum(shares.values()) == pytest.approx(1, abs=1e-12)
    assert exposed + covered / ratio == pytest.approx(told, abs=1e-9)


def test_no_third_vector_exposes_more_than_one_that_agrees_with_all_that_is_shared() -> None:
    """Of two vectors with 12 non-zeros: some are opposite, some alike, and a drawn third one."""
    mechanism = ExSub(1.0, 60, 12, subset_size=9)
    form = _Hit(mechanism.padded_dimension, 12, 9)
    drawn = random.Random(12)  # noqa: S311
    for _ in range(40):
        opposite, agreed = drawn.choice(form.pairs)
        own, left = 12 - opposite - agreed, 12
        kinds: dict[tuple[int, ...], int] = {}
        for signs, count in (((1, -1), opposite), ((1, 1), agreed), ((1, 0), own), ((0, 1), own)):
            held = drawn.randint(0, min(count, left))
            agreeing = drawn.randint(0, held)
            for third, number in ((1, agreeing), (-1, held - agreeing), (0, count - held)):
                if number:
                    kinds[*signs, third] = number
            left -= held
        if left:
            kinds[0, 0, 1] = left
        shares = form.shares(kinds)
        most = form.exposed((opposite, agreed)).share
        assert shares[1, 0, 0] + shares[0, 1, 0] <= most * (1 + 1e-9)


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("n", "epsilon", "delta"),
    [(10**4, 1.0, 1e-6), (10**5, 2.0, 1e-6), (10**6, 1.0, 1e-8), (10**6, 4.0, 1e-6)],
)
def test_what_is_promised_is_nearly_reached(n: int, epsilon: float, delta: float) -> None:
    for mechanism in (ExSub(epsilon, 256, 8), ExSub(epsilon, 256, 16), Concord(epsilon, 256, 8)):
        found = best(mechanism, n, delta)
        assert found.epsilon is not None
        assert found.lower is not None
        assert 0 < found.epsilon / found.lower - 1 < 0.02


def test_frequencies_are_covered_too() -> None:
    for mechanism in (OUE(1.0, 100), SubsetSelection(1.0, 100)):
        plain, covered = amplify(mechanism, 10**5, 1e-6, ["blanket", "covered_blanket"])
        assert covered.epsilon is not None
        assert plain.epsilon is not None
        assert covered.lower is not None
        assert covered.epsilon < 0.96 * plain.epsilon
        assert covered.epsilon / covered.lower < 1.02


def test_few_people_and_large_epsilons_are_left_to_other_bounds() -> None:
    cover = Concord(1.0, 256, 8).contrasts()[0].cover
    assert cover is not None
    assert covered_delta(cover, 5, 0.1) == math.inf
    assert covered_delta(cover, 10**4, 0.5) == math.inf
    assert covered_epsilon(cover, 5, 1e-6, 1.0) == 1.0
    assert covered_epsilon(cover, 10**4, 0.0, 1.0) == 1.0
    assert covered_epsilon(cover, 10**4, 0.5, 1.0) == 0.0
    assert best(Concord(1.0, 256, 8), 5, 1e-6).bound == "blanket"


@pytest.mark.parametrize("mechanism", [Concord(1.0, 256, 8), OUE(1.0, 100)], ids=str)
def test_what_is_promised_was_computed_in_every_slice(
    mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bound that were to grow with epsilon again would not go unnoticed in any of them."""
    cover = mechanism.contrasts()[0].cover
    assert cover is not None
    seen: dict[float, dict[tuple[int, int], float]] = {}
    honest = covered._CoveredCrowd.delta  # noqa: SLF001

    def watched(self: covered._CoveredCrowd, epsilon: float, place: tuple[int, int]) -> float:
        found = honest(self, epsilon, place)
        if place == self.slices[3] and epsilon > 0.12:
            found *= 3  # as no slice does: it holds up to here, and then no longer
        seen.setdefault(epsilon, {})[place] = found
        return found

    monkeypatch.setattr(covered._CoveredCrowd, "delta", watched)  # noqa: SLF001
    epsilon = covered_epsilon(cover, 1000, 1e-6, 1.0)
    assert len(seen[epsilon]) == 16
    assert max(seen[epsilon].values()) <= 1e-6


def test_pairs_of_which_nothing_is_covered_have_the_plain_blanket() -> None:
    """Where no cover is known of a pair, what everybody sends whatever they hold has to do."""
    cover, n, delta = THREE[1], 1000, 1e-6
    for plain in (0.1, 0.3):
        pair = favoured(
            RATIO, {(1, 0): plain, (0, 1): plain, (1, 1): 2 / 3 - plain, (0, 0): 1 / 3 - plain}
        )
        needed = epsilon_above([pair], n, delta, 1.0)
        least = covered_epsilon(cover, n, delta, 1.0)
        found = covered_epsilon(replace(cover, plain=plain), n, delta, 1.0)
        assert found == pytest.approx(max(needed, least), rel=1e-6)
        assert found >= max(needed, least) * (1 - 1e-9)
        assert (found > least) == (plain == 0.3)


def test_a_delta_that_holds_is_never_below_what_is_reached() -> None:
    mechanism = ExSub(1.0, 256, 8)
    known = mechanism.contrasts()[0]
    assert known.cover is not None
    for n in (10**3, 10**4):
        for epsilon in (0.02, 0.05, 0.1):
            low = delta_below(known.attained, n, epsilon)
            assert low <= covered_delta(known.cover, n, epsilon)
