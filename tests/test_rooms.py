"""Modules that an app can import speak of fields, not of options of the command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import sfumato

SOURCE = Path(sfumato.__file__).parent
ROOMS = sorted(path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "cli")
OPTION = re.compile(r"(?<![\w-])--[a-z]")
COMMAND = re.compile(r"sfumato \w+ --[a-z]+")


def texts(tree: ast.Module) -> Iterator[str]:
    """Yield the texts of a module that can be shown to somebody: all but its docstrings."""
    quoted = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in quoted:
            yield COMMAND.sub("", node.value)  # a whole command can be typed as it is


def test_texts_are_found_wherever_they_stand() -> None:
    tree = ast.parse(
        '"""Like --this."""\nraise ValueError(f"{1} or --that", "sfumato fly --high")\n'
    )
    assert [text for text in texts(tree) if OPTION.search(text)] == [" or --that"]


@pytest.mark.parametrize("room", ROOMS)
def test_no_library_names_an_option_of_the_command_line(room: str) -> None:
    for path in sorted((SOURCE / room).rglob("*.py")):
        named = [text for text in texts(ast.parse(path.read_text())) if OPTION.search(text)]
        assert not named, path
