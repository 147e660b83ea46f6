"""Pages that give reasons name the tests that prove them, and those tests exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

TOP = Path(__file__).parent.parent
PAGES = sorted([*(TOP / "docs/proofs").glob("*.md"), *(TOP / "docs/decisions").glob("*.md")])
NAMED = re.compile(r"`(tests/[\w/]+\.py)?(?:::(\w+))?`")


def named_tests(page: Path) -> list[tuple[str, str]]:
    """Return the file and name of each test on a page; a bare ``::name`` is in the last file."""
    file, names = "", []
    for match in NAMED.finditer(page.read_text()):
        file = match[1] or file
        if match[1] or match[2]:
            names.append((file, match[2] or ""))
    return names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.stem}")
def test_every_test_that_a_page_names_is_there(page: Path) -> None:
    """A proof whose test was renamed or deleted is told here."""
    for file, name in named_tests(page):
        assert (TOP / file).is_file(), file
        functions = {
            node.name
            for node in ast.walk(ast.parse((TOP / file).read_text()))
            if isinstance(node, ast.FunctionDef)
        }
        assert not name or name in functions, f"{file}::{name}"


EVERYWHERE = sorted([*(TOP / "docs").rglob("*.md"), *TOP.glob("*.md")])
FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|pyi|md|toml))`")


@pytest.mark.parametrize("page", EVERYWHERE, ids=lambda page: page.name)
def test_every_file_that_a_page_names_is_there(page: Path) -> None:
    """A page names files from the top of the project, or from the package; moved ones are told."""
    for name in FILE.findall(page.read_text()):
        places = (TOP, TOP / "src", TOP / "src/sfumato")
        assert any((place / name).exists() for place in places), name


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.parent.name == "proofs" and page.stem != "index"]
)
def test_every_proof_names_statement_assumptions_proof_and_tests(page: Path) -> None:
    """A page without a test that could fail is no proof of what the code does."""
    text = page.read_text()
    for heading in ("Statement", "Assumptions", "Proof", "Tests"):
        assert f"\n## {heading}\n" in text
    assert len([name for _, name in named_tests(page) if name]) >= 2
