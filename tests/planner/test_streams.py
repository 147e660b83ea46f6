"""Streams without an end, moves and streams of other packages are planned like any other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.streams.window.people import steady

from sfumato import catalog
from sfumato.core.outlook import PERIOD, Outlook
from sfumato.errors import ConfigurationError
from sfumato.planner import Option, Plan, plan
from sfumato.simulation import Recorded, simulate
from sfumato.streams import registry
from sfumato.streams.flat import Flat
from sfumato.streams.flat.flat_outlook import predicted
from sfumato.wire.task import Task

WINDOW = catalog.parse("""
kind = "window"
title = "Where people are"
epsilon = 1.0
window = 10
devices = 20_000
periods = 40
period = "1 hour"
values = {kind = "category", items = 4}
""")
MOVES = catalog.parse("""
title = "Prices"
epsilon = 1.0
periods = 8
period = "1 hour"
changes = 4
values = {kind = "moves", items = ["bread", "milk"]}
""")


@pytest.fixture(scope="module")
def usual() -> Plan:
    return plan(WINDOW)


def named(made: Plan) -> dict[str, Option]:
    return {option.name: option for option in made.options}


def predicted_by(task: Task) -> tuple[Outlook, Option]:
    """Return what is known without simulating anything, and the option that divides evenly."""
    outlook = registry.find(task.stream).outlook(task.plain())
    return outlook, next(option for option in outlook.options() if option.name == "lpu")


def half_width(task: Task, **changed: Any) -> float:
    """Return how far the interval of a period's own answers reaches."""
    return predicted_by(catalog.changed(task, **changed))[1].half_width(PERIOD)


@pytest.mark.parametrize("method", ["lbu", "lpu"])
def test_what_is_planned_is_what_comes_out(usual: Plan, method: str) -> None:
    option = named(usual)[method]
    done = simulate(option.stream, steady(40, (0.25,) * 4, 20_000))
    assert done.mse() ** 0.5 == pytest.approx(option.errors[PERIOD].rmse, rel=0.15)
    assert done.reports == pytest.approx(option.sent.messages, rel=0.01)
    assert option.errors["online"].rmse == pytest.approx(option.errors[PERIOD].rmse, rel=0.2)


def test_the_method_of_least_simulated_error_is_recommended(usual: Plan) -> None:
    errors = [option.errors["online"].rmse for option in usual.options]
    assert errors == sorted(errors)
    assert usual.recommended.design["method"] == usual.chosen.name
    assert usual.simulated is not None
    assert (usual.simulated.devices, usual.simulated.periods) == (20_000, 40)
    assert usual.reasons[0].startswith(f"{usual.chosen.name} (")
    assert any("simulated, on 20,000 made-up devices over 40 periods" in r for r in usual.reasons)
    assert PERIOD not in named(usual)["lpd"].errors


def test_the_choice_depends_on_the_task(usual: Plan) -> None:
    """What items learn from each other pays where their own answers are few and noisy."""
    sure = catalog.changed(WINDOW, window=4, epsilon=2.0)
    assert (usual.chosen.name, plan(sure, 4000).chosen.name) == ("pooled", "filtered")


def test_a_target_is_reached_by_what_is_said_to_reach_it() -> None:
    outlook, lpu = predicted_by(WINDOW)
    reach = outlook.reach(lpu, 0.03)
    devices, epsilon, window = (reach[name] for name in ("devices", "epsilon", "window"))
    assert devices is not None
    assert epsilon is not None
    assert window is not None
    some = int(devices)
    assert half_width(WINDOW, devices=some) <= 0.03 < half_width(WINDOW, devices=some // 2)
    assert half_width(WINDOW, epsilon=epsilon) <= 0.03 < half_width(WINDOW, epsilon=epsilon * 0.98)
    short = int(window)
    assert half_width(WINDOW, window=short) <= 0.03 < half_width(WINDOW, window=short + 1)


def test_what_nothing_reaches_is_said() -> None:
    outlook, lpu = predicted_by(WINDOW)
    reach = outlook.reach(lpu, 0.001)
    assert (reach["epsilon"], reach["window"]) == (None, None)


def test_methods_that_cannot_divide_so_little_are_left_out() -> None:
    found = named(plan(WINDOW, 15))
    assert "lpu" in found
    assert "lpd" not in found


def test_tiers_are_planned_together() -> None:
    both = catalog.changed(
        WINDOW, stream="tiers", tiers=[{"window": 20, "epsilon": 1.0, "devices": 20_000}]
    )
    (_, found), (_, alone) = predicted_by(both), predicted_by(WINDOW)
    assert found.devices == 40_000
    assert found.sent.messages == pytest.approx((1 / 10 + 1 / 20) / 2)
    assert found.errors[PERIOD].rmse < alone.errors[PERIOD].rmse


# ---- moves ---------------------------------------------------------------------------------------


def test_moves_are_planned() -> None:
    made = plan(MOVES, 20_000, target=0.01)
    assert made.simulated is None
    errors = [option.errors["online"].rmse for option in made.options]
    assert errors == sorted(errors)
    assert made.recommended.design["mechanism"] == made.chosen.fields["mechanism"]
    assert made.reach is not None
    assert made.reach["devices"] is not None
    enough = plan(MOVES, int(made.reach["devices"])).chosen
    assert enough.half_width("online") == pytest.approx(0.01, rel=0.02)
    assert made.reach["epsilon"] is not None
    sharper = plan(catalog.changed(MOVES, epsilon=made.reach["epsilon"]), 20_000).chosen
    assert 0.0095 < sharper.half_width("online") <= 0.01005


@pytest.mark.statistics
@pytest.mark.parametrize("mechanism", ["concord", "exsub"])
def test_the_error_of_moves_is_predicted(mechanism: Any) -> None:
    stream = Flat(("a", "b"), 8, 4, 1.0, mechanism)
    rng = np.random.default_rng(1)
    moves = np.zeros((20_000, 16), dtype=np.int8)
    moves[:, :4] = rng.choice((-1, 1), (20_000, 4))
    streams = rng.permuted(moves, axis=1).reshape(20_000, 8, 2)
    squares = [simulate(stream, Recorded(streams), seed=seed).mse() for seed in range(40)]
    expected = predicted(stream, 20_000)
    assert np.mean(squares) == pytest.approx(expected.mse, rel=0.15)
    assert abs(np.mean(squares) / predicted(stream, 30_000).mse - 1) > 0.15


# ---- any other -----------------------------------------------------------------------------------


def test_a_stream_that_predicts_nothing_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.STREAMS, "slow", "tests.simulation.slow:Slow")
    table = {"stream": "slow", "title": "t", "epsilon": 2.0, "window": 2, "devices": 200}
    values = {"kind": "category", "items": 3}
    task = catalog.task(table | {"periods": 4, "period": "1 hour", "values": values})
    made = plan(task)
    assert [option.name for option in made.options] == ["slow"]
    assert made.chosen.errors["online"].rmse > 0
    assert any("simulated, on 200 made-up devices over 4 periods" in r for r in made.reasons)
    with pytest.raises(ConfigurationError, match="stream is 'slow'; only a horizon takes one"):
        plan(task, pilot=object())  # type: ignore[arg-type]


def test_sums_of_amounts_are_simulated() -> None:
    table = {"stream": "topl", "title": "t", "epsilon": 2.0, "periods": 4, "period": "1 hour"}
    made = plan(catalog.task(table | {"values": {"kind": "number", "low": 0, "high": 10}}), 4000)
    assert made.chosen.errors["online"].unknown == 0.25  # the first period chooses the threshold
    assert made.chosen.errors["online"].rmse < 4000
