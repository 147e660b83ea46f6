"""Candidates for a question, by exact error."""

from __future__ import annotations

import pytest

from sfumato import GRR, Hybrid, planner
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


@pytest.mark.parametrize("question", [{"epsilon": 1.0}, {"epsilon": 1.0, "colour": "red"}])
def test_a_question_nobody_answers_gets_one_sentence(question: dict[str, object]) -> None:
    with pytest.raises(ConfigurationError, match="needs just"):
        planner.compare(**question)  # type: ignore[arg-type]


def test_bad_parameters_are_refused_by_the_mechanism() -> None:
    with pytest.raises(ConfigurationError, match="epsilon is 0"):
        planner.compare(epsilon=0, domain=10)
