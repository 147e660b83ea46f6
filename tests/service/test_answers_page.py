"""The commands of the page about answers run as they stand there, against a real collector."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

import pyarrow.ipc
import pytest
from tests.service.fleets import Fleet, joined
from tests.service.running import Running

import sfumato

PAGE: Final = (Path(__file__).parents[2] / "docs" / "answers.md").read_text("utf-8")
TASK: Final = {
    "title": "Where people listen",
    "epsilon": 4.0,
    "periods": 3,
    "period": "1 second",
    "changes": 2,
    "values": {"kind": "category", "items": ["home", "work", "road"]},
}


def commands() -> list[str]:
    """Return the commands of the page, in order."""
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    return [line[2:] for block in blocks for line in block.splitlines() if line.startswith("$ ")]


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")
def test_the_commands_of_the_page_are_answered(tmp_path: Path) -> None:
    with Running(tmp_path / "collector.db") as running:
        start = int(time.time()) - 1
        made = running.publish(TASK, start=start, grace=6, public=True, sealed=False)
        task = joined(running, made["task_id"])
        fleet = Fleet(task, 400)
        for period in (1, 2, 3):
            time.sleep(max(0.0, start + period - time.time()) + 0.05)
            running.upload(task.name, fleet.body(["home"] * 300 + ["road"] * 100))
        running.wait_until_closed(task.name, 3)
        outputs = _run(commands(), running.url, tmp_path)
        frame = sfumato.Collector(running.url).task("Where people listen").curve().to_frame()
    assert len(frame) == 9
    for command, output in outputs.items():
        if command.startswith("curl") and "-o " not in command:
            assert "answers" in json.loads(output) or "tasks" in json.loads(output), command
        elif command.startswith("sfumato"):
            assert "epsilon 4" in output, command
    with (tmp_path / "curves.csv").open() as file:
        assert len(list(csv.DictReader(file))) == 9
    with (tmp_path / "curves.arrows").open("rb") as file:
        assert pyarrow.ipc.open_stream(file).read_all().num_rows == 9


def _run(lines: list[str], url: str, folder: Path) -> dict[str, str]:
    """Run commands in one shell, and return what each of them prints."""
    mark = "---- next ----"
    script = "\n".join(
        part
        for line in lines
        for part in (line.replace("http://127.0.0.1:8080", url), f"echo; echo '{mark}'")
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ended: Any = subprocess.run(  # noqa: S603 -- of our own page
        ["bash", "-euc", script],  # noqa: S607
        cwd=folder,
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    outputs = ended.stdout.split(f"\n{mark}\n")
    return dict(zip(lines, outputs, strict=False))
