"""Tests that may be left out are recognised by their code; every room has some that always run."""

from __future__ import annotations

import subprocess
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from conftest import KINDS
from tests.fitting import p_value, python
from tests.kinds import QUICK, reached
from tests.service.running import Running

ROOT = Path(__file__).parents[1]


class _Scene:
    def __init__(self) -> None:
        self.threshold = p_value

    @property
    def collector(self) -> Any:
        def start() -> Running:
            return Running(ROOT)

        return start


class _Later(_Scene):
    pass


def _browses() -> Any:
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    return sync_playwright()


def _calls_by_name() -> Any:
    return subprocess.run


def test_what_starts_a_process_is_seen_however_far_away() -> None:
    for starter in (python, Running, _Scene, _Later, _calls_by_name):
        assert reached(starter) == {"processes"}
    assert reached(_browses) == {"browser"}
    for harmless in (p_value, cached_property, test_quick_runs_leave_out_every_kind):
        assert reached(harmless) == set()


def test_quick_runs_leave_out_every_kind() -> None:
    asked = {kind: f"not {kind}" for kind in KINDS}
    assert " and ".join(asked.values()) == QUICK
    assert f'"{QUICK}"' in (ROOT / "run").read_text()
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]
    assert [line.split(":")[0] for line in settings["ini_options"]["markers"]] == list(KINDS)


def test_every_room_has_quick_tests(request: pytest.FixtureRequest) -> None:
    """Each part of a run looks at what was collected; a run of a few files has not all of it."""
    rooms: dict[Path, bool] = {}
    for item in request.session.items:
        room = item.path.relative_to(ROOT).parent
        quick = not any(item.get_closest_marker(kind) for kind in KINDS)
        rooms[room] = rooms.get(room, False) or quick
    if request.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        assert {str(room) for room, quick in rooms.items() if not quick} == set()
