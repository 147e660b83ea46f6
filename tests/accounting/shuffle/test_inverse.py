from __future__ import annotations

from typing import Any

import pytest

from sfumato import GRR, Concord, ExSub, SubsetSelection
from sfumato.accounting.shuffle import Crowd, Requirement, best, calibrated, holds, people_needed
from sfumato.errors import ConfigurationError
from sfumato.planner import compare_shuffled

REQUIRED = Requirement(0.25, 1e-6, min_batch=10_000, colluding=0.1)


def test_calibrating_inverts_amplifying_from_the_safe_side() -> None:
    found = calibrated(lambda epsilon: GRR(epsilon, 16), REQUIRED)
    reached = best(found, 9_000, 1e-6).epsilon
    assert reached is not None
    assert REQUIRED.epsilon * (1 - 1e-6) <= reached <= REQUIRED.epsilon


@pytest.mark.statistics
def test_calibrating_counts_on_what_others_cover() -> None:
    required = Requirement(0.04, 1e-6, min_batch=10_000)
    found = calibrated(lambda epsilon: Concord(epsilon, 16, 4, 16, threshold=1), required)
    reached = best(found, 10_000, 1e-6)
    assert reached.bound == "covered_blanket"
    assert reached.epsilon is not None
    assert 0.04 * (1 - 1e-6) <= reached.epsilon <= 0.04


def test_with_parameters_that_follow_epsilon_the_next_one_on_the_grid_does_not_fit() -> None:
    found = calibrated(lambda epsilon: SubsetSelection(epsilon, 16), REQUIRED)
    assert holds(found, REQUIRED.epsilon, REQUIRED.delta, REQUIRED.crowd)
    following = SubsetSelection((round(found.epsilon * 1e4) + 1) / 1e4, 16)
    assert not holds(following, REQUIRED.epsilon, REQUIRED.delta, REQUIRED.crowd)


def test_the_owners_limit_is_never_exceeded() -> None:
    assert calibrated(lambda epsilon: GRR(epsilon, 16), REQUIRED, most=0.7).epsilon == 0.7
    assert calibrated(lambda epsilon: GRR(epsilon, 16), REQUIRED).epsilon > 0.7


def test_alone_the_local_epsilon_is_the_central_one() -> None:
    found = calibrated(lambda epsilon: GRR(epsilon, 16), Requirement(0.25, 0.0, 1))
    assert found.epsilon == pytest.approx(0.25, rel=1e-6)
    assert found.epsilon <= 0.25


def test_one_person_fewer_is_not_enough() -> None:
    needed = people_needed(GRR(1.0, 16), 0.1, 1e-6)
    assert holds(GRR(1.0, 16), 0.1, 1e-6, Crowd(needed))
    assert not holds(GRR(1.0, 16), 0.1, 1e-6, Crowd(needed - 1))
    assert people_needed(GRR(1.0, 16), 1.0, 0.0) == 1


@pytest.mark.statistics
def test_what_is_best_for_one_report_need_not_be_best_in_a_crowd() -> None:
    # Concord is ahead of ExSub at one local epsilon, and hides less.
    required = Requirement(0.05, 1e-6, 5_000)
    concord = calibrated(lambda epsilon: Concord(epsilon, 64, 8), required)
    exsub = calibrated(lambda epsilon: ExSub(epsilon, 64, 8), required)
    assert Concord(1.0, 64, 8).mse < ExSub(1.0, 64, 8).mse
    assert concord.epsilon < exsub.epsilon


@pytest.mark.statistics
def test_mechanisms_are_compared_in_the_sizes_that_a_crowd_hides_best() -> None:
    required = Requirement(0.05, 1e-6, 5_000)
    found = compare_shuffled(required, dimension=64, sparsity=8, goal="value")
    errors = [each.mse for each in found if each.name in ("exsub", "concord", "collision", "coco")]
    assert len(errors) == 4
    assert errors == sorted(errors)


def test_a_requirement_is_read_from_a_task_file() -> None:
    table = {"epsilon": 0.5, "delta": 1e-6, "min_batch": 20_000, "colluding": 0.1}
    required = Requirement.of(table)
    assert required.crowd.honest(1e-6) == (18_000, 0.0)
    assert "at least 20,000 reports" in str(required.guarantee)
    found = calibrated(lambda epsilon: ExSub(epsilon, 64, 4, subset_size=4), required, most=2.0)
    assert 0.5 < found.epsilon <= 2.0


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"epsilon": 0.5, "delta": 1e-6}, "needs min_batch"),
        ({"epsilon": 0.0, "delta": 1e-6, "min_batch": 5}, "epsilon is 0.0"),
        ({"epsilon": 0.5, "delta": 1.0, "min_batch": 5}, "delta is 1.0"),
        ({"epsilon": 0.5, "delta": 1e-6, "min_batch": 2.5}, "n is 2.5"),
        ({"epsilon": 0.5, "delta": 1e-6, "min_batch": 5, "colluding": 2}, "colluding is 2"),
        ({"epsilon": 0.5, "delta": 1e-6, "min_batch": 5, "users": 2}, "has 'users'"),
    ],
)
def test_a_bad_requirement_gets_one_sentence(table: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        Requirement.of(table)


def test_what_nothing_can_meet_is_said_so() -> None:
    with pytest.raises(ConfigurationError, match="a larger batch would"):
        calibrated(lambda epsilon: GRR(epsilon, 16), Requirement(1e-8, 1e-12, 1))
