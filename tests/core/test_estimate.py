"""Every estimate that is derived from another one carries the right covariance."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import pytest

from sfumato import GRR, OUE, Estimate, Guarantee, Tally, seeded
from sfumato.core import Covariance
from sfumato.errors import ConfigurationError, InputError, MismatchError

PROMISE = Guarantee("local", "each report", 1.0)


def low_rank(seed: int, size: int, rank: int) -> Covariance:
    draw = seeded(seed).simulator()
    factor = draw.normal(size=(size, rank))
    root = draw.normal(size=(rank, rank))
    return Covariance(draw.uniform(0.5, 2, size), factor, root @ root.T)


def estimate(values: list[float], covariance: Covariance) -> Estimate:
    return Estimate(np.array(values), covariance, tuple("abcdefgh"[: len(values)]), 9, PROMISE)


@pytest.mark.parametrize(
    "covariance",
    [low_rank(1, 5, 2), low_rank(2, 5, 1), Covariance(np.arange(1.0, 6)), low_rank(3, 5, 5)],
)
def test_every_question_about_a_covariance_agrees_with_its_matrix(covariance: Covariance) -> None:
    matrix = covariance.matrix()
    weights = seeded(4).simulator().normal(size=(3, 5))
    assert covariance.size == 5
    assert covariance.variances() == pytest.approx(np.diag(matrix))
    assert covariance.variance_of(weights) == pytest.approx(np.diag(weights @ matrix @ weights.T))
    assert covariance.variance_of(weights[0]) == pytest.approx(weights[0] @ matrix @ weights[0])
    assert covariance.mapped(weights).matrix() == pytest.approx(weights @ matrix @ weights.T)
    dense = Covariance.dense(matrix)
    assert dense.matrix() == pytest.approx(matrix)
    assert dense.variance_of(weights) == pytest.approx(covariance.variance_of(weights))


@pytest.mark.parametrize("nothing", [np.nan, np.inf])
@pytest.mark.parametrize("kind", ["dense", "low rank", "diagonal"])
def test_what_is_not_known_of_one_value_says_nothing_about_the_others(
    kind: str, nothing: float
) -> None:
    whole = low_rank(1, 5, 2)
    others = [0, 1, 3, 4]
    if kind == "dense":
        whole = Covariance.dense(whole.matrix())
        broken = whole.matrix()
        broken[2], broken[:, 2] = nothing, nothing
        partly = Covariance.dense(broken)
    else:
        whole = whole if kind == "low rank" else Covariance(whole.diagonal)
        diagonal = np.where(np.arange(5) == 2, nothing, whole.diagonal)
        partly = Covariance(diagonal, whole.factor, whole.core)
    assert not np.isfinite(partly.variances()[2])
    assert partly.variances()[others] == pytest.approx(whole.variances()[others])
    assert partly.only(others).matrix() == pytest.approx(whole.only(others).matrix())
    weights = np.array([[1, 2, 0, -1, 0.5], [1, 0, 3, 0, 0]])
    assert partly.variance_of(weights[0]) == pytest.approx(whole.variance_of(weights[0]))
    assert np.isnan(partly.variance_of(weights)).tolist() == [False, True]
    values = [0.1, 0.2, np.nan, 0.3, 0.4]
    combined = estimate(values, partly).combine(weights, ["known", "not"])
    assert combined.values[0] == pytest.approx(0.1 + 0.4 - 0.3 + 0.2)
    assert combined.covariance.variances()[0] == pytest.approx(whole.variance_of(weights[0]))
    assert np.isnan(combined.values[1])
    assert np.isnan(combined.covariance.variances()[1])


@pytest.mark.parametrize(
    "level", [0.0, -0.0, -0.5, 1.0, 1 - 2**-53, 1.5, np.nan, np.inf, -np.inf, 1e308]
)
def test_levels_that_no_interval_can_have_are_refused(level: float) -> None:
    given = estimate([0.0, 1.0], Covariance(np.ones(2)))
    for ask in (given.interval, given.band):
        with pytest.raises(ConfigurationError, match=r"level is .*; a share of truths covered"):
            ask(level)


@pytest.mark.parametrize("level", [5e-324, 1e-300, 0.5, 0.999999999, 1 - 1e-12])
def test_all_other_levels_have_finite_intervals(level: float) -> None:
    mechanism = GRR(epsilon=1.0, domain=("cat", "dog"))
    shares = mechanism.estimate(Tally(9, np.array([4, 5])))
    for each in (estimate([0.0, 1.0], Covariance(np.ones(2))), shares):
        assert np.isfinite(each.interval(level)).all()
    with pytest.raises(ConfigurationError, match=r"for 2 values at once"):
        shares.band(1 - 1e-12)


def test_a_variance_is_never_below_zero() -> None:
    rounded = Covariance(np.full(3, 1 / 3), np.ones((3, 1)), np.array([[-1 / 3 - 1e-12]]))
    assert rounded.variance_of([1, 1, 1]) == 0
    assert (rounded.variances() >= 0).all()


def test_weights_must_fit_the_values() -> None:
    with pytest.raises(MismatchError, match=r"weights have shape \(2,\); the last axis must"):
        Covariance(np.ones(3)).variance_of([1, 2])
    with pytest.raises(MismatchError, match=r"weights have shape \(1, 2\); \(2, 2\) is expected"):
        estimate([1, 2], Covariance(np.ones(2))).combine([[1, 1]], ["x", "y"])


def test_combinations_carry_values_and_covariance_on() -> None:
    covariance = low_rank(5, 3, 2)
    weights = [[1, -1, 0], [1, 1, 1]]
    combined = estimate([0.2, 0.3, 0.5], covariance).combine(weights, ["difference", "all"])
    assert combined.values == pytest.approx([-0.1, 1.0])
    assert combined.covariance.matrix() == pytest.approx(
        covariance.mapped(np.array(weights)).matrix()
    )
    assert combined.labels == ("difference", "all")
    assert (combined.n, combined.guarantee) == (9, PROMISE)


def test_an_interval_reaches_as_many_deviations_as_its_level_asks() -> None:
    given = estimate([0.0, 1.0], Covariance(np.array([1.0, 4.0])))
    assert given.standard_errors.tolist() == [1, 2]
    for level, z in ((0.6826894921, 1.0), (0.95, 1.95996398), (0.9973002039, 3.0)):
        low, high = given.interval(level)
        assert low == pytest.approx([-z, 1 - 2 * z])
        assert high == pytest.approx([z, 1 + 2 * z])


def test_a_band_of_one_is_an_interval_and_of_many_is_wider() -> None:
    one = estimate([0.0], Covariance(np.ones(1)))
    assert one.band(0.9)[1] == pytest.approx(one.interval(0.9)[1])
    four = estimate([0.0] * 4, Covariance(np.ones(4)))
    assert four.band(0.95)[1] == pytest.approx(four.interval(0.95 ** (1 / 4))[1])


def test_a_band_of_correlated_values_contains_them_all_as_often_as_it_says() -> None:
    covariance = low_rank(6, 6, 2)
    draws = seeded(7).simulator().multivariate_normal(np.zeros(6), covariance.matrix(), 40_000)
    low, high = estimate([0.0] * 6, covariance).band(0.9)
    inside = ((low <= draws) & (draws <= high)).all(axis=1).mean()
    assert 0.9 - 0.009 < inside < 0.96  # six deviations below, and not much wider than needed


@pytest.mark.parametrize("level", [0, 1, -0.5, 1.5, float("nan")])
def test_a_level_lies_between_zero_and_one(level: float) -> None:
    for given in (
        estimate([0.0], Covariance(np.ones(1))),
        GRR(1.0, 2).estimate(Tally(3, np.array([1, 2]))),
    ):
        for ask in (given.interval, given.band):
            with pytest.raises(ConfigurationError, match=f"level is {level}; a share of truths"):
                ask(level)


def test_an_interval_contains_its_estimate_even_without_noise() -> None:
    for mechanism in (GRR(20.0, 2), GRR(20.0, 1000), OUE(20.0, 2), GRR(1.0, 3)):
        for n in (1, 10, 5_000):
            held = np.zeros(mechanism.size, dtype=np.int64)
            held[:2] = n - n // 3, n // 3
            given = mechanism.estimate(mechanism.sample_tally(held, seeded(n)))
            low, high = given.interval(0.95)
            assert (low <= given.values).all()
            assert (given.values <= high).all()


def test_values_labels_and_covariance_must_speak_of_the_same() -> None:
    with pytest.raises(MismatchError, match="2 values, 3 labels and a covariance of 2 do not"):
        Estimate(np.zeros(2), Covariance(np.ones(2)), ("a", "b", "c"), 1, PROMISE)
    with pytest.raises(MismatchError, match="2 values, 2 labels and a covariance of 3 do not"):
        Estimate(np.zeros(2), Covariance(np.ones(3)), ("a", "b"), 1, PROMISE)


@pytest.mark.statistics
@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_estimates_become_a_table_of_any_library(backend: str) -> None:
    given = estimate([0.25, 0.75], Covariance(np.full(2, 0.01)))
    table = given.to_frame(backend)
    assert type(table).__module__.split(".")[0] == backend
    columns = nw.from_native(table, eager_only=True).to_dict(as_series=False)
    assert columns == given.answers(0.95).columns()
    assert columns["item"] == ["a", "b"]
    assert columns["value"] == [0.25, 0.75]


def test_an_unknown_table_library_is_refused() -> None:
    with pytest.raises(InputError, match="backend is 'excel'; pandas, polars or pyarrow"):
        estimate([0.5], Covariance(np.ones(1))).to_frame("excel")


def test_an_estimate_shows_values_intervals_and_its_promise() -> None:
    text = repr(estimate([0.25, 0.75], Covariance(np.full(2, 0.01))))
    assert text.splitlines() == [
        "           a  0.25  [0.05, 0.45]",
        "           b  0.75  [0.55, 0.95]",
        f"95% intervals, n = 9. {PROMISE}",
    ]
    many = Estimate(np.zeros(100), Covariance(np.ones(100)), range(100), 9, PROMISE)
    assert "(88 more)" in repr(many)
    assert len(repr(many).splitlines()) == 14


def test_labels_cannot_smuggle_html_into_a_notebook() -> None:
    label = "<script>alert(1)</script>"
    given = Estimate(np.zeros(1), Covariance(np.ones(1)), (label,), 9, PROMISE)
    shown = given._repr_html_()
    assert label not in shown
    assert "&lt;script&gt;" in shown
