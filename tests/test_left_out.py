"""A run of the tests names what it has left out; where CI is true, nothing may be missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = """
import pytest
@pytest.mark.skipif(True, reason="there is no piano")
def test_music(): pass
@pytest.mark.slow
@pytest.mark.parametrize("n", [1, 2, 3])
def test_slow(n): pass
def test_quick(): pass
"""


@pytest.mark.parametrize("processes", [[], ["-p", "xdist", "-n", "2"]], ids=["one", "several"])
def test_what_is_left_out_is_named_with_its_reason(tmp_path: Path, processes: list[str]) -> None:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = slow: takes long\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *processes]
    command += ["-m", "not slow", str(tmp_path)]
    told = "Left out: 1 skipped (there is no piano); 3 slow tests (./run test --slow runs them)."
    for ci, code in (("", 0), ("true", 1)):
        env = os.environ | {"CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, check=False, env=env, cwd=tmp_path
        )
        assert told in done.stdout
        assert done.returncode == code
