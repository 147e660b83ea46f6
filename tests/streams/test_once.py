"""A stream of another package runs in every part of sfumato, once one line registers it."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import answer, refused
from tests.service.running import TOKENS, Running

from sfumato.device import Device, Limits
from sfumato.streams import registry

FILE = Path(__file__).with_name("once.py")
LINE = "once = once:Once"
TASK: dict[str, Any] = {
    "title": "Where people are",
    "stream": "once",
    "epsilon": 4.0,
    "periods": 3,
    "period": "1 second",
    "values": {"kind": "category", "items": ["home", "work"]},
}
TOML = """title = "Where people are"
stream = "once"
epsilon = 4
periods = 3
period = "1 second"
rest = 3
values = {kind = "category", items = ["home", "work"]}
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install a package that has the stream, for this process and for those it starts."""
    site = tmp_path / "site"
    about = site / "once-1.dist-info"
    about.mkdir(parents=True)
    (site / "once.py").write_text(FILE.read_text())
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: once\nVersion: 1\n")
    (about / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{LINE}\n")
    monkeypatch.syspath_prepend(site)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), *sys.path]))
    monkeypatch.setattr(registry, "STREAMS", dict(registry.STREAMS))
    return site


@pytest.fixture
def task(tmp_path: Path, package: Path) -> Path:
    """Write a task file that asks for the stream."""
    del package
    file = tmp_path / "task.toml"
    file.write_text(TOML)
    return file


def test_its_task_file_is_read_and_its_own_fields_are_judged(task: Path) -> None:
    assert answer("task", "check", task)["task"]["rest"] == 3
    task.write_text(TOML.replace("rest = 3", "rest = 1"))
    sentence = refused("task", "check", task)
    assert f"{task}, line 6: rest is 1; 0, or a whole number from 2, is expected." in sentence


def test_it_is_checked_as_all_streams_are(package: Path) -> None:
    del package
    verdicts = answer("check", "once")
    assert len(verdicts) == 2
    assert all(verdict["ok"] for verdict in verdicts)


def test_it_is_simulated_and_planned(task: Path) -> None:
    assert answer("simulate", task, "--devices", "300", "--seed", "1")
    planned = answer("plan", task, "--devices", "300")
    (option,) = planned["options"]
    assert (option["messages"], option["most_messages"]) == (1, 1)


@pytest.mark.processes
def test_it_is_served_to_devices_fleets_pages_and_analysts(tmp_path: Path, package: Path) -> None:
    del package
    with Running(tmp_path / "collector.db") as collector:
        start = int(time.time()) + 2
        task_id = collector.publish(TASK, start=start, grace=12, public=True)["task_id"]
        device = Device.open(tmp_path / "one.journal", Limits(4.0))
        device.join(f"{collector.url}/v1/tasks/{task_id}")
        device.observe("work", strict=True)
        lived = answer("fleet", collector.url, "--devices", "40")
        sent = lived["sent"] + device.flush(force=True).sent
        device.close()
        collector.wait_until_closed(task_id, 3)
        asked = answer(
            "query", f"{collector.url}/tasks/{task_id}", "--ask", "curve", "--item", "work"
        )
        html = collector.read(f"/tasks/{task_id}").decode()
    assert lived["refused"] == 0
    assert sent == 41
    assert asked
    assert "Where people are" in html
    assert "work" in html
    assert TOKENS["SFUMATO_OPERATOR_TOKEN"] not in html
