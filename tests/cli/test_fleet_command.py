"""Fleets from the command line, against a real collector."""

from __future__ import annotations

import json
import time
from collections import Counter
from pathlib import Path

import pytest
from tests.cli.running import answer, refused, run
from tests.service.running import Running
from tests.small_tasks import lights

from sfumato.cli.fleet_command import ADVICE, _Outcome
from sfumato.wire.receipts import REASONS

TASK = lights(4, "1 second")


MOVES = {key: value for key, value in TASK.items() if key != "mix"} | {
    "title": "Prices",
    "values": {"kind": "moves", "items": ["bread", "milk"]},
}


@pytest.mark.parametrize("recorded", [False, True])
def test_every_device_sends_in_every_period(tmp_path: Path, *, recorded: bool) -> None:
    table = tmp_path / "lights.csv"
    table.write_text("device,period,value\n1,1,0\n1,3,1\n2,2,1\n")
    words = ["--data", table, "--journals", tmp_path / "journals"] if recorded else []
    with Running(tmp_path / "collector.db") as collector:
        start = int(time.time()) + 1
        collector.publish(TASK if recorded else MOVES, start=start, grace=60, public=True)
        said = answer("fleet", collector.url, "--devices", "20", *words)
    assert (said["sent"], said["refused"], said["waiting"]) == (80, 0, 0)
    assert said["reasons"] == said["problems"] == said["absent"] == {}
    assert len(list(tmp_path.glob("journals/*.journal"))) == 20 * recorded


def test_what_is_refused_is_told_with_its_reason_and_what_to_do(tmp_path: Path) -> None:
    journals = tmp_path / "journals"
    with Running(tmp_path / "collector.db") as collector:
        assert "has no task yet that is read without a token" in refused("fleet", collector.url)
        over = collector.publish(MOVES, start=int(time.time()) - 2, grace=0, public=True)
        words = ["fleet", f"{collector.url}/tasks/{over['task_id']}", "--journals", journals]
        collector.wait_until_closed(over["task_id"], 4)
        result = run(*words, "--devices", "5")
        again = collector.publish(TASK, start=int(time.time()) - 2, grace=0, public=True)
        other = f"{collector.url}/tasks/{again['task_id']}"
        message = refused("fleet", other, "--journals", journals, "--devices", "5")
        mixed = run("fleet", other, "--journals", journals, "--devices", "7")
    assert result.exit_code == 1
    assert "0 blurred reports" in result.stdout
    assert "20 were refused" in result.stdout
    assert f"Refused 20 times as stale: {ADVICE['stale']}" in result.stdout
    assert "none of 5 devices can join; 5 of them say: the task asks for epsilon 2; 0" in message
    assert f"New devices need an empty {journals}" in message
    assert "5 devices could not join: the task asks for epsilon 2; 0 of the limit" in mixed.stdout
    assert "take an empty folder" in mixed.stdout


def test_whatever_becomes_of_a_fleet_can_be_written_as_json() -> None:
    outcome = _Outcome(5, 2, 1, Counter(stale=2), Counter({"no answer": 1}), Counter(spent=3))
    assert json.loads(json.dumps(outcome.plain())) == {
        "sent": 5,
        "refused": 2,
        "waiting": 1,
        "reasons": {"stale": 2},
        "problems": {"no answer": 1},
        "absent": {"spent": 3},
    }


def test_every_reason_of_a_collector_has_its_advice() -> None:
    assert set(ADVICE) == set(REASONS)


def test_what_it_refuses() -> None:
    nobody = refused("fleet", "http://127.0.0.1:9")
    assert nobody == "127.0.0.1:9 gives no answer (Connection refused); is a collector there?"
    assert "'abc' is no id of a task" in refused("fleet", "http://127.0.0.1:9/tasks/abc")
    assert "address is 'nowhere" in refused("fleet", "nowhere")


def test_devices_that_are_asked_answer_within_their_window(tmp_path: Path) -> None:
    values = {"kind": "number", "low": 0.0, "high": 30.0}
    shape = {"epsilon": 2.0, "window": 2, "devices": 12, "periods": 4, "period": "2 seconds"}
    task = {"kind": "window", "title": "Degrees", "values": values, "method": "lpu"} | shape
    journals = tmp_path / "journals"
    with Running(tmp_path / "collector.db") as collector:
        made = collector.publish(task, start=int(time.time()) + 1, grace=2, public=True)
        said = answer("fleet", collector.url, "--devices", "12", "--journals", journals)
        collector.wait_until_closed(made["task_id"], 4)
        found = json.loads(collector.read(f"/v1/tasks/{made['task_id']}/answers?period=4"))
    assert said["refused"] == 0
    assert 1 <= said["sent"] <= 24  # each at most once in two periods
    assert "any 2 consecutive periods" in found["guarantee"]
    said = run("device", "log", "--journal", journals / "0.journal").stdout
    assert said.startswith(time.strftime("%Y-", time.gmtime(made["start"])))  # and not 1970
    log = answer("device", "log", "--journal", journals / "0.journal")
    assert log["tasks"][0]["promise"] == "for what it sends in any 2 consecutive periods"
