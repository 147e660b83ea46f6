"""One meaning per name: no class and no module of the package is called like another one."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import sfumato

ROOT = Path(sfumato.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


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
