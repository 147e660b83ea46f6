"""A plan's sentence is right: changes of the stated size are seen, half as large ones are not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato import catalog
from sfumato.planner import Plan, PlanVerdict, plan
from sfumato.queries import History
from sfumato.randomness import seeded
from sfumato.simulation import Recorded, simulate
from sfumato.streams.weave.weave_fleet import collect

HORIZON = catalog.parse("""
title = "Lights"
epsilon = 1.0
periods = 16
period = "1 hour"
changes = 3
values = {kind = "binary"}
""")
WINDOW = catalog.parse("""
kind = "window"
title = "Trouble"
epsilon = 2.0
window = 4
devices = 4000
periods = 24
period = "1 hour"
values = {kind = "category", items = ["fine", "trouble"]}
""")
RUNS = 120
FIRST, LAST = 4, 14


def verdict_of(made: Plan) -> PlanVerdict:
    assert made.verdict is not None
    return made.verdict


def lives(devices: int, periods: int, change: float, seed: int) -> np.ndarray:
    """Return who is on: three of ten, and so many more in the second half of all periods."""
    rank = (np.random.default_rng(seed).permutation(devices) / devices)[:, None]
    later = np.arange(periods)[None, :] >= periods // 2
    return np.asarray((rank < np.where(later, 0.3 + change, 0.3)).astype(int))


def seen_over_a_horizon(made: Plan, change: float, runs: int) -> float:
    """Return how often the interval of the difference of two periods is above zero."""
    stream: Any = made.chosen.stream
    seen = 0
    for seed in range(runs):
        streams = lives(made.devices, 16, change, seed)
        history = History.of(stream, collect(stream, streams, seeded(seed)))
        seen += history.difference(FIRST, LAST)["on"].low > 0
    return seen / runs


def seen_in_a_window(made: Plan, change: float, runs: int) -> float:
    stream: Any = made.chosen.stream.expecting(made.devices)
    seen = 0
    for seed in range(runs):
        population = Recorded(lives(made.devices, 24, change, seed))
        values, variances = simulate(stream, population, seed=seed).estimates()
        periods = stream.released(values, variances, [1] * len(values))
        low, _ = periods.combined({FIRST: -1.0, 22: 1.0}).estimate.interval(0.95)
        seen += low[1] > 0
    return seen / runs


@pytest.mark.statistics
@pytest.mark.parametrize(
    ("devices", "changed"),
    [(5000, {}), (2000, {"epsilon": 2.0, "changes": 2}), (20_000, {"epsilon": 0.5, "changes": 1})],
)
def test_a_change_of_the_stated_size_is_seen_four_times_in_five(
    devices: int, changed: dict[str, Any]
) -> None:
    made = plan(catalog.changed(HORIZON, **changed), devices)
    change = verdict_of(made).change
    seen = seen_over_a_horizon(made, change, RUNS)
    assert abs(seen - 0.8) < 5 * np.sqrt(0.8 * 0.2 / RUNS)  # not below, and not far above
    assert seen_over_a_horizon(made, change / 2, RUNS // 2) < 0.6


@pytest.mark.slow
@pytest.mark.parametrize("window", [4, 12])
def test_a_change_of_the_stated_size_is_seen_in_a_stream_without_an_end(window: int) -> None:
    made = plan(catalog.changed(WINDOW, window=window))
    change = verdict_of(made).change
    assert seen_in_a_window(made, change, RUNS) > 0.8 - 5 * np.sqrt(0.8 * 0.2 / RUNS)
    assert seen_in_a_window(made, change / 2, RUNS // 2) < 0.6


def test_the_sentence_says_what_the_numbers_say() -> None:
    made = plan(HORIZON, 50_000)
    verdict = verdict_of(made)
    points = 100 * verdict.change
    words = f"changes of {np.ceil(10 * points) / 10:g} points or more between two periods"
    assert words in verdict.sentence
    assert verdict.sentence.startswith("With 50,000 devices you will see changes of ")
    influence = made.chosen.influence
    assert influence is not None
    assert verdict.forged == pytest.approx(500 * influence)
    assert verdict.forged is not None
    moved = f"a hundred can move a period by up to {np.ceil(100 * verdict.forged):g} points."
    assert verdict.sentence.endswith(moved)
    assert not verdict.is_hopeless
    plain = verdict.plain()
    assert plain["power"] == 0.8
    assert plain["hopeless"] is False


def test_a_hopeless_task_is_called_hopeless_and_what_helps_does() -> None:
    made = plan(HORIZON, 1000)
    verdict = verdict_of(made)
    assert verdict.is_hopeless
    assert verdict.sentence.startswith("This task is hopeless as it stands. With 1,000 devices not")
    assert "changes of 10 points would be with " in verdict.sentence
    helps = dict(
        words.split()[::-1] if words[0].isdigit() else words.split() for words in verdict.remedies
    )
    many = int(helps["devices"].replace(",", ""))
    assert verdict_of(plan(HORIZON, many)).change == pytest.approx(0.1, rel=0.1)
    if "epsilon" in helps:
        larger = catalog.changed(HORIZON, epsilon=float(helps["epsilon"]))
        assert verdict_of(plan(larger, 1000)).change < 0.13
    one = verdict_of(plan(HORIZON, 1))
    assert one.is_hopeless
    assert "With 1 device not even" in one.sentence


def test_means_and_moves_have_a_sentence_in_their_own_unit() -> None:
    numbers = catalog.parse("""
kind = "window"
title = "Time outside"
epsilon = 2.0
window = 4
devices = 4000
periods = 24
period = "1 hour"
values = {kind = "number", low = 0, high = 40, unit = "minutes"}
""")
    sentence = verdict_of(plan(numbers)).sentence
    assert " minutes or more between two periods" in sentence
    moves = catalog.parse("""
title = "Prices"
epsilon = 1.0
periods = 8
period = "1 hour"
changes = 4
values = {kind = "moves", items = ["bread", "milk"]}
""")
    assert verdict_of(plan(moves, 20_000)).forged == pytest.approx(
        200 * (plan(moves, 20_000).chosen.influence or 0)
    )


def test_one_forged_device_in_a_hundred_may_move_a_period_to_anything() -> None:
    made = plan(catalog.changed(HORIZON, epsilon=0.05), 2_000_000)
    sentence = verdict_of(made).sentence
    assert "can move a period to any value" in sentence or verdict_of(made).is_hopeless
