"""`sfumato release` of several columns, or of a column by another: a folder of streams."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.cli.running import answer, refused, run

from sfumato.files import released_files
from sfumato.randomness import seeded

DRAW = seeded(1).simulator()
FARES = np.round(DRAW.exponential(20, 6000), 2)
TIPS = np.round(FARES * DRAW.random(6000) * 0.3, 2)
ZONES = np.array(["east", "north/../x", "west"])[DRAW.integers(0, 3, 6000)]
OPTIONS = ["--epsilon", "1", "--bound", "300", "--unit", "0.01", "--limit", "4096"]
HELD = [*OPTIONS, "--holdout", "1000"]


@pytest.fixture(params=[".csv", ".parquet"])
def trips(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    path = tmp_path / f"trips{request.param}"
    columns = {"fare": FARES.tolist(), "tip": TIPS.tolist(), "zone": ZONES.tolist()}
    if request.param == ".parquet":
        pq.write_table(pa.table(columns), path)
    else:
        rows = zip(*columns.values(), strict=True)
        lines = [",".join(columns), *(f"{fare},{tip},{zone}" for fare, tip, zone in rows)]
        path.write_text("\n".join(lines) + "\n")
    return path


def test_columns_of_the_same_rows_share_epsilon(trips: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    found = answer("release", trips, *HELD, "--column", "fare", "--column", "tip", "-o", out)
    assert "Each row, with its values in all 2 streams, is protected with epsilon 1" in str(found)
    assert [row["stream"] for row in found["streams"]] == ["fare", "tip"]
    for row, values in zip(found["streams"], (FARES, TIPS), strict=True):
        stream = released_files.read_released(out / row["file"])
        assert stream.release.epsilon == row["epsilon"] == 0.5
        answered = stream.sum(row["first"], row["last"])
        true = values[row["first"] - 1 :].sum()
        # Coins are fresh in every run: three intervals more, far beyond six standard errors.
        wide = 3 * (answered.high - answered.low)
        assert answered.low - wide < true < answered.high + wide + answered.cut_off
    assert json.loads((out / "streams.json").read_text())["streams"] == found["streams"]


def test_streams_that_share_no_row_have_all_of_epsilon_each(trips: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["release", trips, *HELD, "--column", "fare", "--group", "zone"]
    found = answer(*words, "-o", out)
    assert "which stream a value belongs to is public" in found["guarantee"]
    assert {row["stream"] for row in found["streams"]} == set(ZONES)
    assert {row["epsilon"] for row in found["streams"]} == {1.0}
    assert len({row["threshold"] for row in found["streams"]}) == 1
    for row in found["streams"]:
        own = FARES[1000:][ZONES[1000:] == row["stream"]]
        assert (row["first"], row["last"]) == (1, own.size)
        answered = released_files.read_released(out / row["file"]).sum(1, own.size)
        wide = 3 * (answered.high - answered.low)
        assert answered.low - wide < own.sum() < answered.high + wide + answered.cut_off
    names = {path.name for path in out.iterdir()}
    assert names == {row["file"] for row in found["streams"]} | {"streams.json"}
    said = run(*words, "-o", tmp_path / "again")
    assert "3 streams are in" in said.stdout
    assert "Next:  sfumato range" in said.stdout


def test_what_cannot_be_is_one_sentence_and_leaves_nothing(trips: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def no(*more: object) -> str:
        return refused("release", trips, *HELD, *more, "-o", out, absent=[out])

    both = ["--column", "fare", "--column", "tip"]
    assert "give one column or no group" in no(*both, "--group", "zone")
    assert "columns and groups need a file" in no(*both, "--follow")
    assert "one stream can be drawn" in no(*both, "--plot", tmp_path / "plot.png")
    assert "has no column 'spam'" in no("--column", "fare", "--group", "spam")
    assert "has no column 'spam'" in no("--column", "fare", "--column", "spam")
    assert "only choose the threshold" in no(*both, "--holdout", "6000")
    assert "only choose the threshold" in no(
        "--column", "fare", "--group", "zone", "--holdout", "6000"
    )
    assert "there is no folder" in refused(
        "release", trips, *HELD, *both, "-o", tmp_path / "absent" / "out"
    )
    out.mkdir()
    assert "something else in it than released streams" in no(*both)


GAUSSIAN = ["--noise", "gaussian", "--delta", "1e-6"]


def test_columns_with_gaussian_noise_share_epsilon_and_delta(trips: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    columns = ["--column", "fare", "--column", "tip"]
    found = answer("release", trips, *HELD, *columns, *GAUSSIAN, "-o", out)
    promise = (
        "with its values in all 2 streams, is protected with epsilon 1, delta 1e-06 and zCDP rho"
    )
    assert promise in found["guarantee"]
    assert (found["epsilon_spent"], found["delta_spent"]) == (1.0, 1e-6)
    for row, values in zip(found["streams"], (FARES, TIPS), strict=True):
        stream = released_files.read_released(out / row["file"])
        assert (stream.release.delta, stream.release.columns) == (1e-6, 2)
        answered = answer("range", out / row["file"], row["first"], row["last"])
        wide = 3 * (answered["sum"]["high"] - answered["sum"]["low"])
        true = values[row["first"] - 1 :].sum()
        assert answered["sum"]["low"] - wide < true
        assert true < answered["sum"]["high"] + wide + answered["cut_off_at_most"]
        assert answered["guarantee"] == found["guarantee"]
    again = answer("release", trips, *HELD, "--column", "fare", "-o", tmp_path / "one.csv")
    assert (again["epsilon_spent"], again["delta_spent"]) == (2.0, 1e-6)


@pytest.mark.parametrize(
    "words",
    [
        ["--column", "fare"],
        ["--column", "fare", "--group", "zone"],
        ["--column", "tip", "--reuse", 0.2],
    ],
)
def test_one_column_can_have_gaussian_noise(trips: Path, tmp_path: Path, words: list[str]) -> None:
    out = tmp_path / ("out" if "--group" in words else "out.csv")
    found = answer("release", trips, *HELD, *words, *GAUSSIAN, "-o", out)
    assert "epsilon 1, delta 1e-06 and zCDP rho" in found["guarantee"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--noise", "gaussian"], "noise is 'gaussian'; it needs a delta, such as --delta 1e-6."),
        (["--noise", "gaussian", "--delta", "0"], "delta is 0.0; "),
        (["--noise", "gaussian", "--delta", "1"], "delta is 1.0; "),
        (["--noise", "gaussian", "--delta", "nan"], "delta is nan; "),
        (["--delta", "1e-6"], "delta is 1e-06; laplace noise needs none"),
        ([*GAUSSIAN, "--method", "pak"], "method is 'pak'; gaussian noise comes with"),
        (["--noise", "normal"], "normal"),
    ],
)
def test_noise_and_delta_that_do_not_fit_are_refused(
    trips: Path, tmp_path: Path, words: list[str], sentence: str
) -> None:
    out = tmp_path / "out"
    columns = ["--column", "fare", "--column", "tip"]
    assert sentence in refused("release", trips, *HELD, *columns, *words, "-o", out)
    assert not out.exists()
    assert not (tmp_path / "releases.json").exists()
