"""Every setting by flag, variable and file alike; what is in force can be printed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import COMMAND, answer, refused, run

FILE = """\
[serve]
port = 9002
trusted-proxy = ["10.0.0.0/8"]

[shuffle.serve]
collector = "https://collector.example"
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.toml"
    path.write_text(FILE)
    return path


def of(settings: Any, command: str, name: str) -> tuple[Any, str]:
    """Return the value of a setting, and where it comes from."""
    (row,) = (each for each in settings["settings"][command] if each["setting"] == name)
    return row["value"], row["from"]


def test_a_variable_counts_before_the_file_and_the_file_before_the_default(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert of(answer("config"), "serve", "port") == (8080, "default")
    settings = answer("--config", file, "config")
    assert of(settings, "serve", "port") == (9002, "file")
    assert of(settings, "serve", "trusted_proxy") == (["10.0.0.0/8"], "file")
    assert of(settings, "shuffle serve", "collector") == ("https://collector.example", "file")
    monkeypatch.setenv("SFUMATO_CONFIG", str(file))
    monkeypatch.setenv("SFUMATO_SERVE_PORT", "9001")
    settings = answer("config", "serve")
    assert of(settings, "serve", "port") == (9001, "variable")
    assert of(settings, "serve", "rate") == (100.0, "default")
    assert set(settings["settings"]) == {"serve"}


def test_all_three_ways_reach_the_command(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("[compare]\ndomain = 7\nepsilon = 2.0\n")
    monkeypatch.setenv("SFUMATO_COMPARE_EPSILON", "0.5")
    monkeypatch.setenv("SFUMATO_CONFIG", str(file))
    for words, epsilon in (((), 0.5), (("--epsilon", "1.5"), 1.5)):
        rows = answer("compare", *words)
        assert {(row["domain"], row["epsilon"]) for row in rows} == {(7, epsilon)}


def test_tokens_are_never_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SFUMATO_OPERATOR_TOKEN", "a-token-that-nobody-may-see")
    monkeypatch.delenv("SFUMATO_ANALYST_TOKEN", raising=False)
    assert answer("config")["secrets"]["SFUMATO_OPERATOR_TOKEN"] is True
    said = run("config").stdout
    assert "a-token" not in said
    assert "SFUMATO_SERVE_PORT" in said
    assert [line.split()[1:] for line in said.splitlines() if "ANALYST" in line] == [["not", "set"]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[serve]\nprot = 1\n", "serve.prot is no setting; did you mean 'port'?"),
        ("[sevre]\nport = 1\n", "sevre is no setting; did you mean 'serve'?"),
        ("[shuffle.serve]\nq = 1\n", "shuffle.serve.q is no setting; there are collector, "),
        ("port = 1\n", "port is no setting"),
        ("[serve\n", "is no TOML file: "),
        ("[serve]\nport = 'many'\n", ".toml: serve.port is 'many'; a whole number is expected."),
        ("[serve]\nmost-ids = 0\n", ".toml: serve.most-ids is 0; 1 or more is expected."),
    ],
)
def test_a_wrong_file_is_answered_with_what_is_wrong(file: Path, text: str, words: str) -> None:
    file.write_text(text)
    assert words in refused("--config", file, "config", "serve")


def test_a_wrong_value_is_named_by_where_it_stands(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text("[serve]\nport = 70000\n[shuffle.serve]\nport = 70000\n")
    for command, name in (("serve", "serve.port"), ("shuffle serve", "shuffle.serve.port")):
        words = command.split()
        said = refused("--config", file, *words)
        assert said == f"{file}: {name} is 70000; 65535 or less is expected."
        variable = f"SFUMATO_{command.replace(' ', '_').upper()}_PORT"
        monkeypatch.setenv(variable, "many")
        assert f"{variable} is 'many'; a whole" in refused("--config", file, *words)
        assert "--port is 'few'; a whole" in refused("--config", file, *words, "--port", "few")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("SFUMATO_SERVE_PROT", "SFUMATO_SERVE_PORT"),
        ("SFUMATO_SEVRE_PORT", "SFUMATO_SERVE_PORT"),
        ("SFUMATO_SHUFFLE_SERVE_STROE", "SFUMATO_SHUFFLE_SERVE_STORE"),
        ("SFUMATO_OPERATER_TOKEN", "SFUMATO_OPERATOR_TOKEN"),
    ],
)
def test_a_mistyped_variable_is_refused(
    name: str, meant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    for words in (("config",), ("serve", "--port", 0), ("mechanisms",)):
        assert f"{name} is no variable of sfumato; did you mean {meant}?" in refused(*words)


def test_every_variable_is_known_and_those_of_others_are_left_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [row for group in answer("config")["settings"].values() for row in group]
    others = ("SERVICE_HOST", "SERVE_SERVICE_PORT", "SERVE_PORT_8080_TCP", "IMAGE", "SERVE_X")
    known = {row["variable"]: str(row["value"]) for row in rows if isinstance(row["value"], int)}
    for name in (*known, *(f"SFUMATO_{name}" for name in others)):
        monkeypatch.setenv(name, known.get(name, "tcp://10.0.0.1:1"))
    monkeypatch.setenv("SFUMATO_FORMER_KEY_SECRET", "x" * 30)
    answer("config")


def test_a_file_that_is_not_there_and_a_command_that_is_none(tmp_path: Path) -> None:
    assert "nothing.toml" in refused("--config", tmp_path / "nothing.toml", "config")
    assert "there is no command 'sevre'; there are" in refused("config", "sevre")


def test_commands_are_listed_by_what_they_are_for() -> None:
    said = run("--help").stdout
    jobs = ["Try it", "Ask devices over time", "Ask for answers", "Publish a raw stream"]
    places = [said.index(job) for job in (*jobs, "Ask people once", "Prove and repeat")]
    assert places == sorted(places)
    named = {command.rich_help_panel for command in COMMAND.commands.values()}
    assert None not in named


def test_shells_complete_commands() -> None:
    assert "--show-completion" in run("--help").stdout
