from __future__ import annotations

from pathlib import Path

import pytest
from tests.cli.running import PETS, answer


@pytest.fixture
def pets(tmp_path: Path) -> Path:
    """A CSV file of 3,000 people: half have a cat, a third a dog."""
    path = tmp_path / "pets.csv"
    kinds = ["cat", "cat", "cat", "dog", "dog", "fish"]
    lines = [f"{index},{kinds[index % 6]},{index % 50}" for index in range(3000)]
    path.write_text("\n".join(["person,pet,age", *lines]) + "\n")
    return path


@pytest.fixture
def reports(pets: Path, tmp_path: Path) -> Path:
    """The report file of these people."""
    path = tmp_path / "reports.parquet"
    answer("randomize", pets, "--column", "pet", *PETS, "-o", path)
    return path
