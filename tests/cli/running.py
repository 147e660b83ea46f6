"""How the tests of the command line call it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import typer
from click.testing import CliRunner

from sfumato.cli.app import app

__all__ = ["PETS", "answer", "refused", "run"]

COMMAND: Final[Any] = typer.main.get_command(app)  # made once: it looks at all commands there are
PETS: Final = ["--mechanism", "grr", "--epsilon", "4", "--domain", "cat,dog,fish"]


def run(*words: object) -> Any:
    """Run a command in this process and return its outcome; a traceback fails the test."""
    runner = CliRunner(env={"NO_COLOR": "1", "TERM": "dumb", "FORCE_COLOR": None})
    return runner.invoke(COMMAND, [str(word) for word in words], catch_exceptions=False)


def answer(*words: object) -> Any:
    """Run a command that must succeed with --json, and return what it prints: JSON alone."""
    result = run(*words, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    return json.loads(result.stdout)


def refused(*words: object, absent: Sequence[Path] = ()) -> str:
    """Run a command that must fail with one sentence and leave nothing behind; return it."""
    before = {path: set(path.parent.iterdir()) for path in absent if path.parent.is_dir()}
    sentences = []
    for more in ([], ["--json"]):
        result = run(*words, *more)
        assert result.exit_code == 2
        assert result.stdout == ""
        sentences.append(result.stderr)
    sentence: str = json.loads(sentences[1])["error"]
    assert sentences[0] == f"sfumato: {sentence}\n"
    assert "\n" not in sentence
    assert "Traceback" not in sentence
    for path, siblings in before.items():
        assert set(path.parent.iterdir()) == siblings
    return sentence
