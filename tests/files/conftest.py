"""A file of amounts for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.files.following import VALUES


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "amounts"
    path.write_text("".join(f"{value}\n" for value in VALUES))
    return path
