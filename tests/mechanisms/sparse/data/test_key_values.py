from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.core.estimate import FrequencyEstimate
from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError, InputError, MismatchError
from sfumato.mechanisms import GRR, CoCo, Collision, Concord, ExSub, PrivSet
from sfumato.mechanisms.sparse import KeyValues
from sfumato.mechanisms.sparse.data.holdings import Holdings
from sfumato.randomness import seeded

KEYS = ("a", "b", "c", "d", "e", "f")


def stars(epsilon: float = 2.0, kind: Any = ExSub) -> KeyValues:
    return KeyValues(kind(epsilon, len(KEYS), 2, goal="frequency"), KEYS, low=1, high=5)


def people(n: int) -> Holdings:
    """Half hold a (all 4.5), a third b (1 or 5), everybody c (2); f nobody."""
    rows = [(i, 0, 4.5) for i in range(0, n, 2)]
    rows += [(i, 1, 1.0 + 4.0 * (i // 3 % 2)) for i in range(0, n, 3)]
    rows += [(i, 2, 2.0) for i in range(n)]
    person, key, value = (np.array(column) for column in zip(*rows, strict=True))
    return Holdings(n, person, key, value)


def test_values_are_rounded_to_signs_that_are_right_on_average() -> None:
    n, ratings = 40_000, stars()
    held = Holdings(n, np.arange(n), np.zeros(n, dtype=np.int64), np.full(n, 4.2))
    vectors = ratings.vectors(held, seeded(1))
    plus = float(np.mean(vectors["sign"][:, 0] == 1))
    assert set(vectors["sign"][:, 0].tolist()) == {-1, 1}  # a held key is never zero
    sigma = np.sqrt(0.8 * 0.2 / n)
    assert abs(plus - 0.8) < 5 * sigma  # false alarm 6e-7; 4.0 or 4.4 stars are 25 sigma away
    for value, sign in ((1.0, -1), (5.0, 1)):
        ends = Holdings(n, held.person, held.key, np.full(n, value))
        assert set(ratings.vectors(ends, seeded(2))["sign"][:, 0].tolist()) == {sign}


@pytest.mark.parametrize("kind", [ExSub, Concord, CoCo, Collision])
def test_intervals_cover_what_was_kept(kind: Any) -> None:
    """60 runs of 5 keys (3 for the mean of values): 300 intervals of a kind, weakly dependent."""
    ratings = stars(2.0, kind)
    hits: dict[str, list[bool]] = {}
    for run in range(60):
        rng = seeded(100 + run)
        kept = ratings.kept(people(1500), rng)
        reports = ratings.mechanism.randomize(ratings.vectors(kept, rng), rng)
        found = ratings.estimate(ratings.mechanism.tally(reports))
        truth = ratings.truth(kept)
        for name, answer in found.estimates.items():
            low, high = answer.interval(0.95)
            wanted = getattr(truth, name)
            real = ~np.isnan(wanted)
            hits.setdefault(name, []).extend(((low <= wanted) & (wanted <= high))[real].tolist())
    for name, inside in hits.items():
        # 95% less 5.5 standard errors of so many; half the width covers 67% and fails.
        assert np.mean(inside) > 0.95 - 5.5 * np.sqrt(0.05 * 0.95 / len(inside)), name


def test_estimates_are_unbiased_and_in_the_units_of_the_data() -> None:
    ratings, n = stars(4.0), 60_000
    kept = ratings.kept(people(n), seeded(1))
    reports = ratings.mechanism.randomize(ratings.vectors(kept, seeded(2)), seeded(3))
    found, truth = ratings.estimate(ratings.mechanism.tally(reports)), ratings.truth(kept)
    for name in ("frequency", "mean"):
        answer = found.estimates[name]
        off = (answer.values - getattr(truth, name)) / answer.standard_errors
        assert np.abs(off).max() < 5.5  # false alarm 2e-7 for six keys
        assert answer.standard_errors.max() < 0.05  # and small enough to tell
    ratio = found.conditional_mean
    off = (ratio.values - truth.conditional_mean)[:3] / ratio.standard_errors[:3]
    assert np.abs(off).max() < 5.5
    assert truth.conditional_mean[[0, 2]].tolist() == [4.5, 2.0]


def test_what_nobody_holds_has_no_mean_and_the_widest_interval() -> None:
    ratings = stars(1.0)
    sums = np.full((2, 6), 100)
    sums[:, 5] = 0  # fewer reports support it than if nobody held it
    found = ratings.estimate(Tally(1000, sums)).conditional_mean
    low, high = found.interval()
    assert np.isnan(found.values[5])
    assert (low[5], high[5]) == (1.0, 5.0)
    assert "unknown" in repr(found)


def test_subsets_have_frequency_intervals_from_the_exact_law() -> None:
    assert isinstance(stars().estimate(Tally(9, np.ones((2, 6), int))).frequency, FrequencyEstimate)


def test_columns_and_frames() -> None:
    found = stars().estimate(Tally(1000, np.full((2, 6), 50)))
    columns = found.columns()
    assert list(columns)[:4] == ["key", "frequency", "frequency_low", "frequency_high"]
    assert len(columns) == 10
    assert columns["key"] == list(KEYS)
    assert found.to_frame("polars").columns == list(columns)
    assert "n = 1,000" in repr(found)
    assert "epsilon 2" in repr(found)


@pytest.mark.parametrize("wrong", [0.99, 5.01, -7.0])
def test_a_value_out_of_range_gets_one_sentence(wrong: float) -> None:
    with pytest.raises(InputError) as caught:
        stars().read([{"a": 3.0}, {"b": wrong}])
    assert str(caught.value) == f"the value of key 'b' is {wrong:g}; values lie in 1..5."


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (lambda: KeyValues(ExSub(1.0, 5, 2), KEYS), "there are 6 keys and the mechanism has"),
        (lambda: KeyValues(ExSub(1.0, 6, 2), KEYS, 1, 1), "low is 1 and high is 1; low must be"),
        (lambda: KeyValues(ExSub(1.0, 6, 2), KEYS, 0, np.inf), "high is inf; a finite number"),
        (lambda: KeyValues(GRR(1.0, KEYS), KEYS), "a mechanism for sparse vectors is expected"),  # type: ignore[arg-type]
        (lambda: KeyValues(PrivSet(1.0, 6, 2), KEYS), "privset; it sends no signs, and values"),  # type: ignore[arg-type]
        (lambda: KeyValues(CoCo(1.0, 6, 2, seed_bits=8), KEYS), "seed_bits is 8; so few hashes"),
        (lambda: KeyValues(ExSub(1.0, 6, 7), KEYS), "sparsity is 7; a whole number in 1..6 is"),
        (lambda: KeyValues(ExSub(1.0, 6, 0), KEYS), "sparsity is 0; a whole number in 1..6 is"),
        (lambda: KeyValues(ExSub(1.0, 6, 2), (*KEYS[:5], "a")), "domain names 'a' more than once"),
    ],
)
def test_what_does_not_fit_together_is_refused(made: Any, sentence: str) -> None:
    with pytest.raises((ConfigurationError, MismatchError), match=sentence):
        made()


def test_a_size_that_does_not_tell_frequencies_is_refused() -> None:
    dense = Concord(1.0, 6, 2, subset_size=8, threshold=1)
    with pytest.raises(ConfigurationError, match="sends every key equally often, held or not"):
        KeyValues(dense, KEYS).estimate(Tally(9, np.ones((2, 6), int)))


def test_a_tally_of_something_else_is_refused() -> None:
    with pytest.raises(MismatchError, match="the tally has shape"):
        stars().estimate(Tally(9, np.ones(6, int)))
