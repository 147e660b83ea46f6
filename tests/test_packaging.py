"""Whoever receives the source distribution can run its tests."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
INCLUDED = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]
ALWAYS = {"pyproject.toml", "README.md", "LICENSE"}
"""What every source distribution has."""


def _own_folders(path: Path) -> set[str]:
    """Return the folders beside ``tests`` that a test imports modules of."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return {name.partition(".")[0] for name in names if (ROOT / name.partition(".")[0]).is_dir()}


def _named_files(text: str) -> set[str]:
    """Return the files and folders at the top of the project that a text names."""
    return {name for name in re.findall(r"[\w.-]+", text) if (ROOT / name).exists()}


def test_the_source_distribution_has_all_that_its_tests_and_its_script_need() -> None:
    included = {name.strip("/") for name in INCLUDED["targets"]["sdist"]["include"]} | ALWAYS
    assert all((ROOT / name).exists() for name in included)
    tests = [*(ROOT / "tests").rglob("*.py")]
    imported = {name for path in tests for name in _own_folders(path)}
    assert {"tests", "benchmarks"} <= imported <= included
    needed = {"constraints.txt", "pyproject.toml"} & _named_files((ROOT / "run").read_text())
    assert needed == {"constraints.txt", "pyproject.toml"}
    assert needed | {"run", "conftest.py"} <= included


def test_the_packaged_description_has_no_link_to_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever reads it on a package index has no files beside it."""
    interface: Any = ModuleType("hatchling.metadata.plugin.interface")
    interface.MetadataHookInterface = object  # what builds packages need not be installed here
    monkeypatch.setitem(sys.modules, interface.__name__, interface)
    spec = spec_from_file_location("description", ROOT / "tools" / "description.py")
    assert spec is not None
    assert spec.loader is not None
    hook: Any = module_from_spec(spec)
    spec.loader.exec_module(hook)
    readme = (ROOT / "README.md").read_text("utf-8")
    target = re.compile(r"\]\(([^)]*)\)")
    assert any(not link.startswith("https://") for link in target.findall(readme))
    files = (link.partition("#")[0] for link in target.findall(readme) if "://" not in link)
    assert not [file for file in files if not (ROOT / file).exists()]
    text = hook.described(readme)
    assert target.findall(text)
    assert all(link.startswith("https://") for link in target.findall(text))
    assert "operators" in text
    assert "![" not in text
