"""Projections against exact rational arithmetic, and what they do to estimates."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, minimize

from sfumato.core import Estimate
from sfumato.errors import ConfigurationError, InputError
from sfumato.mechanisms import GRR, OUE, SubsetSelection
from sfumato.queries import at_most, capped_simplex, clip, norm_sub, postprocess, simplex
from sfumato.randomness import seeded

# ---- a reference that makes no error --------------------------------------------------------


def projected(values: Sequence[float], total: float, cap: float) -> list[float]:
    """Return clip(y - shift, 0, cap) with the right shift, all in rational numbers."""
    y, most = [Fraction(v) for v in values], Fraction(cap)
    whole = min(Fraction(total), most * len(y))  # the product was rounded

    def at(shift: Fraction) -> list[Fraction]:
        return [min(max(v - shift, Fraction(0)), most) for v in y]

    corners = sorted({*y, *(v - most for v in y)})
    after = bisect_left(corners, -whole, lo=1, key=lambda shift: -sum(at(shift), Fraction(0)))
    left, right = corners[after - 1], corners[after]
    high, low = sum(at(left), Fraction(0)), sum(at(right), Fraction(0))
    result = at(left + (right - left) * (high - whole) / (high - low) if high > low else left)
    assert sum(result) == whole
    return [float(v) for v in result]


def is_nearest(values: NDArray[Any], x: NDArray[Any], total: float, cap: float) -> bool:
    """Whether the conditions of Karush, Kuhn and Tucker hold: they prove the projection.

    Some shift explains all: x = y - shift inside, x >= y - shift at zero, x <= y - shift at cap.
    """
    gap = values - x
    below = gap[x < cap - 1e-12]  # gap <= shift where x may still grow
    above = gap[x > 1e-12]  # gap >= shift where x may still fall
    highest = below.max() if below.size else -np.inf
    lowest = above.min() if above.size else np.inf
    scale = 1e-9 * max(1.0, float(np.abs(values).max()))
    return bool(
        highest <= lowest + scale
        and (x >= 0).all()
        and (x <= cap).all()
        and abs(x.sum() - total) < 1e-9
    )


RANDOM = np.random.default_rng(7)
INPUTS = [
    *(RANDOM.normal(1 / d, scale, d) for d in (1, 2, 3, 17, 100) for scale in (0.01, 1.0, 30.0)),
    RANDOM.standard_cauchy(60),
    np.zeros(5),
    np.full(7, -3.0),
    np.full(4, 0.25),
    np.array([0.5, 0.5, 0.5, -0.5]),  # ties at a corner
    np.array([1.0, 0.0, 0.0]),  # already there
    np.array([0.3, -0.01]),
    np.array([1e-300, -1e-300, 0.0]),
    np.repeat([0.1, 0.2, 0.30000000000000004], 11),
    np.array([1e12, 1e12 + 0.25, 1e12 - 0.5, -1e12, 0.3]),
    np.array([-1e12, -1e12 + 0.125, -1e12 - 7.0]),
    np.array([1e20, 0.0, -1e20]),
    1e9 + np.arange(50) / 7,
    np.linspace(-2, 2, 41),
    np.append(np.full(30, 1 / 30), 1e-17),
]


@pytest.mark.parametrize("values", INPUTS, ids=range(len(INPUTS)))
def test_projections_agree_with_exact_arithmetic(values: NDArray[np.float64]) -> None:
    assert simplex(values) == pytest.approx(projected(values.tolist(), 1, 1), abs=1e-9)
    assert simplex(values, 0.3) == pytest.approx(projected(values.tolist(), 0.3, 0.3), abs=1e-9)
    for part in (0.0, 0.1, 0.5, 0.77, 1.0):
        for cap in (1.0, 0.2, 3.0):
            total = part * values.size * cap
            found = capped_simplex(values, total, cap)
            assert found == pytest.approx(projected(values.tolist(), total, cap), abs=1e-9)


@pytest.mark.parametrize("values", INPUTS[:18], ids=range(18))
def test_projections_satisfy_the_conditions_that_prove_them(values: NDArray[np.float64]) -> None:
    assert is_nearest(values, simplex(values), 1.0, np.inf)
    for total in (0.4, values.size / 2, values.size - 0.1):
        assert is_nearest(values, capped_simplex(values, total), total, 1.0)


def test_the_conditions_reject_what_is_not_the_nearest() -> None:
    values = np.array([0.9, 0.4, -0.2])
    clipped_first = np.maximum(values, 0) / np.maximum(values, 0).sum()
    assert not is_nearest(values, clipped_first, 1.0, np.inf)


@settings(max_examples=200)
@given(
    st.lists(st.floats(-100, 100), min_size=1, max_size=12),
    st.floats(0.01, 10),
    st.floats(0, 1),
)
def test_any_input_agrees_with_exact_arithmetic(
    values: list[float], cap: float, part: float
) -> None:
    total = min(part * cap * len(values), cap * len(values))
    assert capped_simplex(values, total, cap) == pytest.approx(
        projected(values, total, cap), abs=1e-9
    )


@pytest.mark.parametrize("total", [0.5, 1.0, 2.5])
def test_a_solver_of_quadratic_programs_finds_the_same(total: float) -> None:
    for values in (INPUTS[9], INPUTS[10][:8], np.array([0.9, 0.8, 0.7, 0.1, -0.3, 0.0])):
        solve: Any = minimize
        solved = solve(
            lambda x, y: 0.5 * ((x - y) ** 2).sum(),
            np.full(values.size, total / values.size),
            args=(values,),
            jac=lambda x, y: x - y,
            method="SLSQP",
            bounds=[(0, 1)] * values.size,
            constraints=LinearConstraint(np.ones((1, values.size)), total, total),
            options={"ftol": 1e-15, "maxiter": 1000},
        )
        assert capped_simplex(values, total) == pytest.approx(solved.x, abs=1e-5)


@settings(max_examples=100)
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=30))
def test_norm_sub_is_one_shift_and_the_simplex_projection(values: list[float]) -> None:
    # By the definition: shift all, drop what is not positive, until nothing more has to go.
    y = np.array(values)
    active = np.ones(y.size, dtype=bool)
    while True:
        shift = (1 - y[active].sum()) / active.sum()
        dropped = active & (y + shift <= 0)
        if not dropped.any():
            break
        active &= ~dropped
    by_definition = np.where(active, y + shift, 0.0)
    assert norm_sub(values) == pytest.approx(by_definition, abs=1e-12)
    assert norm_sub(values).tolist() == simplex(values).tolist()


def test_cutting_before_shifting_is_another_answer() -> None:
    assert norm_sub([0.3, -0.01]) == pytest.approx([0.655, 0.345])


def test_projecting_twice_is_projecting_once() -> None:
    for values in INPUTS:
        once = simplex(values)
        assert simplex(once) == pytest.approx(once, abs=1e-12)
        assert clip(clip(values)).tolist() == clip(values).tolist()


def test_no_distance_to_a_possible_truth_grows() -> None:
    draw = np.random.default_rng(1)
    for _ in range(200):
        truth = draw.dirichlet(np.full(12, 0.3))
        noisy = truth + draw.normal(0, 0.3, 12)
        before = np.linalg.norm(noisy - truth)
        for processed in (clip(noisy), simplex(noisy), capped_simplex(noisy, 1.0)):
            assert np.linalg.norm(processed - truth) <= before + 1e-12


def test_a_million_items_are_no_trouble() -> None:
    values = np.random.default_rng(2).normal(0, 0.01, 1_000_000)
    assert simplex(values).sum() == pytest.approx(1, abs=1e-9)


# ---- what cannot be used --------------------------------------------------------------------


@pytest.mark.parametrize("function", [clip, norm_sub, simplex, lambda x: capped_simplex(x, 1)])
@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([], "shape (0,); a flat array of one or more numbers is expected."),
        ([[0.1, 0.2]], "shape (1, 2); a flat array of one or more numbers is expected."),
        (["a"], "a flat array of one or more numbers is expected."),
        ([0.1, float("nan")], "values[1] is nan; finite numbers are expected."),
        ([float("-inf"), 0.1], "values[0] is -inf; finite numbers are expected."),
    ],
)
def test_what_is_no_estimate_is_refused(function: Any, values: Any, said: str) -> None:
    with pytest.raises(InputError) as caught:
        function(values)
    assert said in str(caught.value)


@pytest.mark.parametrize("total", [-0.1, 3.1, float("nan"), None, "1", True])
def test_a_total_out_of_reach_is_refused(total: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"total is .*; 3 values .* can sum to 0\.\.3\."):
        capped_simplex([0.1, 0.2, 0.3], total)


@pytest.mark.parametrize("bad", [0, -1.0, float("inf"), float("nan"), None])
def test_a_bound_that_is_not_positive_is_refused(bad: Any) -> None:
    for call, name in ((clip, "cap"), (simplex, "total"), (norm_sub, "total")):
        with pytest.raises(ConfigurationError, match=f"{name} is .*; a positive number"):
            call([0.1], bad)


# ---- estimates ------------------------------------------------------------------------------


def collected(seed: int, n: int = 800) -> tuple[Estimate, NDArray[np.float64]]:
    mechanism = SubsetSelection(1.0, 20)
    chance = 0.5 ** np.arange(1, 21)
    people = seeded(seed).simulator().choice(20, n, p=chance / chance.sum())
    reports = mechanism.randomize(people, seeded(seed + 1))
    return mechanism.estimate(mechanism.tally(reports)), mechanism.truth(people)


@pytest.mark.parametrize("method", ["clip", "norm_sub", "simplex"])
def test_an_answer_names_its_processing_and_keeps_its_promise(method: str) -> None:
    estimate, _ = collected(3)
    processed = postprocess(estimate, method, level=0.9)
    assert processed.method == method
    assert processed.n == estimate.n
    assert processed.guarantee == estimate.guarantee
    assert processed.level == 0.9
    function = {"clip": clip, "norm_sub": norm_sub, "simplex": simplex}[method]
    assert processed.values.tolist() == function(estimate.values).tolist()
    assert processed.low.min() >= 0
    assert processed.high.max() <= 1
    assert (processed.low <= processed.high).all()
    assert f"{method}, 90% intervals, n = 800. Each report is protected" in repr(processed)
    assert repr(processed).splitlines()[12].endswith("(8 more)")
    assert list(processed.to_frame().columns) == ["item", "value", "low", "high"]


def test_parameters_are_part_of_the_name() -> None:
    mechanism = OUE(1.0, 4)
    estimate = mechanism.estimate(mechanism.tally(mechanism.randomize([0, 1, 2, 3], seeded(1))))
    processed = postprocess(estimate, "capped_simplex", total=2.5, cap=0.9)
    assert processed.method == "capped_simplex(total=2.5, cap=0.9)"
    assert processed.values.sum() == pytest.approx(2.5)
    assert processed.high.max() <= 0.9
    assert postprocess(estimate, "simplex", total=0.5).high.max() <= 0.5


def test_intervals_cover_at_least_as_often_and_errors_shrink() -> None:
    before = after = raw = nearer = 0.0
    for seed in range(60):
        estimate, truth = collected(10 * seed)
        processed = postprocess(estimate, "norm_sub")
        low, high = estimate.interval()
        before += float(((low <= truth) & (truth <= high)).sum())
        after += float(((processed.low <= truth) & (truth <= processed.high)).sum())
        raw += float(((estimate.values - truth) ** 2).sum())
        nearer += float(((processed.values - truth) ** 2).sum())
    assert after >= before
    assert nearer < raw / 2  # most items are rare here


@pytest.mark.parametrize(
    ("method", "parameters", "said"),
    [
        (
            "normsub",
            {},
            "method is 'normsub'; at_most, capped_simplex, clip, norm_sub or simplex is expected.",
        ),
        ("clip", {"total": 1}, "clip was given total; it takes cap."),
        ("capped_simplex", {}, "capped_simplex was given no parameter; it takes total and cap."),
    ],
)
def test_a_method_nobody_knows_is_refused(
    method: str, parameters: dict[str, float], said: str
) -> None:
    mechanism = GRR(1.0, 3)
    estimate = mechanism.estimate(mechanism.tally(mechanism.randomize([0, 1], seeded(1))))
    with pytest.raises(ConfigurationError) as caught:
        postprocess(estimate, method, **parameters)
    assert str(caught.value) == said


def test_at_most_is_the_nearest_point_below_a_total() -> None:
    rng = np.random.default_rng(8)
    for _ in range(50):
        values = rng.normal(0.2, 0.5, 6)
        total = float(rng.uniform(0.5, 4.0))
        found = at_most(values, total)
        cut = np.clip(values, 0, 1)
        assert found.sum() <= total + 1e-9
        if cut.sum() <= total:
            assert found.tolist() == cut.tolist()
        else:
            assert found.tolist() == capped_simplex(values, total).tolist()
        for other in rng.uniform(0, 1, (200, 6)):  # no other point of the set is nearer
            if other.sum() <= total:
                assert np.sum((values - found) ** 2) <= np.sum((values - other) ** 2) + 1e-12
