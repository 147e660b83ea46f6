from __future__ import annotations

import numpy as np
import pytest

from sfumato.service.steady_clock import BEHIND, LONGEST_GAP, OpenTime, SteadyClock

HOURS = 3600.0


class Machine:
    """A wall clock that can be set, and time that goes on."""

    def __init__(self) -> None:
        self.passed, self.lead = 50.0, 1e9
        self.clock = SteadyClock(lambda: self.passed + self.lead, lambda: self.passed)

    def after(self, seconds: float, step: float = 0.25) -> float:
        end = self.passed + seconds
        while self.passed < end:
            self.passed = min(self.passed + step, end)
            now = self.clock()
        return now - 1e9


def test_a_clock_that_is_right_is_shown_as_it_is() -> None:
    machine = Machine()
    assert machine.after(100) == pytest.approx(150)


def test_ten_hours_ahead_for_two_seconds_gain_a_fifth_of_a_second() -> None:
    machine = Machine()
    machine.lead += 10 * HOURS
    assert machine.after(2) <= 52.21
    machine.lead -= 10 * HOURS
    assert machine.after(1) == pytest.approx(53)


def test_a_clock_that_stays_ahead_is_followed_slowly() -> None:
    machine = Machine()
    machine.lead += 60
    assert machine.after(300) == pytest.approx(50 + 300 * 1.1, abs=0.1)
    assert machine.after(400) == pytest.approx(50 + 700 + 60)


def test_a_clock_that_was_set_back_is_never_overtaken() -> None:
    machine = Machine()
    machine.lead -= 10 * HOURS
    assert machine.after(2) == pytest.approx(52 - 10 * HOURS)
    machine.lead += 10 * HOURS  # it was a moment only
    assert machine.after(2) == pytest.approx(54)
    machine.lead -= 10 * HOURS
    machine.after(BEHIND + 1)
    machine.lead += 10 * HOURS  # it was believed, and its way back is long
    assert machine.after(1) < 120 - 9 * HOURS


def test_no_walk_of_the_clock_ahead_hurries_it() -> None:
    rng = np.random.default_rng(1)
    machine = Machine()
    for _ in range(300):
        machine.lead = 1e9 + abs(float(rng.normal(0, HOURS)))
        machine.after(float(rng.uniform(0, 5)), step=1.0)
        assert machine.clock() - 1e9 <= 50 + 1.1 * (machine.passed - 50) + 1e-3


def test_uploads_are_open_since_the_start_the_last_failure_or_a_stop() -> None:
    now = [10.0]
    open_time = OpenTime(lambda: now[0])
    now[0] += 3
    assert open_time.look() == 3
    open_time.interrupted()
    now[0] += 2
    assert open_time.look() == 2
    now[0] += LONGEST_GAP + 1  # it was stopped
    assert open_time.look() == 0
    now[0] += 4
    assert open_time.look() == 4
