"""No mechanism is below its floor, the best ones reach it, and a wrong law would be."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.cli.running import answer, run

from sfumato import Concord, planner
from sfumato.accounting.shuffle import Requirement
from sfumato.randomness import seeded

EPSILONS = (0.01, 0.3, 1.0, 1.2, 2.5, 4.0, 6.0)
QUESTIONS: list[dict[str, Any]] = [
    {"domain": 3},
    {"domain": 5},
    {"domain": 128},
    {"low": -1.0, "high": 3.0},
    {"dimension": 1, "sparsity": 1, "goal": "value"},
    {"dimension": 64, "sparsity": 1, "goal": "value"},
    {"dimension": 40, "sparsity": 5, "goal": "value"},
    {"dimension": 6, "sparsity": 6, "goal": "value"},
    {"dimension": 40, "sparsity": 5, "goal": "frequency"},
]


def _ratios(question: dict[str, Any], epsilon: float) -> dict[str, float]:
    """Return the error of all mechanisms, rivals included, in multiples of the floor."""
    floor = planner.least_error(epsilon, **question)
    return {
        each.name: each.mse / floor if floor else np.inf
        for each in planner.candidates(rivals=True, epsilon=epsilon, **question)
        if planner.answers(each, **question)
    }


@pytest.mark.parametrize("question", QUESTIONS, ids=str)
def test_no_mechanism_is_below_the_floor(question: dict[str, Any]) -> None:
    for epsilon in EPSILONS:
        assert min(_ratios(question, epsilon).values()) >= 1 - 1e-9


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_best_mechanisms_reach_it(epsilon: float) -> None:
    for size in (2, 5, 128):
        ratios = _ratios({"domain": size}, epsilon)
        assert ratios["subset_selection"] == pytest.approx(1, rel=1e-9)
    assert _ratios(QUESTIONS[4], epsilon)["concord"] == pytest.approx(1, rel=1e-6)
    for name in ("concord", "exsub"):
        assert _ratios(QUESTIONS[5], epsilon)[name] < 1.01
    if epsilon <= 4:  # at larger ones there is no floor for several non-zeros
        assert min(_ratios(QUESTIONS[6], epsilon).values()) < 1.6


@pytest.mark.parametrize(("entries", "held"), [(64, 2), (1024, 2), (40, 5), (64, 8), (1024, 20)])
def test_concord_is_near_it_where_few_entries_are_held(entries: int, held: int) -> None:
    def ratio(epsilon: float) -> float:
        floor = planner.least_error(epsilon, dimension=entries, sparsity=held)
        return Concord(epsilon, entries, held).mse / floor

    assert max(map(ratio, (0.01, 0.3, 1.0, 2.5, 4.0))) < 1.69
    assert 1.01 < ratio(3.0) < 1.07


@pytest.mark.parametrize("inputs", [2, 3, 4, 6])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_no_law_tells_inputs_further_apart(inputs: int, epsilon: float) -> None:
    """Sums of squares over Q: of inputs against all of them, and of inputs against reverses."""
    most, favoured = np.exp(epsilon), np.arange(1, inputs)

    def largest(numbers: NDArray[np.int64], factor: NDArray[np.float64]) -> float:
        share = numbers / inputs
        return float((factor * ((most - 1) / (1 + share * (most - 1))) ** 2).max())

    against_all = largest(favoured, favoured / inputs * (1 - favoured / inputs))
    half = np.arange(1, inputs // 2 + 1)
    against_reverses = largest(half, 2 * half / inputs)
    reached = [0.0, 0.0]
    draw = seeded(8).simulator()
    subsets = np.array(list(product([1.0, most], repeat=inputs)))  # all extreme columns
    drawn = most ** draw.random((500, inputs))
    for column in (*subsets, *drawn):  # one report is enough: the sum is a mean over reports
        mean = column.mean()
        apart = ((column - mean) ** 2).mean() / mean**2
        reverse = ((column - column[::-1]) ** 2).mean() / mean**2
        reached = [max(reached[0], apart), max(reached[1], reverse)]
    assert reached[0] == pytest.approx(against_all, rel=1e-9)
    if inputs % 2 == 0:
        assert reached[1] == pytest.approx(against_reverses, rel=1e-9)


def test_a_law_that_spends_more_than_it_says_falls_below() -> None:
    honest = Concord(1.0, 64, 1)
    spends_more = replace(honest, epsilon=1.02)
    assert spends_more.mse < planner.least_error(1.0, dimension=64, sparsity=1) <= honest.mse


def test_shuffled_vectors_have_the_floor_of_a_curator_with_normal_noise() -> None:
    for crowd, entries, held, expected in (
        ((0.05, 1e-6, 10_000), 256, 8, 3931),
        ((0.25, 1e-6, 10_000), 256, 8, 195),
        ((0.05, 1e-6, 100_000), 256, 4, 197),
        ((0.05, 1e-6, 10_000), 1024, 8, 15724),
    ):
        question = {"dimension": entries, "sparsity": held}
        assert round(planner.least_shuffled_error(*crowd, **question)) == expected - held


SHUFFLED: tuple[dict[str, Any], ...] = (
    {"domain": 3},
    {"domain": 64},
    {"low": 0.0, "high": 1.0},
    {"dimension": 32, "sparsity": 2, "goal": "value"},
    {"dimension": 32, "sparsity": 2, "goal": "frequency"},
)


@pytest.mark.parametrize("question", SHUFFLED)
def test_no_mechanism_is_below_the_floor_of_shuffled_reports(question: dict[str, Any]) -> None:
    floor = planner.least_shuffled_error(0.05, 1e-6, 10_000, **question)
    compared = planner.compare_shuffled(Requirement(0.05, 1e-6, 10_000), 6.0, **question)
    assert 0 < floor < compared[0].mse
    if question.get("domain") == 64 or question.get("goal") == "value":
        assert compared[0].mse < 1.25 * floor


def test_compare_and_calibrate_print_it() -> None:
    question = ["--dimension", "40", "--sparsity", "5"]
    rows = answer("compare", *question, "--epsilon", "1")
    floor = planner.least_error(1.0, dimension=40, sparsity=5)
    assert {row["floor"] for row in rows} == {floor}
    shown = run("compare", *question, "--epsilon", "1").stdout
    assert f"below {floor:.6g};" in shown.replace("\n", " ")
    crowd = ["--central-epsilon", "0.1", "--delta", "1e-6", "--n", "10000"]
    (row,) = answer("calibrate", "exsub", *question, *crowd)
    assert 0 < row["floor"] < row["mse"]
    (row,) = answer("calibrate", "exsub", *question, *crowd, "--goal", "frequency")
    assert 0 < row["floor"] < row["mse"]
    (row,) = answer("calibrate", "grr", "--domain", "40", *crowd, "--colluding", "0.1")
    assert row["floor"] == planner.least_shuffled_error(0.1, 1e-6, 9_000, domain=40)
    assert 0.7 < row["floor"] / row["mse"] < 1
