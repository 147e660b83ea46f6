"""The commands of the page about clusters do what it says."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from tests.cli.running import answer
from tests.engines.clusters import NEEDS_JAVA
from tests.system.test_reader_paths import commands
from tests.vectors import stores
from tests.vectors.keeping import database

from sfumato.engines import CountedReports


@pytest.mark.slow
@NEEDS_JAVA
def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = database(tmp_path / "collector.db", stores.kept_store())
    scene = stores.Scene(path, stores.AS_OF)
    running = scene.running_tasks["listening"]
    name, history = running.name, running.history()
    scene.close()
    monkeypatch.chdir(tmp_path)
    Path("exports").mkdir()
    for part in ("monday", "tuesday"):  # the same reports twice
        answer("export", f"exports/{part}.parquet", "--store", path, "--task", name)
    for command in commands("cluster"):
        program, *words = shlex.split(command)
        assert program == "sfumato"
        answer(*words)
    one, two = map(CountedReports.read, ("week.tallies", "again.tallies"))
    assert dict(one.tallies) == dict(two.tallies)
    closed = history.closed
    assert one.history().mean(closed).values.tolist() == history.mean(closed).values.tolist()
