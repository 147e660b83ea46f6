"""One meaning per name, and rooms that one head holds: no long files, and no long functions."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import sfumato

ROOT = Path(sfumato.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
TESTS = sorted(Path(__file__).parent.rglob("*.py"))


def _classes(source: str) -> list[str]:
    return [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ClassDef)]


def _twice(names: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: places for name, places in names.items() if len(places) > 1}


def test_no_class_is_called_like_another() -> None:
    places = defaultdict(list)
    for file in FILES:
        for name in _classes(file.read_text("utf-8")):
            places[name].append(str(file.relative_to(ROOT)))
    assert len(places) > 100
    assert not _twice(places)


def test_no_module_is_called_like_another() -> None:
    places = defaultdict(list)
    for file in FILES:
        if file.stem not in ("__init__", "__main__"):
            places[file.stem].append(str(file.relative_to(ROOT)))
    assert len(places) > 100
    assert not _twice(places)


VAGUE = {"found", "given", "told", "said", "made"}


def _assigned(source: str) -> set[str]:
    """Return the local names that functions assign."""
    tree = ast.walk(ast.parse(source))
    functions = [one for one in tree if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return {
        node.id
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def test_a_result_is_called_by_what_it_is() -> None:
    vague = {
        str(file.relative_to(ROOT)): VAGUE & _assigned(file.read_text("utf-8")) for file in FILES
    }
    assert not {file: names for file, names in vague.items() if names}
    assert VAGUE & _assigned("def answer():\n    found = 1") == {"found"}


LONGEST_FILE, LONGEST_FUNCTION = 400, 60


def test_no_file_and_no_function_is_longer_than_one_head_holds() -> None:
    long = [
        (file.name, file.stem, size)
        for file in TESTS
        if (size := file.read_text("utf-8").count("\n")) > LONGEST_FILE
    ]
    assert len(TESTS) > 100
    assert not long
    for file in FILES:
        source = file.read_text("utf-8")
        sizes = [(source.count("\n"), LONGEST_FILE, file.stem)]
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                lines = (node.end_lineno or node.lineno) - node.lineno + 1
                sizes.append((lines, LONGEST_FUNCTION, node.name))
        long += [(file.name, name, size) for size, most, name in sizes if size > most]
    assert not long
