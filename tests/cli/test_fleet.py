"""Fleets from the command line, against a real collector."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from tests.cli.running import answer, refused
from tests.service.running import Running

TASK = {
    "title": "Lights",
    "epsilon": 2.0,
    "periods": 4,
    "period": "1 second",
    "changes": 2,
    "values": {"kind": "binary"},
    "mix": {"1": 1.0},
}


@pytest.mark.parametrize("recorded", [False, True])
def test_every_device_sends_in_every_period(tmp_path: Path, *, recorded: bool) -> None:
    table = tmp_path / "lights.csv"
    table.write_text("device,period,value\n1,1,0\n1,3,1\n2,2,1\n")
    words = ["--data", table, "--journals", tmp_path / "journals"] if recorded else []
    with Running(tmp_path / "collector.db") as collector:
        start = int(time.time()) + 1
        collector.publish(TASK, start=start, grace=60, public=True)
        said = answer("fleet", collector.url, "--devices", "20", *words)
    assert (said["sent"], said["refused"], said["waiting"]) == (80, 0, 0)
    assert len(list(tmp_path.glob("journals/*.journal"))) == 20 * recorded


def test_what_it_refuses() -> None:
    assert "is a collector there?" in refused("fleet", "http://127.0.0.1:9")
    assert "address is 'nowhere" in refused("fleet", "nowhere")
