"""Streams that were published by time: intervals that cover, gaps, means and bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.arrays import Ints
from sfumato.errors import ConfigurationError, InputError, SpentError
from sfumato.randomness import seeded
from sfumato.streams.published import ReleasedByTime, plan_periods
from sfumato.streams.published.periods import TimedValues, period_sums, publish_periods
from sfumato.streams.published.thresholds import Fixed
from sfumato.streams.published.time_grid import TimeGrid

GRID = TimeGrid.spanning("2026-03-27", "2026-03-31", 3600, "Europe/Berlin")
WEEKS = TimeGrid.spanning("2026-01", "2026-06", 3600, "Europe/Berlin")


def stream(name: str, seed: int, grid: TimeGrid, rows: int) -> TimedValues:
    """Return made-up values: spread evenly, by the hour of the day, or all in a few periods."""
    draw = seeded(seed).simulator()
    if name == "even":
        places = draw.integers(0, grid.periods, rows)
    elif name == "daily":
        places = draw.integers(0, grid.periods // 24, rows) * 24 + draw.binomial(23, 0.6, rows)
    else:
        places = draw.choice(draw.integers(0, grid.periods, 5), rows)
    units = np.minimum(draw.exponential(200, rows), 3000).astype(np.int64)
    return TimedValues(units, places, grid, rows)


def published(times: str, values: TimedValues, key: int, epsilon: float = 1.0) -> ReleasedByTime:
    rows, count = values.units.size, values.grid.periods
    release = plan_periods(times, epsilon=epsilon, bound=3000, rows=rows, periods=count)
    return publish_periods(release, key.to_bytes(32, "big"), values)


def covered(times: str, name: str, grid: TimeGrid, runs: int, level: float) -> float:
    """Return the share of intervals that hold the sum of cut values, one range of each release."""
    hits = 0
    for run in range(runs):
        values = stream(name, run, grid, 2000)
        released = published(times, values, run)
        draw = seeded(1000 + run).simulator()
        while True:
            first, last = np.sort(draw.integers(1, grid.periods + 1, 2)).tolist()
            if values.counts[first - 1 : last].any():
                break
        cut = np.minimum(values.units, released.stream.threshold)
        truth = period_sums(cut, values.periods, grid.periods)[first - 1 : last].sum()
        answer = released.sum(first, last, level)
        hits += answer.low <= truth <= answer.high
    return hits / runs


@pytest.mark.parametrize("times", ["private", "public"])
def test_intervals_cover_and_are_not_too_long(times: str) -> None:
    """Chance is 0.12 off once in 10^6 times; noise of half or twice its size would be farther."""
    share = np.mean([covered(times, name, GRID, 100, 0.7) for name in ("even", "daily", "few")])
    assert abs(share - 0.7) < 0.13


@pytest.mark.slow
@pytest.mark.parametrize("name", ["even", "daily", "few"])
@pytest.mark.parametrize("times", ["private", "public"])
def test_intervals_of_95_percent_cover_half_a_year_of_hours(times: str, name: str) -> None:
    assert 0.91 < covered(times, name, WEEKS, 600, 0.95) < 0.985


def test_with_public_times_gaps_are_known_and_means_are_said() -> None:
    values = TimedValues(np.array([10, 20, 40]), np.array([3, 3, 5]), GRID, 3)
    released = published("public", values, 1, epsilon=20.0)
    empty = released.sum(5, 5)
    assert (empty.value, empty.low, empty.high, empty.count) == (0, 0, 0, 0)
    assert released.sums[[0, 1, 2, 4]].tolist() == [0] * 4
    answer = released.sum(1, GRID.periods)
    assert answer.count == 3
    assert answer.mean.value == pytest.approx(answer.value / 3)
    assert released.between("2026-03-27", "2026-03-31").value == answer.value
    with pytest.raises(InputError, match="there is no mean"):
        _ = empty.mean


def test_with_private_times_nothing_says_how_many_there_are() -> None:
    values = TimedValues(np.array([10, 20, 40]), np.array([3, 3, -1]), GRID, 3)
    released = published("private", values, 1)
    assert (released.sums != 0).mean() > 0.9
    assert released.sum(3, 4).count is None
    with pytest.raises(InputError, match="there is no mean"):
        _ = released.sum(3, 4).mean
    cut = released.stream.threshold
    assert released.sum(3, 4).cut_off == 3 * (3000 - cut)
    assert replace(released, most=1).sum(3, 4).cut_off == 2 * (3000 - cut)
    for first, last in ((0, 1), (5, 4), (1, GRID.periods + 1)):
        with pytest.raises(InputError, match=r"published are the periods 1\.\.119"):
            released.sum(first, last)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(-1, 3)), max_size=12),
    st.sampled_from([None, 1, 2, 5]),
)
def test_the_largest_values_of_a_period_count(
    rows: list[tuple[int, int]], most: int | None
) -> None:
    units, places = (np.array([row[n] for row in rows], dtype=np.int64) for n in (0, 1))
    expected = [
        sum(sorted((value for value, at in rows if at == period), reverse=True)[:most])
        for period in range(4)
    ]
    assert period_sums(units, places, 4, most).tolist() == expected


def test_plans_that_cannot_be() -> None:
    release = plan_periods("private", epsilon=1.0, bound=100, rows=1000, periods=24)
    with pytest.raises(ConfigurationError, match="by time each period is one block"):
        replace(release, per_person=2)
    with pytest.raises(ConfigurationError, match="times is 'secret'"):
        plan_periods("secret", epsilon=1.0, bound=100, rows=10, periods=24)
    with pytest.raises(ConfigurationError, match="reuse is 1"):
        plan_periods("public", epsilon=1.0, bound=100, rows=10, periods=24, reuse=1.0)
    many: Ints = np.zeros(1 << 10, dtype=np.int64)
    wide = plan_periods("public", epsilon=1.0, bound=1 << 40, rows=many.size, periods=24)
    huge = TimedValues(np.broadcast_to(many[:1], (1 << 23,)), many, GRID, 1 << 23)
    with pytest.raises(InputError, match="for 8,388,608 rows; their sum could need more than 62"):
        publish_periods(wide, bytes(32), huge)
    assert release.guarantee.unit == "each row, with its value and its time,"


@pytest.mark.parametrize("times", ["private", "public"])
def test_noise_too_wide_for_a_chosen_threshold_is_spent_and_tells_no_number(times: str) -> None:
    values = stream("even", 1, GRID, 50)
    count = values.grid.periods
    release = plan_periods(times, epsilon=1e-4, bound=10**12, rows=50, periods=count, threshold=1)
    chosen = replace(release, threshold=Fixed(10**12, epsilon=1e-5))
    with pytest.raises(SpentError, match="what the choice has cost is spent") as caught:
        publish_periods(chosen, bytes(32), values)
    assert "e+" not in str(caught.value)
