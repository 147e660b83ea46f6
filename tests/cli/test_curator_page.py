"""The commands of the curator's page run as they stand there, and say what it says."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.running import run

PAGE = Path(__file__).parent.parent.parent / "docs" / "curator.md"


def commands(text: str) -> Iterator[tuple[str, str]]:
    """Yield the commands of a page, each with what the page shows of its output."""
    for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL):
        for part in block.split("$ ")[1:]:
            command, _, shown = part.partition("\n")
            yield command, shown.strip()


def said(command: str) -> str:
    """Run a command, with noise of a known key, and return what it says."""
    if not command.startswith("sfumato "):
        subprocess.run(command, shell=True, check=True)  # noqa: S602 - of our own page
        return ""
    result = run(*shlex.split(command)[1:])
    text = (result.stdout + result.stderr).replace(f"{Path.cwd()}/", "")
    return "\n".join(line.rstrip() for line in text.splitlines()).strip()


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sfumato.randomness.Secure.take", lambda _, size: bytearray(size))
    steps = [*commands(PAGE.read_text())]
    assert len(steps) >= 8
    for command, shown in steps:
        assert said(command) == shown, command
