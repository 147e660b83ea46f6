"""`sfumato release --time` and calendar ranges, as a curator and an analyst type them."""

from __future__ import annotations

import io
import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from starlette.testclient import TestClient
from tests.cli.running import answer, refused, run

from sfumato.files.timed_files import read_stream
from sfumato.pages.viewer import view_app
from sfumato.randomness import seeded
from sfumato.streams.published import ReleasedByTime

BERLIN = ZoneInfo("Europe/Berlin")
DRAW = seeded(3).simulator()
MINUTES = DRAW.permutation(4000) * 2  # in no order, over five days and a half
START = datetime(2026, 3, 27, tzinfo=BERLIN)
TIMES = [datetime.fromtimestamp(START.timestamp() + 60 * int(n), BERLIN) for n in MINUTES]
FARES = np.round(DRAW.exponential(20, 4000), 2)
QUICK = ["--epsilon", "20", "--bound", "300", "--unit", "0.01", "--zone", "Europe/Berlin"]
GRID = ["--time", "at", "--from", "2026-03-27", "--until", "2026-04-01"]


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    path = tmp_path / "trips.csv"
    rows = [f"{at.isoformat()},{fare}" for at, fare in zip(TIMES, FARES, strict=True)]
    path.write_text("at,fare\n" + "\n".join(rows) + "\n")
    return path


def truth(first: datetime, last: datetime, cut: float) -> float:
    return float(
        sum(min(fare, cut) for at, fare in zip(TIMES, FARES, strict=True) if first <= at < last)
    )


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("times", ["private", "public"])
def test_a_file_is_published_by_time_and_any_days_can_be_asked(
    trips: Path, tmp_path: Path, times: str, suffix: str
) -> None:
    out, picture = tmp_path / f"out{suffix}", tmp_path / "range.png"
    record = answer("release", trips, *GRID, *QUICK, "--times", times, "-o", out)
    assert record["periods"] == 6 * 24 - 1
    assert record["rows"] == 4000
    assert ("with its value and its time," in record["guarantee"]) == (times == "private")
    assert ("all times are public" in record["guarantee"]) == (times == "public")
    days = answer("range", out, "2026-03-28", "2026-03-29", "--plot", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert days["from"] == "2026-03-28T00:00:00+01:00"
    assert days["until"] == "2026-03-30T00:00:00+02:00"
    assert days["periods"] == 47
    first, last = (START + timedelta(days=n) for n in (1, 3))
    wide = days["sum"]["high"] - days["sum"]["low"]
    true = truth(first, last, record["threshold"])
    assert days["sum"]["low"] - 3 * wide < true < days["sum"]["high"] + 3 * wide
    assert wide < true / 5
    assert ("mean" in days) == ("count" in days) == (times == "public")
    one = answer("range", out, "2026-03-28T07:15")
    assert (one["from"], one["periods"]) == ("2026-03-28T07:00:00+01:00", 1)
    words = run("range", out, "2026-03").stderr
    assert "published are the times from 2026-03-27T00:00:00+01:00 until 2026-04-02" in words
    text = run("range", out, "2026-03-28", "2026-03-29").stdout
    words = "47 periods of 1 hour, from 2026-03-28T00:00:00+01:00 up to 2026-03-30T00:00:00+02:00"
    assert f"{words}, which is the end of 2026-03-29" in text.replace("\n", " ")


def test_the_published_file_is_a_table_with_a_time_axis(trips: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    answer("release", trips, *GRID, *QUICK, "--every", "1d", "--times", "public", "-o", out)
    about, _, rest = out.read_text().partition("\n")
    description = json.loads(about.removeprefix("# sfumato release "))
    assert description["release"]["times"] == "public"
    assert "provided that all times are public and" in description["guarantee"]
    table = pa.csv.read_csv(io.BytesIO(rest.encode()))
    assert table.column_names == ["from", "count", "sum"]
    assert table["count"].to_pylist() == [720, 720, 690, 720, 720, 430]
    private = tmp_path / "private.parquet"
    answer("release", trips, *GRID, *QUICK, "--every", "1d", "-o", private)
    columns = pq.read_table(private)
    assert columns.column_names == ["from", "sum"]
    assert str(columns["from"].type) == "timestamp[ms, tz=Europe/Berlin]"
    assert "with its value and its time" in columns.schema.metadata[b"sfumato"].decode()


@pytest.mark.parametrize("kind", ["text", "local", "zoned", "timestamp"])
def test_every_kind_of_times_says_the_same(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sfumato.randomness.Secure.take", lambda _, size: bytearray(size))
    path, out = tmp_path / "in.parquet", tmp_path / "out.csv"
    local = [at.replace(tzinfo=None) for at in TIMES]
    columns: dict[str, Any] = {
        "text": [at.isoformat(" ") for at in local],
        "local": pa.array(local, pa.timestamp("us")),
        "zoned": pa.array(TIMES, pa.timestamp("s", "UTC")),
        "timestamp": pa.array(TIMES, pa.timestamp("ns", "Europe/Berlin")),
    }
    pq.write_table(pa.table({"at": columns[kind], "fare": pa.array(FARES)}), path)
    grid = [*GRID, "--times", "public", "--every", "1d", "--threshold", "100"]
    answer("release", path, *grid, *QUICK, "-o", out)
    stream = read_stream(out)
    assert isinstance(stream, ReleasedByTime)
    assert stream.counts is not None
    assert stream.counts.tolist() == [720, 720, 690, 720, 720, 430]


def test_with_public_times_the_grid_fits_the_file_and_gaps_are_said(tmp_path: Path) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("at,fare\n2026-03-01T05:00,3\nnone,4\n2026-03-03,5\n")
    words = ["--time", "at", "--times", "public", *QUICK, "--threshold", "10"]
    record = answer("release", path, *words, "-o", out)
    assert record["periods"] == 72
    assert (record["rows"], record["counted"], record["empty_periods"]) == (3, 2, 70)
    empty = answer("range", out, "2026-03-02")
    assert empty["sum"] == {"value": 0, "low": 0, "high": 0}
    assert empty["count"] == 0
    text = run("range", out, "2026-03-02").stdout
    assert "0 values in 24 periods of 1 hour" in text
    assert "periods without rows, whose sum is 0" in (
        run("release", path, *words, "-o", tmp_path / "other.csv").stdout
    )


def test_with_private_times_invalid_ones_are_not_seen(tmp_path: Path) -> None:
    """The same words, but for the noise, whether a time is there or not; stopping is promised."""
    texts = []
    for time in ("2026-03-27T05:00", "none", "", "2031-01-01"):
        path, out = tmp_path / "in.csv", tmp_path / "out.csv"
        path.write_text(f"at,fare\n{time},3\n2026-03-28,5\n")
        record = answer("release", path, *GRID, *QUICK, "--force", "-o", out)
        noise = ("sum", "threshold", "range_error", "epsilon_spent")
        texts.append({name: value for name, value in record.items() if name not in noise})
    assert all(text == texts[0] for text in texts)
    path, out = tmp_path / "stop.csv", tmp_path / "stopped.csv"
    stop = [*GRID, *QUICK, "--invalid", "stop", "-o", out]
    path.write_text("at,fare\n2026-03-27,3\nnone,5\n")
    sentence = refused("release", path, *stop)
    assert "column at, rows 1..2: time 2 is 'none'; a time such as 2026-03-01T12:00" in sentence
    path.write_text("at,fare\n2026-03-27,3\n2026-03-28,5\n")
    assert "no value or time is invalid" in answer("release", path, *stop)["guarantee"]


def test_noise_that_dwarfs_the_data_is_named(trips: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.csv"
    few.write_text("at,fare\n2026-03-28,5\n2026-03-29,7\n")
    ends = ("--from", "2026-03", "--until", "2026-03", "--bound", "100", "--epsilon", "1")
    told = run("release", few, "--time", "at", *ends, "-o", tmp_path / "few-out.csv").stdout
    assert "Noise dwarfs the data" in told
    quiet = run("release", trips, *GRID, *QUICK, "-o", tmp_path / "out.csv").stdout
    assert "Noise dwarfs" not in quiet


def test_the_ledger_knows_what_is_published_by_time(trips: Path, tmp_path: Path) -> None:
    words = ["release", trips, "--column", "fare", *GRID, *QUICK, "--budget", "30"]
    answer(*words, "-o", tmp_path / "one.csv")
    [entry] = json.loads((tmp_path / "releases.json").read_text())["releases"]
    assert (entry["columns"], entry["rows"], entry["epsilon"]) == (["fare"], 4000, "20.0")
    sentence = refused(*words, "-o", tmp_path / "two.csv", absent=[tmp_path / "two.csv"])
    assert "has spent epsilon 20 of the limit of 30" in sentence


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--zone", "Europe/Atlantis"], "zone is 'Europe/Atlantis'; a time zone such as"),
        (["--zone", "../../etc"], "zone is '../../etc'; a time zone such as"),
        (["--every", "7h"], "every is '7h'; a length that divides a day is expected"),
        (["--every", "often"], "every is 'often'; a length that divides a day"),
        (["--every", "2d"], "every is '2d'; a length that divides a day"),
        (["--time", "when"], "has no column 'when'"),
        (["--column", "tip"], "has no column 'tip'"),
        (["--until", "2026-03-01"], "until is '2026-03-01', which is before from, '2026-03-27'"),
        (["--from", "soon"], "from is 'soon'; a time such as 2026-03-01"),
        (["--every", "1s"], "periods of 1 second; 1,048,576 are the most"),
        (["--most-per-period", "0"], "most_per_period is 0; a whole number from 1 on"),
        (["--most-per-period", "5", "--times", "public"], "all values of a period count"),
        (["--follow"], "follow is True; with --time all rows must be there"),
        (["--holdout", "10"], "holdout is 10; with --time all values choose the threshold"),
        (["--group", "fare"], "group is 'fare'; with --time one stream is published"),
        (["--person", "fare"], "person is 'fare'; with --time rows are protected, not people"),
        (["--block", "2"], "block is 2; with --time each period is a block"),
        (["--renew", "10"], "renew is 10; with --time one threshold holds"),
        (["--method", "tops"], "method is 'tops'; with --time only tuned is there"),
        (["--column", "fare", "--column", "at"], "there are 2 columns; with --time give one"),
        (["--reuse", "0.1", "--threshold", "5"], "a threshold that is known takes no share"),
        (["--reuse", "1"], "reuse is 1.0; a number between 0 and 1 is expected"),
    ],
)
def test_a_wrong_option_is_one_sentence(
    trips: Path, tmp_path: Path, words: list[str], sentence: str
) -> None:
    out = tmp_path / "out.csv"
    until = ["--until", "2028"] if words == ["--every", "1s"] else []
    assert sentence in refused(
        "release", trips, *GRID, *QUICK, *until, *words, "-o", out, absent=[out]
    )


def test_options_that_need_each_other(trips: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    words = ["release", trips, "--column", "fare", *QUICK[:6], "-o", out]
    assert "from is missing; where times are private" in refused(*words, "--time", "at")
    until = refused(*words, "--time", "at", "--from", "2026")
    assert "until is missing; where times are private" in until
    assert "every is '1d'; it needs --time" in refused(*words, "--every", "1d")
    assert "from is '2026'; it needs --time" in refused(*words, "--from", "2026")
    assert "the column of times" in refused(*words, "--most-per-period", "3")


def test_ranges_and_files_that_do_not_fit(trips: Path, tmp_path: Path) -> None:
    by_time, by_position = tmp_path / "time.csv", tmp_path / "place.csv"
    answer("release", trips, *GRID, *QUICK, "-o", by_time)
    answer("release", trips, "--column", "fare", *QUICK[:6], "-o", by_position)
    said = refused("range", by_position, "2026-03-28")
    assert "has no time axis, so a position such as 1000" in said
    assert "first is '17'; a time such as 2026-03-01" in refused("range", by_time, 17, 19)
    assert "its first time must not be later" in refused(
        "range", by_time, "2026-03-29", "2026-03-28"
    )
    single = answer("range", by_position, 2000)
    assert single["first"] == single["last"] == 2000
    picture = tmp_path / "places.png"
    run("range", by_position, 1500, 3000, "--plot", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


FORGERIES = {
    "different rules of this zone": ("Europe/Berlin", "Africa/Tunis"),
    "rows is -1": ('"rows": 4000', '"rows": -1'),
    "every is 7 seconds": ('"every": 3600', '"every": 7'),
    "zone is 'Mars'": ("Europe/Berlin", "Mars"),
    "is no released stream": ('"sum"', '"total"'),
}


def test_a_forged_file_is_one_sentence(trips: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    answer("release", trips, *GRID, *QUICK, "-o", out)
    for words, forgery in FORGERIES.items():
        assert words in refused("range", forged(out, *forgery), "2026-03-28")


def forged(path: Path, old: str, new: str) -> Path:
    other = path.with_name("forged.csv")
    other.write_text(path.read_text().replace(old, new, 1))
    assert other.read_text() != path.read_text()
    return other


def test_a_stream_by_time_has_a_page_with_its_calendar(trips: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    answer("release", trips, *GRID, *QUICK, "--times", "private", "-o", out)
    client = TestClient(view_app(out), base_url="http://127.0.0.1")
    page = client.get("/").text
    assert "in 143 periods of 1 hour" in page
    assert "is true of each row, with its value and its time, both equally likely" in page
    asked = client.get("/?first=25&last=71").text
    assert "Between 28 Mar 00:00 and 30 Mar 00:00 (Europe/Berlin) (periods 25 to 71)" in asked
    days = answer("range", out, "2026-03-28", "2026-03-29")["sum"]
    assert f"({days['low']:,.0f} to {days['high']:,.0f})" in asked
    table = client.get("/shown.csv?first=25&last=71").text
    rows = [line for line in table.splitlines() if not line.startswith("#")]
    assert len(rows) == 1 + 47
    assert rows[1].startswith("25,2026-03-27T23:00:00Z,2026-03-28T00:00:00Z,sum of values,")
