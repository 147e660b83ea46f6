"""Grids of periods in all zones: days of 23 and 25 hours, and times that come twice or never."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfumato.errors import ConfigurationError, InputError
from sfumato.files.cell_times import times_of
from sfumato.streams.published.local_time import DAY, LocalTime, read_time
from sfumato.streams.published.time_grid import TimeGrid, seconds_in

ZONES = {
    zone: LocalTime(zone, 1_262_300_000, 1_790_000_000)  # from 2010 to 2026
    for zone in (
        *("UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "America/Havana"),
        *("America/Sao_Paulo", "Pacific/Apia", "Asia/Kathmandu", "Africa/Casablanca"),
    )
}


@settings(max_examples=300)
@given(
    st.sampled_from(sorted(ZONES)), st.integers(1_262_304_000, 1_789_000_000), st.integers(0, 99)
)
def test_moments_and_wall_times_are_those_of_the_zone(zone: str, time: int, near: int) -> None:
    """Also close to a change of clocks, which few times are."""
    clock = ZONES[zone]
    if clock.changes.size:
        time = int(clock.changes[near % clock.changes.size]) + time % (4 * 3600) - 2 * 3600
    shown = datetime.fromtimestamp(time, ZoneInfo(zone)).replace(tzinfo=UTC).timestamp()
    assert clock.walls([time]).tolist() == [shown]
    for second in (False, True):
        wall = datetime.fromtimestamp(time, UTC).replace(tzinfo=ZoneInfo(zone), fold=int(second))
        assert clock.moments([time], second=second).tolist() == [wall.timestamp()]


@pytest.mark.parametrize(
    ("zone", "day", "every", "lengths"),
    [
        ("Europe/Berlin", "2026-03-29", "1h", [3600] * 23),
        ("Europe/Berlin", "2026-10-25", "1h", [3600] * 25),
        ("Europe/Berlin", "2026-10-25", "15m", [900] * 100),
        ("Europe/Berlin", "2026-03-29", "6h", [5 * 3600, *[6 * 3600] * 3]),
        ("Europe/Berlin", "2026-10-25", "6h", [7 * 3600, *[6 * 3600] * 3]),
        ("Europe/Berlin", "2026-03-29", "1d", [23 * 3600]),
        ("Europe/Berlin", "2026-03-29", "45m", [2700, 2700, 1800, *[2700] * 28]),
        ("America/Havana", "2026-11-01", "1d", [25 * 3600]),  # midnight comes twice
        ("America/Sao_Paulo", "2018-11-04", "1d", [23 * 3600]),  # it has no midnight
        ("Australia/Lord_Howe", "2026-04-05", "1h", [3600, 5400, *[3600] * 22]),
        ("UTC", "2026-03-29", "1h", [3600] * 24),
    ],
)
def test_days_on_which_clocks_are_changed(
    zone: str, day: str, every: str, lengths: list[int]
) -> None:
    grid = TimeGrid.spanning(day, day, seconds_in(every), zone)
    assert np.diff(grid.edges).tolist() == lengths
    assert grid.range_of(day, day) == (1, len(lengths))
    assert TimeGrid(**grid.plain()) == grid


@settings(max_examples=100)
@given(
    st.sampled_from(sorted(ZONES)), st.sampled_from(["15m", "1h", "6h", "1d"]), st.integers(0, 5900)
)
def test_every_moment_lies_in_the_period_that_began_last(zone: str, every: str, day: int) -> None:
    """And every period begins at a multiple of its length, or when clocks are changed."""
    first = datetime(2010, 1, 2, tzinfo=UTC) + timedelta(days=day)
    if zone == "Pacific/Apia" and first.isoformat()[:10] == "2011-12-30":
        return  # this day never was
    date = first.isoformat()[:10]
    grid = TimeGrid.spanning(date, date, seconds_in(every), zone)
    for start, clock in zip(
        grid.edges.tolist(), grid.clock.walls(grid.edges).tolist(), strict=True
    ):
        assert clock % grid.every == 0 or start in grid.clock.changes.tolist()
    moments = np.arange(grid.start - 7, grid.end + 7, 599)
    places = grid.periods_of(moments, np.zeros(moments.size, dtype=np.bool_))
    for moment, place in zip(moments.tolist(), places.tolist(), strict=True):
        inside = [n for n in range(grid.periods) if grid.edges[n] <= moment < grid.edges[n + 1]]
        assert inside == ([place] if place >= 0 else [])
    walls = grid.clock.walls(moments)
    again = grid.periods_of(walls, np.ones(walls.size, dtype=np.bool_))
    first_time = grid.clock.moments(walls) == moments
    assert (again[first_time] == places[first_time]).all()


def test_stretches_of_time_include_their_ends() -> None:
    grid = TimeGrid.spanning("2026-02", "2026-03", 3600, "Europe/Berlin")
    assert grid.periods == (28 + 31) * 24 - 1
    assert grid.range_of("2026-02", "2026-02") == (1, 28 * 24)
    assert grid.range_of("2026-02-03", "2026-02-03") == (49, 72)
    assert grid.range_of("2026-02-01T05:59", "2026-02-01 06:00") == (6, 7)
    assert grid.range_of("2026-02-01T05:00Z", "2026-02-01T06:00+00:00") == (7, 8)
    assert grid.range_of("2026-02", "2026-03") == (1, grid.periods)
    year = TimeGrid.spanning("2025", "2026", DAY, "UTC")
    assert year.range_of("2026", "2026") == (366, 730)


@pytest.mark.parametrize(
    ("first", "last", "words"),
    [
        ("2026-04", "2026-03", "the range is 2026-04 to 2026-03; its first time must not be later"),
        (
            "2026-01",
            "2026-03",
            "published are the times from 2026-03-01T00:00:00+01:00 until",
        ),
        ("spring", "2026-03", "first is 'spring'; a time such as 2026-03-01"),
        ("2026-03-01", "2026-02-30", "last is '2026-02-30'; a time such as"),
        ("2026-03-01", "9999-12-31", "last is '9999-12-31'; a time such as"),
        ("2026-03-01", "2026-13", "last is '2026-13'; a time such as"),
    ],
)
def test_ranges_that_cannot_be_are_one_sentence(first: str, last: str, words: str) -> None:
    grid = TimeGrid.spanning("2026-03", "2026-03", 3600, "Europe/Berlin")
    with pytest.raises((InputError, ConfigurationError), match=words.replace("+", r"\+")):
        grid.range_of(first, last)


# ---- cells ---------------------------------------------------------------------------------------

TEXTS = [
    *("2026-03-01", "2026-03-01T12:30", "2026-03-01 12:30:59", "2026-03-01T12:30:59.9"),
    *("2026-03-01T12:30:59.123456789", "2026-03-01T12:30Z", "2026-03-01T12:30:00+01:00"),
    *(
        "2026-03-01T12:30:00-0930",
        "2026-03-01T12:30:00+05",
        " 2026-03-01 ",
        "2026-02-30",
        "",
        "now",
    ),
    *("2026-03-01T24:00", "2026-03-01T12:30:60", "0000-01-01", "26-03-01", "2026-3-1", "20260301"),
    *("2026-03-01T12", "2026-03-01T12:30 UTC", "2026-W09-1", "1772319600", "٢٠٢٦-03-01"),
]


@given(st.lists(st.sampled_from([*TEXTS, None]), min_size=1, max_size=6))
def test_a_cell_means_the_same_whatever_stands_beside_it(texts: list[str | None]) -> None:
    cells = [None if text is None else text.encode() for text in texts]
    whole = times_of(pa.array(cells, pa.binary()), untyped=True)
    alone = [times_of(pa.array([cell], pa.binary()), untyped=True) for cell in cells]
    for name in whole._fields:
        joined = np.concatenate([getattr(each, name) for each in alone])
        assert getattr(whole, name).tolist() == joined.tolist()
    in_text = times_of(pa.array(texts, pa.string()), untyped=False)
    assert all((a == b).all() for a, b in zip(whole, in_text, strict=True))


def test_what_a_text_says() -> None:
    noon = int(datetime(2026, 3, 1, 12, 30, tzinfo=UTC).timestamp())
    expected = [
        *((noon - 45_000, True), (noon, True), (noon + 59, True), (noon + 59, True)),
        *((noon + 59, True), (noon, False), (noon - 3600, False)),
        *((noon + 9 * 3600 + 1800, False), (noon - 5 * 3600, False), (noon - 45_000, True)),
    ]
    read: list[Any] = [read_time(text.strip()) for text in TEXTS]
    assert read == [*expected, *[None] * (len(TEXTS) - len(expected))]
    cells = times_of(pa.array(TEXTS), untyped=False)
    assert [
        None if wrong else (time, wall)
        for time, wall, wrong in zip(*(column.tolist() for column in cells), strict=True)
    ] == read


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_columns_of_timestamps_and_dates(unit: Any) -> None:
    times = [datetime(1969, 12, 31, 23, 59, 59), None, datetime(2026, 3, 1, 12)]  # noqa: DTZ001
    walls = times_of(pa.array(times, pa.timestamp(unit)), untyped=False)
    noon = int(datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp())
    assert walls.times.tolist() == [-1, 0, noon]
    assert walls.invalid.tolist() == [False, True, False]
    assert walls.are_walls.all()
    zoned = times_of(
        pa.array(times, pa.timestamp(unit)).cast(pa.timestamp(unit, "Asia/Tokyo")), untyped=False
    )
    assert zoned.times.tolist() == [-1, 0, noon]
    assert not zoned.are_walls.any()
    farthest = pa.array([(1 << 63) - 1, -(1 << 63)]).view(pa.timestamp(unit))
    assert not times_of(farthest, untyped=False).invalid.any()
    for kind in (pa.date32(), pa.date64()):
        days = times_of(pa.array([times[2], None], kind), untyped=False)
        assert days.times.tolist() == [noon - noon % DAY, 0]
        assert days.are_walls.all()
    with pytest.raises(InputError, match="the times are of type int64; ISO texts, dates or"):
        times_of(pa.array([1]), untyped=False)
