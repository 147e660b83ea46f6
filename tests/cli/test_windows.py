from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.cli.running import answer, refused, run

ITEMS = 'values = {kind = "category", items = ["home", "work", "road"]}'
TASK = f"""
kind = "window"
title = "Where people are"
epsilon = 2.0
window = 4
devices = 4000
periods = 30
period = "1 hour"
{ITEMS}
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    path = tmp_path / "task.toml"
    path.write_text(TASK)
    return path


def test_a_window_is_simulated(task: Path, tmp_path: Path) -> None:
    picture, curves = tmp_path / "out.png", tmp_path / "out.parquet"
    found = answer("simulate", task, "--periods", 10, "--plot", picture, "-o", curves)
    assert found["design"] == {"method": "filtered"}
    assert found["devices"] == 4000
    assert found["periods"] == 10
    assert found["reports_per_device_and_period"] == pytest.approx(1 / 4, rel=0.05)
    online = found["decoders"]["online"]
    assert 0.8 < online["coverage"]["mean"] <= 1
    assert 0 < online["rmse"] < 0.1
    assert "epsilon 2 over any 4 consecutive periods" in found["guarantee"]
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert pq.read_table(curves).num_rows == 30
    again = answer("simulate", task, "--periods", 10)
    assert again["curves"] == found["curves"]
    shown = run("simulate", task, "--devices", 2000).stdout
    assert "2,000 simulated devices, 30 periods: method filtered" in shown
    assert "95% intervals hold" in shown


@pytest.mark.parametrize("method", ["lbu", "lsp", "lpu", "lbd", "lba", "lpd", "lpa"])
def test_every_method_can_be_asked_for(task: Path, method: str) -> None:
    task.write_text(TASK + f'method = "{method}"\n')
    assert answer("simulate", task, "--periods", 8)["design"] == {"method": method}


def test_numbers_are_simulated(task: Path, tmp_path: Path) -> None:
    task.write_text(TASK.replace(ITEMS, 'values = {kind = "number", low = 0, high = 40}'))
    found = answer("simulate", task, "--periods", 6, "--plot", tmp_path / "out.svg")
    assert set(found["curves"]["item"]) == {"mean"}
    assert 0 < found["decoders"]["online"]["rmse"] < 4


def test_a_table_is_simulated(task: Path, tmp_path: Path) -> None:
    rows = [f"{d},{t},{'home' if d % 3 else 'work'}" for t in (1, 2) for d in range(60)]
    data = tmp_path / "data.csv"
    data.write_text("\n".join(["device,period,value", *rows]) + "\n")
    found = answer("simulate", task, "--periods", 2, "--data", data, "--devices", 900)
    assert found["curves"]["truth"][0] == pytest.approx(2 / 3, abs=0.07)
    data.write_text("device,period,value\n1,1,moon\n")
    assert "moon" in refused("simulate", task, "--periods", 2, "--data", data)
    data.write_text("device,period,value\n1,2,home\n1,1,home\n")
    assert "period" in refused("simulate", task, "--periods", 2, "--data", data)


def test_tiers_are_simulated_and_planned(task: Path) -> None:
    task.write_text(TASK + "tiers = [{window = 8, epsilon = 1, devices = 2000}]\n")
    found = answer("simulate", task, "--periods", 8)
    assert found["devices"] == 6000
    assert "any 4 consecutive periods" in found["guarantee"]
    assert "any 8 consecutive periods" in found["guarantee"]
    planned = answer("plan", task)
    assert planned["devices"] == 6000
    assert "any 4 consecutive" in planned["guarantee"]
    assert "any 8 consecutive" in planned["guarantee"]
    assert "any 8 consecutive periods" in run("task", "check", task).stdout


def test_a_window_is_planned(task: Path) -> None:
    found = answer("plan", task, "--devices", 8000, "--target", 0.02)
    options = {option["name"]: option["queries"] for option in found["options"]}
    best = min(options, key=lambda name: options[name]["online"]["rmse"])
    assert found["recommended"]["method"] == best == "filtered"
    assert options["pooled"]["online"]["rmse"] < 1.02 * options[best]["online"]["rmse"]
    assert options["lpu"]["period"]["rmse"] < options["lbu"]["period"]["rmse"]
    assert options["filtered"]["online"]["rmse"] < options["lpu"]["online"]["rmse"]
    assert "period" not in options["lpd"]
    assert found["simulated"] == {"devices": 8000, "periods": 30}
    assert found["target"]["devices"] > 8000
    shown = run("plan", task, "--target", 0.0001).stdout
    for words in ("No epsilon reaches it", "No window reaches it", "has the least error of all"):
        assert words in shown
    assert 'method = "pooled"' in shown


def test_check_says_what_a_window_means(task: Path) -> None:
    found = answer("task", "check", task)
    assert found["devices"] == 4000
    assert found["half_width"] > 0
    shown = run("task", "check", task, "--devices", 40_000).stdout
    assert "filtered" in shown
    assert "Next:  sfumato task publish" in shown


def test_what_windows_do_not_take_is_said(task: Path, tmp_path: Path) -> None:
    assert "only a horizon counts changes" in refused("simulate", task, "--changes", 3)
    assert "--data is 'moon'" in refused("simulate", task, "--data", "moon")
    assert "only a horizon takes one" in refused("plan", task, "--pilot", tmp_path / "p.csv")
    task.write_text(TASK.replace("window = 4", "window = 0"))
    assert "window is 0; a whole number in 1..16384 is expected" in refused("simulate", task)
