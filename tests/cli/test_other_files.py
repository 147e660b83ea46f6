"""What another program keeps is refused by each command that wants a store, and left as it is."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from tests.cli.running import refused

COMMANDS = {
    "serve": ("serve", "--port", 0, "--store"),
    "workers": ("serve", "--port", 0, "--workers", 2, "--store"),
    "shuffle": ("shuffle", "serve", "--port", 0, "--store"),
    "export": ("export", "x.parquet", "--store"),
    "aggregate": ("aggregate",),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_file_of_another_program_keeps_its_rights_and_its_content(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SFUMATO_SHUFFLER_TOKEN", "x" * 43)
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as db:
        db.execute("CREATE TABLE things (name TEXT)")
    other.chmod(0o664)
    before = other.stat().st_mode, other.read_bytes()
    assert "belongs to another program" in refused(*COMMANDS[command], other)
    assert (other.stat().st_mode, other.read_bytes()) == before
    assert list(tmp_path.iterdir()) == [other]
