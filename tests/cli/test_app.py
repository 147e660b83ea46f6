from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import PETS, refused, run

from sfumato.cli import randomize
from sfumato.mechanisms import GRR

COMMANDS = [
    "demo",
    "demo once",
    "demo films",
    "device log",
    "fleet",
    "mechanisms",
    "mechanisms show",
    "law",
    "randomize",
    "estimate",
    "check",
    "task new",
    "task check",
    "task publish",
    "serve",
    "query",
    "doctor",
]


def as_process(*words: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sfumato", *map(str, words)]
    env = {key: value for key, value in os.environ.items() if key != "FORCE_COLOR"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=env)  # noqa: S603


def test_without_a_command_it_says_what_there_is() -> None:
    result = run()
    assert result.exit_code == 0
    assert all(command.split()[0] in result.stdout for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    assert "Example:  sfumato " in result.stdout


def test_help_needs_nothing_slow() -> None:
    code = (
        "import sys, sfumato.cli.app; "
        "print([name for name in ('matplotlib', 'pyarrow', 'pandas') if name in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    found = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert found.stdout == "[]\n"


def test_version() -> None:
    assert run("--version").stdout.startswith("sfumato ")


@pytest.mark.parametrize(
    "words", [["paint"], ["law"], ["law", "grr", "--colour", "red"], ["check", "grr", "oue"]]
)
def test_a_wrong_call_is_one_sentence(words: list[str]) -> None:
    assert refused(*words)


def test_a_process_prints_json_and_nothing_else(tmp_path: Path, pets: Path) -> None:
    output = tmp_path / "reports.parquet"
    done = as_process("randomize", pets, "--column", "pet", *PETS, "-o", output, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["reports"] == 3000


def test_a_process_fails_with_one_sentence(tmp_path: Path) -> None:
    done = as_process("estimate", tmp_path / "absent.parquet")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == f"sfumato: {tmp_path / 'absent.parquet'}: No such file or directory.\n"


@pytest.mark.parametrize(
    ("missing", "words"),
    [("typer", ["--help"]), ("pyarrow", ["estimate", "r.parquet"]), ("rich", ["check", "grr"])],
)
def test_what_is_not_installed_is_named(missing: str, words: list[str]) -> None:
    hidden = f"import sys; sys.modules[{missing!r}] = None; from sfumato.cli import main; main()"
    command = [sys.executable, "-c", hidden, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode != 0
    assert done.stderr.startswith(f"sfumato: {missing}")
    assert done.stderr.endswith("is not installed; `pip install 'sfumato[cli]'` adds it.\n")


def test_stopping_leaves_nothing_behind(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pets: Path
) -> None:
    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(GRR, "_randomize", stop)
    output = tmp_path / "out" / "reports.parquet"
    output.parent.mkdir()
    result = run("randomize", pets, "--column", "pet", *PETS, "-o", output)
    assert result.exit_code == 130
    assert result.stderr == "sfumato: Stopped; nothing was left half-written.\n"
    assert list(output.parent.iterdir()) == []


def test_seeded_coins_are_refused_for_real_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pets: Path
) -> None:
    from sfumato.randomness import seeded  # noqa: PLC0415

    monkeypatch.setattr(randomize, "secure", lambda: seeded(1))
    output = tmp_path / "reports.parquet"
    message = refused("randomize", pets, "--column", "pet", *PETS, "-o", output, absent=[output])
    assert "Seeded" in message
