from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sfumato.audit import calls_of, function_at
from sfumato.audit.catalogued import boxes_named, mechanism_box
from sfumato.errors import ConfigurationError, InputError
from sfumato.mechanisms import GRR
from sfumato.randomness import seeded

SEEN: list[Any] = []


def value_alone(value: int) -> int:
    SEEN.append(None)
    return value


def with_rng(value: int, rng: Any) -> int:
    SEEN.append(rng)
    return value


def with_second(value: int, coins: Any) -> int:
    SEEN.append(coins)
    return value


def with_default_rng(value: int, rng: Any = None) -> int:
    SEEN.append(rng)
    return value


def with_another_default(value: int, base: int = 3) -> int:
    SEEN.append(None if base == 3 else base)
    return value


@pytest.mark.parametrize(
    ("function", "kind"),
    [
        (value_alone, type(None)),
        (with_another_default, type(None)),
        (with_rng, np.random.Generator),
        (with_second, np.random.Generator),
        (with_default_rng, np.random.Generator),
    ],
)
def test_a_function_gets_the_value_and_a_generator_if_it_wants_one(
    function: Callable[..., Any], kind: type
) -> None:
    SEEN.clear()
    calls_of(function)(5, 3)
    assert [type(seen) for seen in SEEN] == [kind] * 3
    assert len(calls_of(str.upper)("a", 3)) == 3


def three(value: int, rng: Any, more: int) -> int:
    return int(value + rng.integers(more))


def named_only(value: int, *, scale: float) -> float:
    return value * scale


async def later(value: int) -> int:
    return value


def one_by_one(value: int) -> Iterator[int]:
    yield value


def fails(value: int) -> int:
    if value == 2:
        raise KeyError(value)
    return value


REFUSED: list[tuple[Any, str]] = [
    (three, "three needs value, rng, more; (value) or (value, rng) is expected."),
    (named_only, "named_only needs value, scale; (value) or (value, rng) is expected."),
    (lambda: 1, "<lambda> takes no value; (value) or (value, rng) is expected."),
    (later, "later is asynchronous or a generator; a plain function is expected."),
    (one_by_one, "one_by_one is asynchronous or a generator; a plain function is expected."),
    (7, "7 is of the type int; a function is expected."),
]


@pytest.mark.parametrize(("function", "sentence"), REFUSED)
def test_functions_that_cannot_be_called(function: Any, sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        calls_of(function)
    assert str(refusal.value) == sentence


def test_a_function_that_raises_is_told_with_the_value() -> None:
    with pytest.raises(InputError) as refusal:
        calls_of(fails)(2, 5)
    assert str(refusal.value) == (
        "fails raised KeyError (2) for the value 2; an output for every value is expected."
    )


def test_a_function_that_returns_nothing_is_refused_and_a_silent_one_is_not() -> None:
    draw = calls_of(lambda _: None)
    draw(1, 600)
    with pytest.raises(InputError, match=r"returned nothing 1200 times; an output is expected\.$"):
        draw(0, 600)
    rare = calls_of(lambda value: value)
    rare("spoken", 1)
    rare(None, 5_000)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module that can be imported, and one that cannot."""
    (tmp_path / "mine_to_audit.py").write_text(
        "class Own:\n    @staticmethod\n    def f(v): return v"
    )
    (tmp_path / "broken_to_audit.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine_to_audit", raising=False)
    return "mine_to_audit"


@pytest.mark.usefixtures("package")
@pytest.mark.parametrize(
    ("place", "sentence"),
    [
        ("mine_to_audit", "package:function is expected."),
        ("mine_to_audit:Own.g", "mine_to_audit has no Own.g."),
        (
            "nowhere.at_all:f",
            "nowhere.at_all cannot be imported (ModuleNotFoundError: No module named 'nowhere').",
        ),
        (
            "broken_to_audit:f",
            "broken_to_audit cannot be imported (ZeroDivisionError: division by zero).",
        ),
    ],
)
def test_places_without_a_function(place: str, sentence: str) -> None:
    assert function_at("mine_to_audit:Own.f")(3) == 3
    with pytest.raises(InputError) as refusal:
        function_at(place)
    assert str(refusal.value) == f"module is {place!r}; {sentence}"


def test_values_that_a_mechanism_does_not_take() -> None:
    with pytest.raises(InputError, match=r"values\[1\] is 9"):
        mechanism_box(GRR(1.0, 3), seeded(1), (0, 9))


def test_streams_are_compared_within_what_they_promise() -> None:
    for box in boxes_named("window", seeded(1)):
        assert len({values[-1] for values in box.values}) == 1  # beyond a window that starts first
        assert len(set(box.values)) == len(box.values) > 1
    with pytest.raises(ConfigurationError, match="weave, window is expected"):
        boxes_named("magic", seeded(1))
