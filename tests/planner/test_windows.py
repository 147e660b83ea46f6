from __future__ import annotations

from dataclasses import replace

import pytest
from tests.streams.window.people import steady

from sfumato.errors import ConfigurationError
from sfumato.planner.windows import plan_window
from sfumato.simulation import simulate
from sfumato.streams.window import Window

TASK = Window(10, 1.0, 20_000, domain=4)


@pytest.mark.parametrize("method", ["lbu", "lpu"])
def test_what_is_planned_is_what_comes_out(method: str) -> None:
    option = next(each for each in plan_window(TASK).options if each.method == method)
    people = steady(40, (0.25,) * 4, 20_000)
    done = simulate(replace(TASK, method=method), people, seed=1)
    assert option.rmse is not None
    assert done.mse() ** 0.5 == pytest.approx(option.rmse, rel=0.15)
    reports = sum(asked.received for asked in done.asked) / (40 * 20_000)
    assert reports == pytest.approx(option.most_reports, rel=0.01)


def test_a_target_is_reached_by_what_is_said_to_reach_it() -> None:
    found = plan_window(TASK, target=0.03).reachable
    assert found is not None
    assert found.epsilon is not None

    def half_width(**changed: float) -> float:
        other = plan_window(replace(TASK, **changed)).recommended  # type: ignore[arg-type]
        assert other.half_width is not None
        return other.half_width

    assert half_width(devices=found.devices) <= 0.03 < half_width(devices=found.devices // 2)
    assert half_width(epsilon=found.epsilon) <= 0.03 < half_width(epsilon=found.epsilon * 0.98)
    assert found.window is not None
    assert half_width(window=found.window) <= 0.03 < half_width(window=found.window + 1)


def test_what_nothing_reaches_is_said() -> None:
    found = plan_window(TASK, target=0.001).reachable
    assert found is not None
    assert found.epsilon is None
    assert found.window is None


def test_methods_that_cannot_divide_so_little_are_left_out() -> None:
    found = [option.method for option in plan_window(Window(10, 1.0, 15, domain=4)).options]
    assert "lpu" in found
    assert "lpd" not in found


def test_a_target_is_positive() -> None:
    with pytest.raises(ConfigurationError, match="target is -1; a half width of 1e-09 or more is"):
        plan_window(TASK, target=-1)
