"""The cost of an import, and the modules that it must not load."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.fitting import python

HEAVY = {
    *("numba", "scipy", "pandas", "polars", "pyarrow", "narwhals", "matplotlib"),
    *("typer", "click", "rich", "starlette", "uvicorn", "socketserver", "sqlite3"),
}
MODULES = "\nimport sys\nprint(*sys.modules)"
COUNTING = """
from sfumato import GRR, OLH, OUE, CoCo, Collision, secure
for kind in (GRR, OUE, OLH):
    mechanism = kind(1.0, 5)
    mechanism.estimate(mechanism.tally(mechanism.randomize([1, 2], secure()))).interval()
for kind in (Collision, CoCo):
    mechanism = kind(1.0, 40, 3)
    mechanism.estimate(mechanism.tally(mechanism.randomize([{1: -1}] * 500, secure()))).interval()
"""


@pytest.mark.parametrize(
    "code",
    [
        "import sfumato; sfumato.secure()",
        "from sfumato import GRR, Hybrid, Concord",
        "import sfumato as s; [getattr(s, name) for name in {*s.__all__} - {'Device', 'Limits'}]",
        COUNTING,
    ],
)
def test_the_device_half_brings_nothing_heavy_along(code: str) -> None:
    loaded = python(code + MODULES).split()
    assert "sfumato.randomness" in loaded
    assert not {name.split(".")[0] for name in loaded} & HEAVY


def test_the_name_alone_costs_nothing_but_itself() -> None:
    loaded = python("import sfumato" + MODULES).split()
    own = {name for name in loaded if name.startswith("sfumato")}
    assert own == {"sfumato", "sfumato.errors", "sfumato.extras"}
    assert "numpy" not in loaded


def test_one_mechanism_does_not_load_all() -> None:
    loaded = python("from sfumato import GRR" + MODULES).split()
    assert "sfumato.mechanisms.frequency.grr" in loaded
    assert "sfumato.mechanisms.density" not in loaded
    assert "sfumato.mechanisms.sparse" not in loaded


def test_importing_costs_at_most_twice_what_its_foundation_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))  # all compiled, as when installed
    use = "import sfumato; sfumato.secure"
    lines = ["import numpy, cryptography", use, "from sfumato import GRR"]

    def seconds(line: str) -> float:
        start = "import time\nstart = time.process_time()\n"
        return float(python(start + line + "\nprint(time.process_time() - start)"))

    # The first round compiles; the others are taken in turns, and the quickest of each counts.
    rounds = [[seconds(line) for line in lines] for _ in range(8)][1:]
    for _ in range(40):  # no more are needed, unless the machine is very busy
        foundation, *ours = (min(times) for times in zip(*rounds, strict=True))
        if max(ours) <= 2 * foundation:
            return
        rounds.append([seconds(line) for line in lines])
    pytest.fail(f"importing costs {max(ours):.3f} s, its foundation {foundation:.3f} s")
