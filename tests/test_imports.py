"""What importing costs, and what it must not bring along."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

HEAVY = ("numba", "scipy", "pandas", "polars", "pyarrow", "matplotlib", "typer", "rich", "narwhals")


def run(code: str) -> str:
    done = subprocess.run(  # noqa: S603 - this interpreter, on code written here
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    return done.stdout


@pytest.mark.parametrize("line", ["import sfumato", "from sfumato import GRR, Hybrid, Concord"])
def test_the_device_half_brings_nothing_heavy_along(line: str) -> None:
    loaded = run(f"{line}\nimport sys\nprint(*sys.modules)").split()
    assert not {name.split(".")[0] for name in loaded} & set(HEAVY)


def test_one_mechanism_does_not_load_all() -> None:
    loaded = run("from sfumato import GRR\nimport sys\nprint(*sys.modules)").split()
    assert "sfumato.mechanisms.frequency.grr" in loaded
    assert "sfumato.mechanisms.density" not in loaded
    assert "sfumato.mechanisms.sparse" not in loaded


@pytest.mark.parametrize("line", ["import sfumato", "from sfumato import GRR"])
def test_importing_costs_at_most_twice_what_its_foundation_does(line: str) -> None:
    def seconds(code: str) -> float:
        start = time.perf_counter()
        run(code)
        return time.perf_counter() - start

    # Taken in turns, the quickest of many: a busy machine slows both alike.
    pairs = [(seconds("import numpy, cryptography"), seconds(line)) for _ in range(9)]
    foundation, ours = (min(times) for times in zip(*pairs, strict=True))
    assert ours <= 2 * foundation
