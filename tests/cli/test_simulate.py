from __future__ import annotations

from pathlib import Path

import pyarrow.csv as pv
import pyarrow.parquet as pq
import pytest
from tests.cli.running import answer, refused, run

from sfumato.streams import registry

TASK = """
title = "Where people listen"
epsilon = 2.0
periods = 6
period = "1 hour"
changes = 3
values = {kind = "category", items = ["home", "work", "road"]}
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    path = tmp_path / "task.toml"
    path.write_text(TASK)
    return path


def table(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(["device,period,value", *rows]) + "\n")
    return path


@pytest.mark.statistics
def test_a_task_is_run_on_made_up_devices(task: Path, tmp_path: Path) -> None:
    picture, curves = tmp_path / "out.png", tmp_path / "out.parquet"
    found = answer("simulate", task, "--devices", 5000, "--plot", picture, "-o", curves)
    assert found["simulated"] is True
    assert found["devices"] == 5000
    assert sum(found["design"]["mix"].values()) == pytest.approx(1)
    assert set(found["decoders"]) == {"online", "smoothed", "filtered", "posterior"}
    online = found["decoders"]["online"]
    assert 0 < online["rmse"] < 0.2
    assert online["rmse"] == pytest.approx(online["expected_rmse"], rel=0.6)
    assert online["largest_clipping_bias"] < 1e-9
    assert set(online["coverage"]) == {"mean", "range", "difference"}
    assert found["memory_bytes"] > 0
    assert picture.read_bytes()[:4] == b"\x89PNG"
    written = pq.read_table(curves)
    assert written.num_rows == 18
    assert written["truth"].to_pylist() == found["curves"]["truth"]
    again = answer("simulate", task, "--devices", 5000)
    assert again["curves"] == found["curves"]
    other = answer("simulate", task, "--devices", 5000, "--seed", 2)
    assert other["curves"] != found["curves"]


def test_people_see_errors_the_last_period_and_the_promise(task: Path, tmp_path: Path) -> None:
    curves = tmp_path / "out.csv"
    shown = run("simulate", task, "--devices", 3000, "--changes", 5, "-o", curves)
    assert shown.exit_code == 0
    for words in ("3,000 simulated devices", "RMSE", "Period 6, online", "epsilon 2", "±"):
        assert words in shown.stdout
    assert pv.read_csv(curves).num_rows == 18


def test_more_changes_than_allowed_are_shown_as_bias(tmp_path: Path) -> None:
    path = tmp_path / "task.toml"
    path.write_text(TASK.replace("changes = 3", 'changes = 1\nprotocol = "tree"'))
    shown = run("simulate", path, "--devices", 3000, "--changes", 5)
    assert "What is left out biases the curves" in shown.stdout
    found = answer("simulate", path, "--devices", 3000, "--changes", 5)
    assert found["decoders"]["online"]["largest_clipping_bias"] > 0.05
    assert set(found["decoders"]) == {"online", "smoothed", "filtered", "posterior", "path", "tree"}


def test_recorded_streams_are_taken_once_or_drawn(task: Path, tmp_path: Path) -> None:
    rows = [f"{device},1,{'home' if device % 4 else 'road'}" for device in range(400)]
    data = table(tmp_path / "streams.csv", *rows)
    found = answer("simulate", task, "--data", data)
    assert found["devices"] == 400
    assert found["curves"]["truth"] == [0.75, 0.0, 0.25] * 6
    assert answer("simulate", task, "--data", data, "--devices", 900)["devices"] == 900


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (["a,1,home", "a,3,mars"], "device 'a', period 3: "),
        (["a,3,home", "a,2,work"], "device 'a' has period 2 after 3"),
        (["a,2,home"], "device 'a' has no value before period 2"),
        (["a,9,home"], "period is 9 in row 1; a whole number in 1..6 is expected."),
    ],
)
def test_bad_streams_get_one_sentence(
    task: Path, tmp_path: Path, rows: list[str], sentence: str
) -> None:
    assert sentence in refused("simulate", task, "--data", table(tmp_path / "streams.csv", *rows))


def test_what_cannot_be_run_gets_one_sentence(task: Path, tmp_path: Path) -> None:
    assert "a .csv or a .parquet" in refused("simulate", task, "--data", "streams.txt")
    assert "the planes have 17" in refused("simulate", task, "--data", "flights")
    picture = tmp_path / "out.doc"
    assert ".png" in refused("simulate", task, "--plot", picture, absent=[picture])
    data = table(tmp_path / "streams.csv", "a,1,home")
    assert "only made-up streams" in refused("simulate", task, "--data", data, "--changes", 2)
    assert "only streams without an end take it" in refused("simulate", task, "--periods", 3)
    assert "the curve 'sin' is of two" in refused("simulate", task, "--data", "sin")


def test_moves_are_simulated(tmp_path: Path) -> None:
    """Rises and falls that a task does not allow any more are a bias, as anywhere."""
    task, picture = tmp_path / "moves.toml", tmp_path / "out.png"
    task.write_text(TASK.replace('"category"', '"moves"'))
    found = answer("simulate", task, "--devices", 20_000, "--plot", picture)
    online = found["decoders"]["online"]
    assert online["rmse"] == pytest.approx(online["expected_rmse"], rel=0.5)
    assert online["largest_clipping_bias"] == 0
    assert 0.8 < online["coverage"]["mean"] <= 1
    assert found["reports_per_device_and_period"] == 1
    assert picture.read_bytes()[:4] == b"\x89PNG"
    more = answer("simulate", task, "--devices", 20_000, "--changes", 9)
    assert more["decoders"]["online"]["largest_clipping_bias"] > 0.05


def test_a_curve_of_the_literature_is_on_or_off(tmp_path: Path) -> None:
    task = tmp_path / "binary.toml"
    task.write_text(TASK.replace('"category", items = ["home", "work", "road"]', '"binary"'))
    found = answer("simulate", task, "--devices", 4000, "--data", "steps")
    assert found["curves"]["truth"] == [0.1] * 6


def test_amounts_and_streams_of_other_packages_are_simulated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = tmp_path / "task.toml"
    shared = 'title = "t"\nepsilon = 2.0\nperiods = 4\nperiod = "1 hour"\n'
    task.write_text(f'{shared}stream = "topl"\nvalues = {{kind = "number", low = 0, high = 9}}\n')
    found = answer("simulate", task, "--devices", 3000)
    assert found["curves"]["item"] == ["sum"] * 4
    assert found["curves"]["online"][0] is None  # the first period chooses where to cut
    assert found["decoders"]["online"]["rmse"] < 3000
    assert "3,000 simulated devices" in run("simulate", task, "--devices", 3000).stdout
    monkeypatch.setitem(registry.STREAMS, "slow", "tests.simulation.slow:Slow")
    items = 'values = {kind = "category", items = 3}\nwindow = 2\ndevices = 200\n'
    task.write_text(f'{shared}stream = "slow"\n{items}')
    assert answer("simulate", task)["devices"] == 200


@pytest.mark.statistics
def test_planes_are_simulated() -> None:
    found = answer("simulate", "docs/examples/planes.toml", "--data", "flights")
    assert found["devices"] == 4043
    assert found["design"]["mix"] == {"snapshot": 1.0}


def test_experiments_are_repeated() -> None:
    rows = answer("lab", "fan-out")
    assert len(rows) == 8
    assert all(abs(row["ratio"] - 1) < 0.2 for row in rows)
    shown = run("lab", "accuracy", "--data", "binary", "--changes", 4, "--periods", 16)
    assert shown.exit_code == 0
    assert "snapshots" in shown.stdout
    assert "--data has 'cats'" in refused("lab", "accuracy", "--data", "cats")
    assert "--periods is 'x'" in refused("lab", "accuracy", "--periods", "x")
