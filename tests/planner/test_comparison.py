"""Candidates for a question, by exact error."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato import GRR, ExSub, Hybrid, PrivSet, catalog, planner, seeded
from sfumato.errors import ConfigurationError


def test_the_best_comes_first_and_errors_are_those_of_the_mechanisms() -> None:
    found = planner.compare(epsilon=1.0, domain=10)
    errors = [candidate.mse for candidate in found]
    assert errors == sorted(errors)
    by_name = {candidate.mechanism.name: candidate for candidate in found}
    assert by_name["grr"].mse == GRR(1.0, 10).mse
    assert by_name["grr"].report_bytes == 1


def test_mechanisms_that_only_choose_among_others_are_left_out() -> None:
    names = {mechanism.name for mechanism in planner.candidates(epsilon=1.0, domain=10)}
    assert "grr" in names
    assert "adaptive" not in names


def test_numbers_are_compared_by_their_worst_case() -> None:
    found = planner.compare(epsilon=2.0, low=-1.0, high=1.0)
    assert found[0].mechanism == Hybrid(2.0, -1.0, 1.0)
    assert found[0].mse == pytest.approx(1.042, abs=2e-3)


def test_the_half_width_shrinks_with_the_root_of_the_devices() -> None:
    best = planner.compare(epsilon=1.0, domain=4)[0]
    assert best.half_width(100) == pytest.approx(10 * best.half_width(10_000))
    assert best.half_width(10_000) == pytest.approx(1.96 * (best.mse / 10_000) ** 0.5, rel=1e-4)


def test_of_equal_errors_the_shorter_report_is_first() -> None:
    # Of two items GRR and subsets of one have the same law.
    found = planner.compare(epsilon=1.0, domain=2)
    tied = [one for one in found if one.mse == pytest.approx(found[0].mse, rel=1e-9)]
    assert len(tied) > 1
    assert [one.report_bytes for one in tied] == sorted(one.report_bytes for one in tied)


@pytest.mark.parametrize("question", [{"domain": 10}, {"epsilon": 1.0, "colour": "red"}])
def test_a_question_nobody_answers_gets_one_sentence(question: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="needs just"):
        planner.compare(**question)  # type: ignore[arg-type]


def test_bad_parameters_are_refused_by_the_mechanism() -> None:
    with pytest.raises(ConfigurationError, match="epsilon is 0"):
        planner.compare(epsilon=0, domain=10)


def test_sparse_vectors_of_any_size_are_compared() -> None:
    found = planner.compare(epsilon=1.0, dimension=256, sparsity=8, goal="value")
    names = [one.mechanism.name for one in found]
    assert names[0] == "concord"
    assert set(names) == {"coco", "collision", "concord", "exsub", "privset"}
    by_name = {one.mechanism.name: one for one in found}
    assert by_name["exsub"].mse == ExSub(1.0, 256, 8).mse
    assert all(one.device_seconds > 0 and one.server_seconds > 0 for one in found)
    # The error is a total over the entries, an interval is that of one of them.
    exsub = by_name["exsub"]
    assert exsub.half_width(100) == pytest.approx(1.96 * (exsub.mse / 256 / 100) ** 0.5, rel=1e-4)


def test_what_answers_a_part_of_the_question_comes_last() -> None:
    question: dict[str, Any] = {"epsilon": 1.0, "dimension": 30, "sparsity": 3}
    signed = planner.compare(**question, goal="value")
    assert signed[-1].mechanism == PrivSet(1.0, 30, 3)  # shares, but no signs
    assert signed[-1].mse < signed[0].mse
    shares = planner.compare(**question, goal="frequency")
    assert shares[0].mechanism == PrivSet(1.0, 30, 3)
    assert shares[1].mechanism.configuration()["goal"] == "frequency"


def test_examples_are_values_that_each_mechanism_takes() -> None:
    for name in catalog.names():
        for example in catalog.find(name).examples():
            assert len(example.randomize(example.example_values(5), seeded(1))) == 5
