"""A plan chooses as well as a trial of every candidate does, and gives its reasons."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest

from sfumato import catalog
from sfumato.catalog import parse
from sfumato.errors import ConfigurationError, InputError
from sfumato.planner import Pilot, Plan, plan
from sfumato.simulation.made_up_lives import Synthetic
from sfumato.streams.kinds import Binary, Category, Values, values_of
from sfumato.streams.pilot import Sample
from sfumato.streams.weave import Weave
from sfumato.streams.weave.expected import expected
from sfumato.streams.weave.weave_outlook import WeaveOutlook
from sfumato.wire.task import Task

TASK = parse("""
title = "Lights"
epsilon = 1.0
periods = 16
period = "1 hour"
changes = 3
values = {kind = "binary"}
""")
CATEGORY = catalog.changed(
    TASK,
    values=parse("""
title = "Places"
epsilon = 1.0
periods = 16
period = "1 hour"
changes = 3
values = {kind = "category", items = 4}
""").values,
)


@cache
def planned(devices: int, *changed: tuple[str, Any]) -> Plan:
    """Return the plan of the task with other fields, which several tests look at."""
    return plan(catalog.changed(TASK, **dict(changed)), devices)


@pytest.fixture(scope="module")
def usual() -> Plan:
    return plan(TASK, 100_000, target=0.01)


def woven(made: Plan) -> Weave:
    """Return the stream that is recommended."""
    assert isinstance(made.chosen.stream, Weave)
    return made.chosen.stream


def sample(made: Plan) -> Sample:
    assert isinstance(made.outlook, WeaveOutlook)
    return made.outlook.pilot.sample


# ---- the choice ------------------------------------------------------------------------------


def shares(spans: int, units: int) -> Iterator[tuple[float, ...]]:
    """Yield all ways to deal so many units to spans."""
    for cuts in combinations(range(units + spans - 1), spans - 1):
        ends = (-1, *cuts, units + spans - 1)
        yield tuple((b - a - 1) / units for a, b in pairwise(ends))


def everything(
    values: Values, task: Task, changes: list[int], units: int
) -> Iterator[tuple[Weave, int]]:
    """Yield every mechanism, number of changes and mix on a grid."""
    spans = [span for span in (1, 2, 4, 8) if 2 * span <= task.periods]
    for most in changes:
        for mechanism in ("concord", "exsub"):
            for dealt in shares(len(spans) + 1, units):
                mix = [(g, w) for g, w in zip([*spans, 0], dealt, strict=True) if w]
                yield (
                    Weave(
                        values,
                        task.periods,
                        most,
                        task.epsilon,
                        tuple(g for g, _ in mix),
                        tuple(w for _, w in mix),
                        mechanism,
                    ),
                    most,
                )


def worst_ratio(task: Task, devices: int, pilot: Pilot | None, units: int) -> float:
    """Return how many times as large the plan's error is as the least of all."""
    values = values_of(task.values)
    found = plan(task, devices, pilot=pilot)
    changes = [task.design["changes"]] if pilot is None else [1, 2, 3, 4, 5, 6]
    chosen = found.chosen.errors["online"].rmse
    least = min(
        expected(protocol, devices, sample(found))["online"].rmse
        for protocol, _ in everything(values, task, changes, units)
    )
    return chosen / least


@pytest.mark.statistics
def test_no_mix_on_a_grid_is_much_better_than_the_choice() -> None:
    assert worst_ratio(TASK, 20_000, None, units=4) < 1.05


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("task", [TASK, CATEGORY], ids=["binary", "category"])
@pytest.mark.parametrize("devices", [10_000, 1_000_000])
def test_none_is_anywhere(task: Task, epsilon: float, devices: int) -> None:
    asked = catalog.changed(task, epsilon=epsilon)
    assert worst_ratio(asked, devices, None, units=6) < 1.05


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 4.0])
@pytest.mark.parametrize("devices", [10_000, 1_000_000])
def test_no_number_of_changes_is_much_better_than_the_choice(epsilon: float, devices: int) -> None:
    asked = catalog.changed(TASK, epsilon=epsilon)
    pilot = Pilot(Binary(), Synthetic(Binary(), 16, 6, 3000, "uniform", 1).streams())
    assert worst_ratio(asked, devices, pilot, units=4) < 1.05


def test_the_best_option_comes_first_and_beats_what_the_papers_do(usual: Plan) -> None:
    errors = [option.errors["online"].rmse for option in usual.options]
    assert errors == sorted(errors)
    names = [option.name for option in usual.options]
    assert names[0] == "weave"
    assert {"snapshots", "tree", "hierarchy"} <= set(names)
    assert usual.chosen.errors["history"].rmse <= usual.chosen.errors["online"].rmse


def test_many_changes_leave_snapshots_alone() -> None:
    found = plan(catalog.changed(TASK, changes=16), 100_000)
    assert found.chosen.name == "snapshots"
    assert any("snapshots alone are best" in reason for reason in found.reasons)
    assert found.recommended.design["mix"] == [[0, 1.0]]


def test_the_recommended_task_is_the_chosen_protocol(usual: Plan) -> None:
    made = catalog.stream(usual.recommended)
    assert isinstance(made, Weave)
    chosen = woven(usual)
    assert sorted(zip(made.spans, made.shares, strict=True)) == sorted(
        zip(chosen.spans, chosen.shares, strict=True)
    )
    assert made.changes == chosen.changes


# ---- pilots ----------------------------------------------------------------------------------


def test_few_changes_in_a_pilot_lower_the_number_of_changes() -> None:
    asked = catalog.changed(TASK, changes=12)
    found = plan(asked, 50_000, pilot=Pilot.of_changes(Binary(), 16, {0: 0.5, 1: 0.3, 2: 0.2}))
    assert woven(found).changes == 2
    at_twelve = [o for o in found.options if o.name == "weave" and o.fields["changes"] == 12]
    assert found.chosen.errors["online"].rmse < at_twelve[0].errors["online"].rmse


@pytest.mark.statistics
def test_more_devices_make_bias_matter_and_changes_grow() -> None:
    pilot = Pilot.of_changes(Binary(), 16, {1: 0.6, 2: 0.3, 8: 0.1}, epsilon=0.5)
    few = plan(TASK, 3_000, pilot=pilot)
    many = plan(TASK, 30_000_000, pilot=pilot)
    assert woven(few).changes < woven(many).changes
    assert few.chosen.errors["online"].squared_bias > 0
    assert any("of the pilot's streams change more often" in reason for reason in few.reasons)
    assert any("spends 1.5 in all" in warning for warning in few.warnings)


def test_a_histogram_may_be_noisy_but_not_empty() -> None:
    pilot = Pilot.of_changes(Category(3), 10, {1: 0.7, 3: 0.35, 5: -0.05})
    assert pilot.most_changes == 3
    assert pilot.beyond(1) == pytest.approx(1 / 3, abs=0.01)
    with pytest.raises(InputError, match="no share above zero"):
        Pilot.of_changes(Binary(), 10, {1: 0.0, 2: -0.5})
    with pytest.raises(InputError, match=r"11 changes: 0\.5; numbers of changes in 0\.\.10"):
        Pilot.of_changes(Binary(), 10, {11: 0.5})


def test_of_a_large_pilot_some_streams_are_taken() -> None:
    pilot = Pilot(Binary(), np.zeros((50_000, 10), dtype=np.int8))
    assert pilot.people == 50_000
    assert pilot.sample.people == 4_000


# ---- targets ---------------------------------------------------------------------------------


@pytest.mark.statistics
def test_what_reaches_a_target_reaches_it(usual: Plan) -> None:
    reach = usual.reach
    assert reach is not None
    assert reach["devices"] is not None
    found = expected(woven(usual), int(reach["devices"]), sample(usual))["online"].reported
    assert 1.96 * found**0.5 == pytest.approx(0.01, rel=0.1)
    assert reach["epsilon"] is not None
    sharper = plan(catalog.changed(TASK, epsilon=reach["epsilon"]), 100_000)
    assert 0.007 < sharper.chosen.half_width("online") < 0.0102


def test_a_target_that_is_met_already_needs_less() -> None:
    found = plan(TASK, 100_000, target=0.1).reach
    assert found is not None
    assert found["devices"] is not None
    assert found["devices"] < 100_000
    assert found["epsilon"] is not None
    assert found["epsilon"] < 1
    assert found["periods"] == 16


@pytest.mark.statistics
def test_a_target_out_of_reach_is_said_to_be() -> None:
    found = plan(TASK, 200, target=0.0001).reach
    assert found is not None
    assert (found["epsilon"], found["periods"]) == (None, None)


def test_half_the_epsilon_is_about_twice_the_error(usual: Plan) -> None:
    second = usual.outlook.facts(usual.chosen)["second_horizon"]
    assert 1.7 < second["error_factor_at_equal_epsilon"] < 2.3


# ---- words -----------------------------------------------------------------------------------


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("changed", "devices", "sentence"),
    [
        ({"epsilon": 6.0}, 100_000, "epsilon 6 is large"),
        ({}, 100_000, "A person with two devices is protected with epsilon 2 only"),
        ({}, 100_000, "A pilot tells by how much"),
        ({}, 200, "snapshots are expected in a period"),
        ({}, 200, "say next to nothing"),
        ({"periods": 30}, 8, "will have no estimate"),
        ({"values": CATEGORY.values, "changes": 2}, 100_000, "changes = 2 leaves no move"),
    ],
)
def test_what_a_privacy_engineer_would_say(
    changed: dict[str, Any], devices: int, sentence: str
) -> None:
    said = planned(devices, *changed.items()).warnings
    assert any(sentence in one for one in said), said


def test_what_needs_no_warning_gets_none(usual: Plan) -> None:
    said = " ".join(usual.warnings)
    for word in ("large", "no estimate", "are expected in a period", "next to nothing", "no move"):
        assert word not in said


def test_raw_pilots_and_small_ones_are_warned_of() -> None:
    pilot = Pilot(Binary(), np.zeros((20, 16), dtype=np.int8))
    said = " ".join(plan(TASK, 50_000, pilot=pilot).warnings)
    assert "this plan does not protect them" in said
    assert "The pilot has 20 streams" in said


def test_costs_are_those_of_the_messages(usual: Plan) -> None:
    best = usual.chosen
    alone = next(option for option in usual.options if option.name == "snapshots")
    assert alone.sent == (1, 1, 1)
    assert 1 < best.sent.messages < best.sent.most_messages <= 16
    assert 0 < alone.device_seconds < best.device_seconds * 10


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"devices": 0}, "devices is 0; a whole number from 1 on"),
        ({"devices": 10, "target": -1.0}, "target is -1.0; a number from 1e-09 on is expected"),
    ],
)
def test_what_cannot_be_planned(given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        plan(TASK, **given)
