"""Populations for endless streams: the paper's curves, exact shares, the same for the same seed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.core.fleet import summed
from sfumato.datasets.endless import (
    CURVES,
    TAXI,
    DrawnBits,
    NoisyNumbers,
    RecordedItems,
    Stream,
    Trips,
    flights_by_day,
    recorded_items,
    taxi_by_half_hour,
)
from sfumato.errors import ConfigurationError, InputError
from sfumato.simulation.drifting import Drifting


def truth(stream: Stream, period: int) -> np.ndarray:
    values = stream.values(period)
    return summed(values, len(stream.labels) or 1) / len(values)


def streams() -> list[Stream]:
    return [
        *(DrawnBits(curve, 500, 20) for curve in CURVES),
        *(NoisyNumbers(curve, 500, 20) for curve in CURVES),
        Drifting(7, 500, 20),
        RecordedItems(np.arange(40).reshape(2, 20) % 3, ("a", "b", "c"), 500),
        Trips(np.arange(1, 61).reshape(20, 3), ("a", "b", "c"), 500),
    ]


@pytest.mark.parametrize("stream", streams(), ids=lambda stream: type(stream).__name__)
def test_every_stream_says_the_truth_about_itself_and_the_same_again(stream: Stream) -> None:
    for period in (1, 20, 1):
        values = stream.values(period)
        assert values.shape == (500,)
        low, high = stream.interval or (0, len(stream.labels) - 1)
        assert low <= values.min() <= values.max() <= high
        stream.values(2)
        assert (stream.values(period) == values).all()


def test_the_curves_are_the_paper_s() -> None:
    assert np.isclose(DrawnBits("sin", periods=800).curve[99], 0.05 * np.sin(1.0) + 0.075)
    assert np.isclose(DrawnBits("log", periods=800).curve[99], 0.25 / (1 + np.exp(-1.0)))
    steps = np.diff(DrawnBits("lns", periods=20_000, seed=3).curve)
    assert abs(steps.std() / 0.0025 - 1) < 0.05
    assert abs(DrawnBits("lns", periods=1).curve[0] - 0.05) < 0.0125
    assert DrawnBits("lns", periods=5000, pace=0.1).curve.min() >= 0
    assert DrawnBits("lns", periods=5000, pace=0.1).curve.max() <= 1


def test_curves_rest_jump_swing_or_are_noise() -> None:
    assert set(DrawnBits("constant", periods=9).curve) == {0.2}
    jumps = DrawnBits("jumps", periods=80).curve
    assert np.flatnonzero(np.diff(jumps)).tolist() == [36, 73]
    season = DrawnBits("season", periods=48).curve
    assert np.allclose(season[:24], season[24:])
    assert season.max() == pytest.approx(0.3)
    white = DrawnBits("white", periods=20_000).curve
    assert abs(white.mean() - 0.2) < 0.003
    assert (white.min() >= 0.1, white.max() <= 0.3) == (True, True)
    assert abs(np.corrcoef(white[1:], white[:-1])[0, 1]) < 0.05


def test_shares_fall_by_a_power_of_their_rank() -> None:
    rare = Drifting(8, 1000, 1, pace=0.0, power=2.0).curve[0]
    assert np.allclose(rare[0] / rare, np.arange(1, 9) ** 2)


def test_steps_come_every_so_many_periods() -> None:
    curve = DrawnBits("steps", periods=60).curve
    assert np.flatnonzero(np.diff(curve)).tolist() == [19, 39]


def test_a_share_of_the_devices_is_drawn_anew() -> None:
    stream = DrawnBits("sin", devices=1000, periods=3)
    assert stream.values(1).sum() == round(1000 * stream.curve[0])
    assert (stream.values(1) != stream.values(2)).any()


def test_numbers_lie_about_the_curve() -> None:
    stream = NoisyNumbers("log", devices=200_000, periods=1, spread=1.0)
    assert abs(truth(stream, 1)[0] - stream.curve[0]) < 6 / np.sqrt(200_000)
    assert abs(stream.values(1).std() - 1) < 0.01


@pytest.mark.statistics
def test_planes_day_by_day() -> None:
    stream = flights_by_day(2000)
    assert stream.periods == 365
    assert truth(stream, 1)[-1] > 0.7  # most planes have not been seen on the first day
    assert truth(stream, 365)[-1] < 0.02


def test_trips_of_a_folder(tmp_path: Path) -> None:
    start = np.datetime64("2023-01-01T00:10")
    when = [start + np.timedelta64(30 * k, "m") for k in range(31 * 48)]
    foreign = np.datetime64("2009-01-01T00:00")
    table = pa.table(
        {
            "pickup": pa.array(np.array([*when, foreign], dtype="datetime64[s]")),
            "zone": [132] * len(when) + [1],
        }
    )
    pq.write_table(table, tmp_path / TAXI)
    stream = taxi_by_half_hour(tmp_path, devices=10)
    assert stream.periods == 1488
    assert truth(stream, 7)[0] == 1.0


def test_a_given_table() -> None:
    table = {"device": [1, 1, 2], "period": [1, 2, 1], "value": ["b", "a", "a"]}
    stream = recorded_items(table, ("a", "b"), periods=2)
    assert truth(stream, 1).tolist() == [0.5, 0.5]
    assert truth(stream, 2).tolist() == [1.0, 0.0]
    with pytest.raises(InputError, match="period 1"):
        recorded_items({**table, "value": ["c", "a", "a"]}, ("a", "b"), periods=2)


def test_bad_streams_get_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="curve is 'cos'; lns, sin, log, steps"):
        DrawnBits("cos")
    with pytest.raises(ConfigurationError, match="devices is 0; a whole number from 1 on"):
        DrawnBits("sin", devices=0)
    with pytest.raises(ConfigurationError, match="periods is 0; a whole number from 1 on"):
        Drifting(3, devices=5, periods=0)
    with pytest.raises(InputError, match=r"period is 9; a period in 1\.\.3"):
        DrawnBits("sin", devices=10, periods=3).values(9)
    with pytest.raises(InputError, match="is not there; a folder with nyc_taxi"):
        taxi_by_half_hour(tmp_path)
    (tmp_path / TAXI).write_bytes(b"nothing")
    with pytest.raises(InputError, match="cannot be read; columns pickup and zone"):
        taxi_by_half_hour(tmp_path)
    with pytest.raises(InputError, match="period 2 has no trips"):
        Trips(np.array([[1, 0], [0, 0]]), ("a", "b"), 5)
