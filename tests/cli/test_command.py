"""What all commands share: options from a dataclass, and what becomes of a result."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer
from click.testing import CliRunner
from tests.cli.running import COMMAND, run

from sfumato.cli.command import Count, Parts, Picture, Result, TableFile, Target, add, add_group
from sfumato.cli.failures import Commands
from sfumato.datasets.named_streams import NAMES
from sfumato.files.dialects import USUAL, Dialect
from sfumato.streams.published import METHODS
from sfumato.streams.published.smoothers import SMOOTHERS


@dataclass(frozen=True)
class MixOptions:
    """Paints to mix."""

    name: Annotated[str, typer.Argument()]
    """What it is called."""
    parts: Count = 2
    """How many of each."""
    color: tuple[str, ...] = ()
    """A color."""
    plot: Picture | None = None
    """Draw it."""
    output: TableFile | None = None
    """Write it."""
    certificate: Annotated[Path, Target((".json",))] | None = None
    """Sign it."""
    force: bool = False
    dialect: Dialect = USUAL


class Figure:
    """Something that can be saved as a picture."""

    def savefig(self, file: Any, *, format: str) -> None:  # noqa: A002 - as matplotlib calls it
        file.write(f"a picture as {format}".encode())


mixed: list[MixOptions] = []


def mix(asked: MixOptions) -> Result:
    """Mix paints.

    Example:  sfumato mix ochre
    """
    mixed.append(asked)
    return Result(
        {"name": asked.name},
        _words(asked),
        picture=Figure,  # type: ignore[arg-type]
        columns={"name": [asked.name]},
        next_command="sfumato mix umber\nsfumato mix red",
        exit_code=1 if asked.name == "mud" else 0,
    )


def _words(asked: MixOptions) -> Parts:
    assert "--json" not in asked.name
    yield f"[bold]{asked.name}[/bold]"


def empty() -> Result:
    """Show an empty palette."""
    return Result([], ["Nothing."])


def _call(*words: object) -> Any:
    mixed.clear()
    app = typer.Typer(cls=Commands)
    add(app, mix)
    add_group(app, "palette", empty, mix)
    runner = CliRunner(env={"NO_COLOR": "1", "TERM": "dumb", "FORCE_COLOR": None})
    command: Any = typer.main.get_command(app)
    return runner.invoke(command, [str(word) for word in words], catch_exceptions=False)


def test_options_are_the_fields_of_the_dataclass() -> None:
    assert (
        _call("mix", "ochre", "--color", "red", "--color", "blue", "--missing", "NA").exit_code == 0
    )
    assert mixed == [MixOptions("ochre", 2, ("red", "blue"), dialect=Dialect(missing=("NA",)))]
    assert "--parts is '0'; 1 or more is expected." in _call("mix", "ochre", "--parts", 0).stderr


def test_help_is_what_the_docstrings_say() -> None:
    text = " ".join(_call("mix", "--help").stdout.replace("│", "").split())
    for words in ("Mix paints.", "How many of each.", "[default: 2]", "A color. May be repeated."):
        assert words in text
    assert "Replace files that are there already." in text
    assert re.search(r"─ How a CSV file is written ─.*--separator", text)


def test_people_read_text_and_machines_read_json_alone() -> None:
    result = _call("mix", "ochre")
    assert result.stdout == (
        "[bold]ochre[/bold]\n\nNext:  sfumato mix umber\n       sfumato mix red\n"
    )
    result = _call("mix", "ochre", "--json")
    assert (json.loads(result.stdout), result.stderr) == ({"name": "ochre"}, "")


def test_pictures_and_tables_are_written_and_named(tmp_path: Path) -> None:
    picture, table = tmp_path / "mix.svg", tmp_path / "mix.csv"
    result = _call("mix", "ochre", "--plot", picture, "-o", table)
    assert f"Written: {table}\nWritten: {picture}\n" in result.stdout
    assert picture.read_text() == "a picture as svg"
    assert "ochre" in table.read_text()


@pytest.mark.parametrize(
    ("option", "name"), [("--plot", "a.png"), ("--output", "a.csv"), ("--certificate", "a.json")]
)
def test_targets_are_refused_before_anything_is_done(
    option: str, name: str, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_text("kept")
    result = _call("mix", "ochre", option, path)
    assert result.stderr == f"sfumato: {path} exists; --force replaces it.\n"
    assert (result.exit_code, mixed, path.read_text()) == (2, [], "kept")
    assert "is expected" in _call("mix", "ochre", option, tmp_path / "a.doc").stderr
    assert mixed == []
    assert _call("mix", "ochre", option, path, "--force").exit_code == 0
    assert mixed


def test_a_result_decides_the_exit_code() -> None:
    assert [_call("mix", name).exit_code for name in ("ochre", "mud")] == [0, 1]


def test_a_group_runs_its_own_command_only_if_no_other_is_named() -> None:
    assert _call("palette").stdout == "Nothing.\n"
    assert json.loads(_call("palette", "--json").stdout) == []
    assert _call("palette", "mix", "ochre").stdout.startswith("[bold]ochre")


# ---- of all commands that there are ------------------------------------------------------------


def _commands(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        yield " ".join((*before, name)), command
        yield from _commands(command, (*before, name)) if hasattr(command, "commands") else ()


ALL = dict(_commands(COMMAND))
RUN = [name for name, command in ALL.items() if not getattr(command, "no_args_is_help", False)]


@pytest.mark.parametrize("name", RUN)
def test_every_command_has_an_example_and_every_option_its_help(name: str) -> None:
    shown = [parameter for parameter in ALL[name].params if not parameter.hidden]
    assert [parameter.name for parameter in shown if not parameter.help] == []
    assert "as_json" in {parameter.name for parameter in shown}
    assert "Example:  sfumato " in ALL[name].help


@pytest.mark.parametrize(
    ("command", "names"), [("compare", NAMES), ("release", METHODS), ("release", SMOOTHERS)]
)
def test_help_names_all_that_can_be_chosen(command: str, names: Any) -> None:
    words = set(re.findall(r"[\w-]+", run(command, "--help").stdout))
    assert set(names) <= words
