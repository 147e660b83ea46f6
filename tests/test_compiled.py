"""Loops that are compiled late, or not at all."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from tests.fitting import python

from sfumato import compiled as module
from sfumato.compiled import available, compiled

LOOP = """
import sys
from sfumato.compiled import available, compiled
{before}
@compiled
def total(n):
    found = 0
    for number in range(n):
        found += number
    return found
assert "numba" not in sys.modules
print(total(10), available())
"""
COUNT = """
import sys
import numpy as np
from sfumato.mechanisms.sparse.hashed import hash_family
hash_family.WORTH_COMPILING = 0
seeds = np.arange(50, dtype=np.uint64)
print(hash_family.StretchedHash(9, 5).counts(9, seeds, [np.zeros(50, dtype=np.uint8)]).tolist())
"""


def test_numba_is_asked_for_when_a_loop_first_runs(tmp_path: Path) -> None:
    script = tmp_path / "loop.py"
    script.write_text(LOOP.format(before=""))
    assert python(f"import runpy; runpy.run_path({str(script)!r})").split() == ["45", "True"]


@pytest.mark.parametrize(
    "before", ["sys.modules['numba'] = None", "import os; os.environ['NUMBA_DISABLE_JIT'] = '1'"]
)
def test_without_numba_a_loop_runs_as_it_is(before: str, tmp_path: Path) -> None:
    script = tmp_path / "loop.py"
    script.write_text(LOOP.format(before=before).replace('"numba" not in', '"nothing" not in'))
    assert python(f"import runpy; runpy.run_path({str(script)!r})").split() == ["45", "False"]


def test_counts_are_the_same_with_and_without_numba() -> None:
    absent = "import sys; sys.modules['numba'] = None"
    assert python(COUNT) == python(absent + COUNT)


def test_counts_are_the_same_where_nothing_can_be_written(tmp_path: Path) -> None:
    taken = tmp_path / "a file, not a folder"
    taken.touch()
    nowhere = f"import os; os.environ['NUMBA_CACHE_DIR'] = {str(taken)!r}\n"
    assert python(nowhere + COUNT) == python(COUNT)


def test_where_nothing_can_be_kept_a_loop_is_compiled_in_each_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    class Numba:
        @staticmethod
        def njit(*, nogil: bool, cache: bool = False) -> object:
            asked.append((nogil, cache))
            if cache:
                raise RuntimeError("no locator available")
            return lambda function: lambda n: ("quick", function(n))

    monkeypatch.setattr(module, "_numba", lambda: Numba)
    monkeypatch.delenv("NUMBA_DISABLE_JIT", raising=False)
    assert available()

    @compiled
    def twice(n: int) -> object:
        return 2 * n

    assert (twice(3), twice(4)) == (("quick", 6), ("quick", 8))
    assert asked == [(True, True), (True, False)]
    assert twice.__name__ == "twice"
    assert sys.modules[twice.__module__] is sys.modules[__name__]
