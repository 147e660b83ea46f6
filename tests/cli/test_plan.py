from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.running import answer, refused, run

TASK = """\
title = "Lights"
epsilon = 1.0
periods = 12
period = "1 hour"
changes = 4
values = {kind = "binary"}
"""


@pytest.fixture
def task(tmp_path: Path) -> Path:
    path = tmp_path / "task.toml"
    path.write_text(TASK)
    return path


def test_it_recommends_and_says_why(task: Path) -> None:
    shown = run("plan", task, "--devices", "50000", "--target", "0.02").stdout
    for words in (
        "Lights",
        "50,000 devices; on or off, 12 periods of 1 hour.",
        "A device's whole stream of 12 periods is protected with epsilon 1",
        "Recommended",
        "mix = {",
        "mean of a period",
        "once all have closed",
        "snapshots",
        "hierarchy",
        "A second horizon spends epsilon again",
        "One forged device can move",
        "± 0.02 for the mean of a period, each of these by itself:",
        "A person with two devices",
        f"Next:  sfumato simulate {task} --devices 50000",
    ):
        assert words in shown


def test_json_has_all_of_it(task: Path) -> None:
    found = answer("plan", task, "--devices", "50000", "--target", "0.02")
    best = found["options"][0]
    assert found["recommended"]["mix"]
    assert found["devices"] == 50_000
    assert {"online", "history", "prefix", "ranges"} == set(best["queries"])
    online = best["queries"]["online"]
    assert online["half_width"] == pytest.approx(1.96 * online["rmse"], rel=0.1)
    assert {"messages", "payload_bytes", "forged_influence"} <= set(best)
    assert found["target"]["devices"] > 0
    assert found["second_horizon"]["epsilon_spent"] == 2.0
    assert 0 < found["posterior"]["rmse"] < online["rmse"]
    assert any("the posterior decoder has about" in reason for reason in found["reasons"])
    assert found["warnings"]
    assert found["reasons"]
    assert found["mixed"] is None
    assert found["floor"] is None


def test_a_task_that_is_mixed_has_both_promises_and_a_floor(tmp_path: Path) -> None:
    """Some of the ways that were tried have chaff, and others have none."""
    path = tmp_path / "task.toml"
    path.write_text("""\
title = "Moves"
epsilon = 8.0
periods = 16
period = "1 hour"
changes = 2
values = {kind = "moves", items = 4}
chaff = {messages = 2}
shuffle = {url = "http://here", epsilon = 0.25, delta = 1e-6, min_batch = 10000, colluding = 0.1}
""")
    shown = run("plan", path, "--devices", "20000").stdout
    assert "is protected with epsilon 0.25, delta 1e-06 (shuffle: blurred on the device" in shown
    assert "flat with chaff" in shown
    found = answer("plan", path, "--devices", "20000")
    assert "epsilon 0.25, delta 1e-06" in found["mixed"]
    best, second = (option["queries"]["online"]["rmse"] for option in found["options"][:2])
    assert 0 < found["floor"] < best < second
    assert f"RMSE below {found['floor']:.4f} for the mean of a period" in shown


def test_a_pilot_of_streams_chooses_the_changes(task: Path, tmp_path: Path) -> None:
    path = tmp_path / "pilot.csv"
    rows = [f"{device},{1 + device % 12},{device % 2}" for device in range(400)]
    path.write_text("\n".join(["device,period,value", *rows]) + "\n")
    found = answer("plan", task, "--pilot", path)
    assert found["recommended"]["changes"] == 1
    assert found["pilot"]["people"] == 400
    assert any("does not protect them" in warning for warning in found["warnings"])


def test_a_private_histogram_does_too_and_is_accounted_for(task: Path, tmp_path: Path) -> None:
    path = tmp_path / "changes.csv"
    path.write_text("item,value,low,high\n0,0.6,0.5,0.7\n1,0.42,0.3,0.5\n3,-0.02,-0.1,0.1\n")
    found = answer("plan", task, "--pilot", path, "--pilot-epsilon", "0.5")
    assert found["recommended"]["changes"] == 1
    assert any("spends 1.5 in all" in warning for warning in found["warnings"])


@pytest.mark.parametrize(
    ("name", "content", "options", "sentence"),
    [
        ("p.csv", "a,b\n1,2\n", [], "has the columns a, b; device, period and value, or item and"),
        ("p.csv", "item,value\n1,0.5\n", [], "--pilot-epsilon is missing; what the histogram"),
        ("p.csv", "item,value\n1,0.5\n", ["--pilot-epsilon", "-1"], "--pilot-epsilon is -1"),
        (
            "p.csv",
            "item,value\n1.5,0.5\n",
            ["--pilot-epsilon", "1"],
            "has an item that is no number of changes",
        ),
        (
            "p.csv",
            "item,value\n99,0.5\n",
            ["--pilot-epsilon", "1"],
            "99 changes: 0.5; numbers of changes in 0..12",
        ),
        ("p.csv", "device,period,value\na,13,1\n", [], "p.csv: "),
        ("p.csv", "device,period,value\na,2,1\na,1,0\n", [], "p.csv: "),
        ("p.csv", "device,period,value\na,2,7\n", [], "p.csv: "),
        (
            "p.csv",
            "device,period,value\na,2,1\n",
            ["--pilot-epsilon", "1"],
            "streams that are read as they are have none",
        ),
    ],
)
def test_pilots_that_are_none(
    task: Path, tmp_path: Path, name: str, content: str, options: list[str], sentence: str
) -> None:
    path = tmp_path / name
    path.write_text(content)
    assert sentence in refused("plan", task, "--pilot", path, *options)


def test_mistakes_in_the_task_file_have_their_line(task: Path) -> None:
    task.write_text(TASK.replace("periods = 12", "periods = 1"))
    assert "task.toml, line 3: periods is 1; a whole number in 2.." in refused("plan", task)
    assert "there is no pilot" in refused("plan", _fixed(task), "--pilot-epsilon", "1")
    assert "target is -1.0" in refused("plan", task, "--target", "-1")
    assert "No such file" in refused("plan", task.with_name("absent.toml"))


def _fixed(task: Path) -> Path:
    task.write_text(TASK)
    return task
