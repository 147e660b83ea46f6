"""A run of the tests names what it left out and cost; where CI is true, nothing may be missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.kinds import QUICK

ROOT = Path(__file__).parents[1]
TESTS = """
import subprocess, sys, time
import pytest

BUSY = "import time\\nwhile time.process_time() < 0.3: pass"

@pytest.mark.skipif(True, reason="there is no piano")
def test_music(): pass
@pytest.mark.slow
@pytest.mark.statistics
@pytest.mark.parametrize("n", [1, 2, 3])
def test_slow(n): pass
@pytest.mark.statistics
def test_draws(): pass
def test_quick(): pass
@pytest.fixture
def prepared():
    begun = time.process_time()
    while time.process_time() < begun + 0.2: pass
def test_busy(prepared):
    begun = time.process_time()
    while time.process_time() < begun + 0.2: pass
def test_child(): subprocess.run([sys.executable, "-c", BUSY], check=True)
"""
MARKERS = "slow: takes long\n  statistics: draws"
SLOW = "3 slow tests (./run test --slow runs them)"
DRAWS = "1 statistics tests (./run test runs them)"


@pytest.mark.parametrize("processes", [[], ["-p", "xdist", "-n", "2"]], ids=["one", "several"])
def test_what_is_left_out_is_named_with_its_reason(tmp_path: Path, processes: list[str]) -> None:
    room = tmp_path / "tests" / "room"
    room.mkdir(parents=True)
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (room / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nmarkers =\n  {MARKERS}\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *processes]
    for ci, code, asked, left in (
        ("", 0, "not slow", SLOW),
        ("true", 1, QUICK, f"{SLOW}; {DRAWS}"),
    ):
        env = os.environ | {"CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(  # noqa: S603
            [*command, "-m", asked, "--slowest", "2", str(room)],
            capture_output=True,
            text=True,
            check=False,
            env=env,
            cwd=tmp_path,
        )
        assert f"Left out: 1 skipped (there is no piano); {left}." in done.stdout
        assert done.returncode == code
        _costs_are_told(done.stdout)


def _costs_are_told(said: str) -> None:
    """Those of set-up and of processes count; what is in no test counts in all."""
    listed = re.findall(r"^ +([0-9.]+) s  tests/room/test_it.py::(\w+)$", said, re.MULTILINE)
    slowest = {test: float(seconds) for seconds, test in listed}
    assert set(slowest) == {"test_busy", "test_child"}
    assert slowest["test_busy"] >= 0.39
    assert slowest["test_child"] >= 0.29
    costs = re.search(r"^Processor seconds: (\S+) in all; (.*?)\.$", said, re.MULTILINE | re.DOTALL)
    assert costs
    rooms = dict(re.findall(r"(\w[^,]*) ([0-9.]+)", costs[2].replace("\n", " ")))
    assert set(rooms) == {"tests/room", "starting and collecting"}
    assert float(rooms["tests/room"]) >= sum(slowest.values()) - 0.1
    assert float(costs[1]) == pytest.approx(sum(map(float, rooms.values())), abs=0.11)
