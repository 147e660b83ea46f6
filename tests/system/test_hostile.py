"""Every input at every entrance is accepted, or refused with one sentence.

All of it, with a count by door and outcome:  ./run test --slow -n 0 tests/system/test_hostile.py
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.system.hostile import judging
from tests.system.hostile.doors import DOORS
from tests.system.hostile.judging import Door, Seen, through

from sfumato.errors import InputError

FEW, MANY = 4_000, 200_000
GROWTH = 32.0
"""Megabytes that a process may have more after the last input than after a third of them."""
WHOLE = sum(door.share for door in DOORS)


def _count(kind: type[Door], total: int) -> int:
    return -(-total * kind.share // WHOLE)


def _through(kind: type[Door], folder: Path, total: int) -> Seen:
    door = kind(folder)
    try:
        return through(door, _count(kind, total))
    finally:
        door.close()


@pytest.mark.parametrize("kind", DOORS, ids=lambda kind: kind.name)
def test_hostile_inputs_are_taken_or_refused(kind: type[Door], tmp_path: Path) -> None:
    seen = _through(kind, tmp_path, FEW)
    assert not seen.faults, "\n".join(seen.faults[:3])
    assert len(seen.outcomes) > 1, f"every input was {list(seen.outcomes)}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", DOORS, ids=lambda kind: kind.name)
def test_all_hostile_inputs_are_taken_or_refused(
    kind: type[Door], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = _through(kind, tmp_path, MANY)
    with capsys.disabled():
        print(f"\n{kind.name:<18}{seen}", end="")  # noqa: T201 -- the count is asked for
    assert not seen.faults, "\n".join(seen.faults[:3])
    assert seen.after < seen.before + GROWTH


class _Broken(Door, name="broken", share=1):
    """A door that does with every input what it should not."""

    doing: Callable[[], Any]

    def make(self, rng: Random) -> int:
        return rng.randrange(9)

    def enter(self, item: int) -> str:
        del item
        self.doing()
        return "taken"


def _refuses(said: str) -> None:
    raise InputError(said)


def _goes_on() -> None:
    while True:
        pass


@pytest.mark.parametrize(
    "doing", [lambda: int("x"), lambda: _refuses("No."), lambda: _refuses("a\nb" * 9), _goes_on]
)
def test_what_breaks_the_rule_is_seen(
    tmp_path: Path, doing: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "PATIENCE", 0.05)
    door = _Broken(tmp_path)
    door.doing = doing
    assert len(through(door, 2).faults) == 2


def test_the_same_seed_makes_the_same_inputs(tmp_path: Path) -> None:
    kind = DOORS[0]
    first, again, other = (
        [kind(tmp_path).make(Random(seed)) for _ in range(3)]  # noqa: S311
        for seed in (1, 1, 2)
    )
    assert first == again != other
