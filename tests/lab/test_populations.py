from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sfumato.errors import InputError
from sfumato.lab import populations
from sfumato.lab.windows import run
from sfumato.randomness import seeded
from sfumato.streams.window import Window

NUMBERS = Window(3, 1.0, 500, interval=(0, 10), method="lpu")
ITEMS = Window(3, 1.0, 500, domain=("home", "work"), method="lpu")


def table(*rows: tuple[Any, Any, Any]) -> dict[str, Any]:
    names = ("device", "period", "value")
    return {name: np.array(cells, dtype=object) for name, cells in zip(names, zip(*rows))}  # noqa: B905


@pytest.mark.parametrize("protocol", [NUMBERS, ITEMS, Window(3, 1.0, 500, domain=7)])
def test_made_up_populations_can_be_asked(protocol: Window) -> None:
    people = populations.known("synthetic", protocol, 6, 500, 1)
    done = run(protocol, people, seeded(1))
    assert done.values.shape == done.truth.shape == (6, protocol.width)
    assert done.devices == 500


def test_curves_of_the_literature_are_of_two_items() -> None:
    assert populations.known("sin", ITEMS, 5, None, 1).devices == 500
    with pytest.raises(InputError, match=r"the task has 1 item\(s\); the curve 'sin' is of two"):
        populations.known("sin", NUMBERS, 5, None, 1)
    with pytest.raises(
        InputError, match="data is 'moon'; synthetic, flights, lns, sin, log, steps or"
    ):
        populations.known("moon", ITEMS, 5, None, 1)


def test_planes_are_where_they_are() -> None:
    with pytest.raises(InputError, match="the task has 2 items and 5 periods; the planes have"):
        populations.known("flights", ITEMS, 5, None, 1)


def test_a_table_of_items() -> None:
    people = populations.recorded(
        table(("a", 1, "home"), ("a", 3, "work"), ("b", 1, "work")), ITEMS, 3, None, 1
    )
    assert [people.values(period).tolist() for period in (1, 2, 3)] == [[0, 1], [0, 1], [1, 1]]


def test_an_item_that_is_not_there_is_said() -> None:
    with pytest.raises(InputError, match="'moon'"):
        populations.recorded(table(("a", 1, "moon")), ITEMS, 3, None, 1)


def test_a_table_of_numbers() -> None:
    given = table(("a", 1, 2.5), ("a", 3, 10), ("b", 1, 0))
    people = populations.recorded(given, NUMBERS, 3, None, 1)
    assert [people.values(t).tolist() for t in (1, 2, 3)] == [[2.5, 0], [2.5, 0], [10, 0]]
    assert populations.recorded(given, NUMBERS, 3, 40, 1).values(1).shape == (40,)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ((("a", 1, 11),), r"value is 11 in row 1; a number in \[0, 10\] is expected, or clip"),
        ((("a", 1, "x"),), r"value is 'x' in row 1; a number in \[0, 10\] is expected"),
        ((("a", 4, 1),), r"period is 4 in row 1; a whole number in 1..3 is expected"),
        (
            (("a", 2, 1), ("a", 1, 1)),
            r"device 'a' has period 1 after 2 \(row 2\); a device's periods only go",
        ),
        ((("a", 2, 1),), "device 'a' has no value in period 1"),
    ],
)
def test_numbers_that_cannot_be_are_said(rows: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        populations.recorded(table(*rows), NUMBERS, 3, None, 1)


def test_numbers_outside_are_cut_if_the_task_says_so() -> None:
    cut = Window(3, 1.0, 500, interval=(0, 10), clip=True, method="lpu")
    people = populations.recorded(table(("a", 1, 11)), cut, 1, None, 1)
    assert people.values(1).tolist() == [10.0]
