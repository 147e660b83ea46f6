"""The reference has every public name with an example, and is what the code says."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.reference import GROUPS, example_of, written

import sfumato

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"
NAMES = [name for names in GROUPS.values() for name in names]


def test_every_public_name_stands_in_one_group() -> None:
    assert sorted(NAMES) == sorted(sfumato.__all__)


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_has_an_example(name: str) -> None:
    example = example_of(getattr(sfumato, name))
    assert ">>> " in example
    assert "Parameters" not in example


def test_the_page_is_what_the_code_says() -> None:
    assert PAGE.read_text("utf-8") == written(), "python -m tools.reference docs/reference.md"
