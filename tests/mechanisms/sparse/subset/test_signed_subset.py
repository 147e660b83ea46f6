"""ExSub and Concord: probabilities, sizes, errors, reports."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from fractions import Fraction
from itertools import combinations, product
from math import comb
from typing import Any

import numpy as np
import pytest

from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse.subset.privset import PrivSet
from sfumato.mechanisms.sparse.subset.sign_sums import refused_signs
from sfumato.mechanisms.sparse.subset.signed_subset import Concord, ExSub, SignedSubset
from sfumato.mechanisms.sparse.subset.subset_law import SubsetLaw, subset_law
from sfumato.mechanisms.sparse.subset.subset_search import best_law
from sfumato.randomness import seeded


def rational(
    epsilon: float, dimension: int, sparsity: int, size: int, threshold: int | None
) -> dict[str, Fraction]:
    """Return the probabilities by exact counting, with e^-epsilon as a rational number."""
    weight = Fraction(math.exp(-epsilon))
    total = agreed = opposed = Fraction(0)
    for k in range(min(sparsity, size) + 1):
        if size - k > dimension - sparsity:
            continue
        for j in range(k + 1):
            ways = comb(sparsity, k) * comb(k, j) * comb(dimension - sparsity, size - k)
            ways *= 2 ** (size - k)
            accepted = j >= 1 if threshold is None else 2 * j - k >= threshold
            mass = ways * (1 if accepted else weight)
            total += mass
            agreed += mass * j
            opposed += mass * (k - j)
    hit = (agreed + opposed) / total
    return {
        "p_true": agreed / total / sparsity,
        "p_reverse": opposed / total / sparsity,
        "p_false": (size - hit) / (2 * (dimension - sparsity)),
    }


@pytest.mark.parametrize("threshold", [None, 1, 2, 3])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 1.0, 4.0, 20.0])
@pytest.mark.parametrize(
    ("dimension", "sparsity", "size"),
    [(5, 2, 3), (16, 4, 4), (136, 8, 9), (136, 8, 136), (300, 20, 40), (300, 64, 5)],
)
def test_probabilities_agree_with_exact_counting(
    dimension: int, sparsity: int, size: int, epsilon: float, threshold: int | None
) -> None:
    if threshold is not None and threshold > min(sparsity, size):
        return
    law = subset_law(epsilon, dimension, sparsity, size, threshold)
    exact = rational(epsilon, dimension, sparsity, size, threshold)
    for name, value in exact.items():
        assert getattr(law, name) == pytest.approx(float(value), rel=1e-9), name
    contrast = exact["p_true"] - exact["p_reverse"]
    presence = exact["p_true"] + exact["p_reverse"] - 2 * exact["p_false"]
    assert law.contrast == pytest.approx(float(contrast), rel=1e-9)
    assert law.presence == pytest.approx(float(presence), rel=1e-9, abs=1e-15)


@pytest.mark.statistics
@pytest.mark.parametrize("kind", [ExSub, Concord])
def test_the_law_stays_sane_up_to_a_million_entries(kind: type[SignedSubset]) -> None:
    errors = []
    for dimension in (100, 1_000, 10_000, 100_000, 1_000_000):
        law = kind(1.0, dimension, 20).probabilities
        assert math.isfinite(law.mse("value", dimension))
        assert law.p_true > law.p_false >= law.p_reverse
        errors.append(law.mse("value", dimension))
    assert errors == sorted(errors)


@pytest.mark.statistics
def test_concord_is_never_worse_than_exsub_and_better_by_a_quarter_for_small_epsilon() -> None:
    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
        for sparsity in (1, 2, 4, 8, 20):
            exsub = ExSub(epsilon, 256, sparsity).mse
            concord = Concord(epsilon, 256, sparsity).mse
            assert concord <= exsub * (1 + 1e-9)
    for epsilon in (0.1, 0.5, 1.0):
        ratio = Concord(epsilon, 256, 8).mse / ExSub(epsilon, 256, 8).mse
        assert ratio <= 0.78


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_for_shares_exsub_is_better(epsilon: float) -> None:
    exsub, concord = (kind(epsilon, 64, 4, goal="frequency").mse for kind in (ExSub, Concord))
    assert exsub < concord


def test_the_error_over_all_entries_has_the_closed_form() -> None:
    law = best_law(1.0, 264, 8, concord=True, estimate="value", entries=264)
    assert law.mse("value", 264) == pytest.approx(law.size / law.contrast**2 - 8, rel=1e-12)


@pytest.mark.parametrize(
    ("dimension", "sparsity", "epsilon", "exsub", "concord", "ratio"),
    [
        (128, 4, 1.0, 18, 128, 0.754),
        (264, 8, 1.0, 18, 264, 0.752),
        (1032, 8, 0.1, 129, 850, 0.647),
        (1032, 20, 1.0, 27, 78, 0.751),
        (1032, 64, 1.0, 8, 23, 0.767),
    ],
)
def test_known_best_sizes(
    dimension: int, sparsity: int, epsilon: float, exsub: int, concord: int, ratio: float
) -> None:
    one, two = (
        best_law(epsilon, dimension, sparsity, concord=c, estimate="value", entries=dimension)
        for c in (False, True)
    )
    assert (one.size, two.size) == (exsub, concord)
    assert two.mse("value", dimension) / one.mse("value", dimension) == pytest.approx(
        ratio, abs=6e-4
    )


@pytest.mark.parametrize("goal", ["value", "frequency"])
def test_no_other_size_is_better(goal: Any) -> None:
    for kind in (ExSub, Concord):
        best = kind(1.0, 40, 3, goal=goal)
        for size in range(1, 44):
            threshold = best.probabilities.threshold
            law = subset_law(1.0, 43, 3, size, threshold if size >= (threshold or 0) else 1)
            assert best.mse <= law.mse(goal, 40) * (1 + 1e-12)


@pytest.mark.parametrize("threshold", [None, 1, 2, 5, 40])
def test_refused_signs_are_counted(threshold: int | None) -> None:
    for k, refused in enumerate(refused_signs(40, threshold)):
        accepted = [j >= 1 if threshold is None else 2 * j - k >= threshold for j in range(k + 1)]
        assert refused.least == accepted.count(False)
        assert refused.ways == sum(comb(k, j) for j in range(k + 1) if not accepted[j])
        assert refused.last == comb(k, refused.least - 1)


@pytest.mark.parametrize(
    "mechanism", [*ExSub.examples(), *Concord.examples(), Concord(3.0, 6, 5, threshold=3)], ids=str
)
def test_the_weights_of_the_draw_are_those_of_the_law(mechanism: SignedSubset) -> None:
    """Counted over all signed subsets, for an input whose first entries are not zero."""
    s, d, m = mechanism.sparsity, mechanism.padded_dimension, mechanism.size
    counted: dict[tuple[int, int], int] = {}
    for positions in combinations(range(d), m):
        hits = sum(position < s for position in positions)
        for agree in range(hits + 1):
            weight = comb(hits, agree) * 2 ** (m - hits) * mechanism._weight(agree, hits - agree)  # noqa: SLF001
            counted[hits, agree] = counted.get((hits, agree), 0) + weight
    first = max(0, m - (d - s))
    weights = dict(enumerate(mechanism.hit_weights(), start=first))
    for (hits, agree), weight in counted.items():
        split = list(mechanism._agree_weights(hits))  # noqa: SLF001
        drawn = Fraction(weights[hits], sum(weights.values())) * Fraction(split[agree], sum(split))
        assert drawn == Fraction(weight, sum(counted.values()))


@pytest.mark.parametrize("kind", [ExSub, Concord])
@pytest.mark.parametrize("most", [1, 5, 12, 13, 30, 75, 1000])
def test_under_a_cap_the_best_size_that_fits_is_taken(kind: type[SignedSubset], most: int) -> None:
    capped = kind(1.0, 100, 8, most_bytes=most)
    assert capped.report_bytes <= most
    for size in range(1, 109):
        other = kind(1.0, 100, 8, subset_size=size)
        assert other.report_bytes > most or capped.mse <= other.mse * (1 + 1e-12)


def test_a_cap_that_nothing_fits_gets_one_sentence() -> None:
    with pytest.raises(ConfigurationError, match="most_bytes is 1; a report takes 2 or more"):
        ExSub(1.0, 1000, 8, most_bytes=1)
    with pytest.raises(ConfigurationError, match="takes 40 bytes, more than 30"):
        ExSub(1.0, 1000, 8, subset_size=20, most_bytes=30)
    with pytest.raises(ConfigurationError, match="most_bytes is 0"):
        Concord(1.0, 1000, 8, most_bytes=0)


def test_the_printed_size_is_about_half_and_costs_a_sixth() -> None:
    printed, best = ExSub(1.0, 1000, 8, paper=True), ExSub(1.0, 1000, 8)
    assert printed.size == math.ceil(1008 / (math.e * 8 + 8 + 2))
    assert 1.8 < best.size / printed.size < 2.3
    assert 1.1 < printed.mse / best.mse < 1.25


@pytest.mark.parametrize("kind", [ExSub, Concord])
@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_the_simulated_error_is_the_exact_one(kind: type[SignedSubset], epsilon: float) -> None:
    dimension, sparsity, n = 256, 8, 60_000
    mechanism = kind(epsilon, dimension, sparsity)
    vector = np.zeros((1, dimension), dtype=np.int8)
    vector[0, [3, 9, 20, 31, 64, 130, 200, 255]] = [1, -1, 1, -1, -1, 1, 1, 1]
    contrast = mechanism.probabilities.contrast
    errors = []
    for part in range(6):
        reports = mechanism.randomize(np.repeat(vector, n // 6, axis=0), seeded(part))
        signs = mechanism.form.signs(reports)
        errors.append(((signs / contrast - vector) ** 2).sum(axis=1))
    squares = np.concatenate(errors)
    # A sum over 256 entries of one person's estimates may hardly vary at all (dense subsets).
    standard_error = max(squares.std() / math.sqrt(n), 1e-12 * mechanism.mse)
    assert abs(squares.mean() - mechanism.mse) < 5.8 * standard_error
    assert 0.05 * mechanism.mse > 2 * 5.8 * standard_error  # five percent off would be seen


SIZES = [
    ExSub(1.0, 150, 5, subset_size=100),
    ExSub(1.0, 150, 5, subset_size=100, exact_sparsity=True),
    ExSub(1.0, 150, 5, subset_size=20),
    ExSub(1.0, 150, 5, subset_size=20, exact_sparsity=True),
    ExSub(1.0, 1000, 5, subset_size=80, exact_sparsity=True),
    Concord(4.0, 150, 5),
    Concord.dense(1.0, 5, 150),
    PrivSet(1.0, 150, 5, subset_size=60),
    PrivSet(1.0, 150, 5, subset_size=60, exact_sparsity=True),
    PrivSet(1.0, 150, 5, subset_size=4, exact_sparsity=True),
]


@pytest.mark.parametrize("mechanism", SIZES, ids=str)
@pytest.mark.parametrize("last", [10, 0])
def test_every_entry_of_a_long_vector_is_sent_as_often_as_it_should(
    mechanism: SignedSubset | PrivSet, last: int
) -> None:
    n, d = 20_000, mechanism.dimension
    places = [0, 63, 64, d - 2 - last, d - 1 - last]
    vector = np.zeros((1, d), dtype=np.int8)
    vector[0, places] = [1, -1, 1, 1, -1] if mechanism.signed else 1
    signs = mechanism.form.signs(mechanism.randomize(np.repeat(vector, n, axis=0), seeded(last)))
    if mechanism.exact_sparsity:
        assert (np.count_nonzero(signs, axis=1) == mechanism.size).all()
    law, held = mechanism.probabilities, vector[0] != 0
    own = np.where(held, vector[0], 1)
    chances = [(own, law.p_true, law.p_false)]
    if isinstance(law, SubsetLaw):
        chances.append((-own, law.p_reverse, law.p_false))
    for sign, present, absent in chances:
        expected = np.where(held, present, absent)
        z = ((signs == sign).mean(axis=0) - expected) / np.sqrt(expected * (1 - expected) / n)
        assert np.abs(z).max() < 6.5
        assert 0.7 < z.std() < 1.3


@pytest.mark.parametrize(
    "mechanism",
    [
        ExSub(1.0, 4, 2, subset_size=3),
        ExSub(1.0, 4, 2, subset_size=2, goal="frequency"),
        ExSub(1.0, 4, 2, subset_size=2, exact_sparsity=True),
        Concord(1.0, 4, 3, subset_size=4, threshold=2),
        Concord(2.0, 4, 3, subset_size=2, threshold=1, goal="frequency"),
        Concord.dense(1.0, 3, 4),
    ],
    ids=str,
)
def test_the_covariance_is_that_of_the_law(mechanism: SignedSubset) -> None:
    people = [(1, -1, 0, 0), (0, 1, 1, 0), (1, 0, 0, -1), (-1, 0, 1, 0)]
    law = mechanism.probabilities
    scale = law.contrast if mechanism.goal == "value" else law.presence
    expected = np.zeros((4, 4))
    for person in people:
        listed = mechanism.law(person)
        sent = mechanism.form.signs(listed.outputs).astype(float)
        sent = sent if mechanism.goal == "value" else np.abs(sent)
        mean = listed.probabilities @ sent
        expected += (sent.T * listed.probabilities) @ sent - np.outer(mean, mean)
    expected /= (len(people) * scale) ** 2
    assert mechanism.exact_covariance(people).matrix() == pytest.approx(expected, rel=1e-9)
    assert np.abs(expected - np.diag(np.diag(expected))).max() > 1e-3  # not diagonal


@pytest.mark.parametrize("goal", ["value", "frequency"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0, 6.0])
@pytest.mark.parametrize(("dimension", "sparsity"), [(12, 6), (40, 10), (64, 32)])
def test_no_other_threshold_is_better(
    dimension: int, sparsity: int, epsilon: float, goal: Any
) -> None:
    for size in (1, 2, 5, 9, dimension // 2, dimension - 1):
        best = Concord(epsilon, dimension, sparsity, size, goal=goal)._sized(size)  # noqa: SLF001
        for threshold in range(1, min(sparsity, size) + 1):
            law = subset_law(epsilon, dimension + sparsity, sparsity, size, threshold)
            assert best.mse(goal, dimension) <= law.mse(goal, dimension) * (1 + 1e-9)


def _pairs(dimension: int, vector: tuple[int, ...], size: int) -> Iterator[tuple[int, int]]:
    """Yield (J, K) of every signed subset: how often it agrees with a vector, and hits it."""
    for positions in combinations(range(dimension), size):
        for signs in product((1, -1), repeat=size):
            met = [vector[p] * sign for p, sign in zip(positions, signs, strict=True)]
            yield met.count(1), size - met.count(0)


def _sets(pairs: Iterable[tuple[int, int]]) -> Iterator[set[tuple[int, int]]]:
    kinds = sorted(set(pairs))
    for chosen in product((False, True), repeat=len(kinds)):
        yield {pair for pair, there in zip(kinds, chosen, strict=True) if there}


def test_any_set_of_pairs_has_one_normaliser_for_all_vectors() -> None:
    """So that every subset is e^epsilon times as likely under one of them as under another."""
    vectors = [v for v in product((-1, 0, 1), repeat=3) if v.count(0) == 1]
    counts = [Counter(_pairs(3, vector, 2)) for vector in vectors]
    assert len(vectors) == 12
    for accepted in _sets(counts[0]):
        sizes = {sum(count[pair] for pair in accepted) for count in counts}
        assert len(sizes) == 1


@pytest.mark.parametrize(("dimension", "sparsity", "size"), [(4, 2, 2), (4, 3, 3), (5, 2, 4)])
@pytest.mark.parametrize("weight", [Fraction(1, 100), Fraction(1, 3), Fraction(9, 10)])
def test_no_set_of_pairs_is_better_than_a_threshold(
    dimension: int, sparsity: int, size: int, weight: Fraction
) -> None:
    """The mean of X = 2J - K under every accept set there is, in rational numbers."""
    vector = (1,) * sparsity + (0,) * (dimension - sparsity)
    counts = Counter(_pairs(dimension, vector, size))

    def mean(accepted: set[tuple[int, int]]) -> Fraction:
        weights = {p: n * (1 if p in accepted else weight) for p, n in counts.items()}
        return sum(n * (2 * j - k) for (j, k), n in weights.items()) / Fraction(
            sum(weights.values())
        )

    thresholds = [
        mean({(j, k) for j, k in counts if 2 * j - k >= least}) for least in range(1, size + 1)
    ]
    assert max(map(mean, _sets(counts))) == max(thresholds)
