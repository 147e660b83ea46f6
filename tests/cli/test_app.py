from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.console import Console
from tests.cli.running import PETS, refused, run

from sfumato.cli import console, randomize
from sfumato.cli.app import app
from sfumato.errors import InputError, SfumatoError
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
    "audit",
    "task new",
    "task check",
    "task publish",
    "serve",
    "query",
    "doctor",
]


def _groups(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every group of commands with the words that call it."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            words = f"{before} {name}".strip()
            yield words, command
            yield from _groups(command, words)


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


def test_an_address_is_never_broken_into_lines() -> None:
    written, address = StringIO(), f"http://127.0.0.1:8080/tasks/{'a' * 64}"
    target = Console(file=written, force_terminal=True, width=60, highlight=False)
    console.say(f"\nThe page:  {address}\n{'words ' * 20}\n", to=target)
    lines = written.getvalue().split("\n")
    assert lines[:2] == ["", f"The page:  {address}"]
    assert max(map(len, lines[2:])) <= 60
    assert lines[-3:] == [lines[-3], "", ""]


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
    ("missing", "extra", "words"),
    [
        ("typer", "cli", ["--help"]),
        ("pyarrow", "frames", ["estimate", "r.parquet"]),
        ("rich", "cli", ["check", "grr"]),
        ("starlette", "service", ["serve"]),
    ],
)
def test_what_is_not_installed_is_named(missing: str, extra: str, words: list[str]) -> None:
    hidden = f"import sys; sys.modules[{missing!r}] = None; from sfumato.cli import main; main()"
    command = [sys.executable, "-c", hidden, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    assert done.returncode != 0
    sentence = f"{missing} is not installed; `pip install 'sfumato[{extra}]'` adds it."
    assert done.stderr == f"sfumato: {sentence}\n"


GROUPS = [name for name, group in _groups(typer.main.get_command(app)) if group.no_args_is_help]


def test_groups_that_do_nothing_on_their_own_are_known() -> None:
    everything = {name for name, _ in _groups(typer.main.get_command(app))}
    assert everything - set(GROUPS) == {"demo", "mechanisms"}
    assert {"lab", "task", "device"} <= set(GROUPS)


@pytest.mark.parametrize("group", ["", *GROUPS])
def test_a_group_without_a_command_shows_its_help(group: str) -> None:
    result = run(*group.split())
    assert (result.exit_code, result.stderr) == (0, "")
    assert "Usage: " in result.stdout
    assert f"{group} [OPTIONS] COMMAND" in result.stdout


@pytest.mark.parametrize(
    "error",
    [
        *(kind() for kind in (SfumatoError, OSError, TimeoutError, ModuleNotFoundError)),
        *(kind("") for kind in (InputError, ConnectionError, typer.BadParameter)),
        *(InputError("  "), InputError(None), OSError(None, None), OSError(5, "")),
        ModuleNotFoundError("", name=None),
        typer.Abort(),
    ],
    ids=repr,
)
def test_no_message_is_ever_empty(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr("sfumato.cli.law_command.console.out", fail)
    monkeypatch.setattr("sfumato.cli.law_command.console.print_json", fail)
    message = refused("law", "grr", "--epsilon", "1", "--domain", "4")
    assert len(message.split()) >= 2
    assert "None is" not in message


# ---- Ctrl-C ------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", [0, 1, 10, 60, 150, 300, 450])
def test_ctrl_c_while_it_starts_ends_it_without_a_traceback(after: int) -> None:
    """Interrupt it after so many imports, which Python itself counts out on stderr."""
    command = [sys.executable, "-X", "importtime", "-m", "sfumato", "check", "grr"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:  # noqa: S603
        assert process.stderr is not None
        lines = []
        left = None
        for line in process.stderr:
            lines.append(line)
            if left is None and line.split("|")[-1].strip() == "sfumato.cli":
                left = after
            elif left is not None:
                left -= 1
            if left == 0:
                process.send_signal(signal.SIGINT)
        assert left is not None
        code = process.wait(60)
    said = [line for line in lines if not line.startswith("import time:")]
    assert code == 130 or (code == 0 and left > 0)  # it has not been interrupted
    assert said in ([], ["sfumato: Stopped; nothing was left half-written.\n"])


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


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["law"], "sfumato law"),
        (["compare", "--domain", "4"], "sfumato compare"),
        (["nonsense"], "sfumato"),
        (["task", "nonsense"], "sfumato task"),
        (["device", "log"], "sfumato device log"),
        (["law", "grr", "--nonsense"], "sfumato law"),
    ],
)
def test_a_call_that_is_not_complete_is_told_where_to_read_on(words: list[str], where: str) -> None:
    assert refused(*words).endswith(f"; `{where} --help` says what there is.")


def test_a_short_option_is_named_by_its_long_form() -> None:
    assert refused("check", "--jobs", "0") == "--jobs is '0'; 1 or more is expected."
