from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from sfumato.errors import ConfigurationError, InputError
from sfumato.simulation.populations import Recorded
from sfumato.simulation.recorded_streams import read_streams
from sfumato.streams.kinds import Attributes, Binary, Category, Items, Values

PLACES = Category(("home", "work", "road"))


def rows(*given: tuple[Any, ...], names: str = "device period value") -> dict[str, list[Any]]:
    return dict(
        zip(names.split(), (list(column) for column in zip(*given, strict=True)), strict=True)
    )


def test_a_device_that_is_away_repeats_its_last_value() -> None:
    table = rows(("a", 1, "home"), ("b", 1, "road"), ("a", 3, "work"))
    expected = [[0, 0, 1, 1], [2, 2, 2, 2]]
    assert read_streams(PLACES, 4, table).tolist() == expected
    assert read_streams(PLACES, 4, pd.DataFrame(table)).tolist() == expected
    assert read_streams(PLACES, 4, pl.DataFrame(table)).tolist() == expected


def test_before_its_first_value_a_device_has_nothing() -> None:
    assert read_streams(Binary(), 3, rows((1, 2, 1))).tolist() == [[0, 1, 1]]
    table = rows((1, 2, "x"), (1, 2, "y"), (1, 3, None), names="device period item")
    assert read_streams(Items(("x", "y")), 3, table).tolist() == [[[0, 0], [1, 1], [0, 0]]]


def test_an_optional_category_may_be_absent() -> None:
    table = rows((1, 2, "a"), (1, 3, None), (1, 4, "b"))
    found = read_streams(Category(("a", "b"), optional=True), 4, table)
    assert found.tolist() == [[-1, 0, -1, 1]]


def test_attributes_have_a_column_each() -> None:
    both = Attributes({"place": ("in", "out"), "app": ("mail", "maps", "music")})
    table = rows((1, 1, "out", "mail"), (1, 2, "in", "music"), names="device period place app")
    assert read_streams(both, 2, table).tolist() == [[[1, 0], [0, 2]]]


@pytest.mark.parametrize(
    ("values", "table", "sentence"),
    [
        (
            PLACES,
            rows(("a", 3, "home"), ("a", 2, "work")),
            r"device 'a' has period 2 after 3 \(row 2\); a device's periods only go forward.",
        ),
        (PLACES, rows(("a", 3, "home"), ("a", 3, "work")), "device 'a' has period 3 again"),
        (PLACES, rows(("a", 1, "mars")), r"device 'a', period 1: .*'mars'"),
        (PLACES, rows(("a", 2, "home")), "device 'a' has no value before period 2; a category is"),
        (Binary(), rows(("a", 1, 2)), "device 'a', period 1: value is 2; 0 or 1 is expected."),
        (Binary(), rows(("a", 5, 1)), "period is 5 in row 1; a whole number in 1..4 is expected."),
        (Binary(), rows(("a", 1.5, 1)), "period is 1.5 in row 1"),
        (Binary(), rows((None, 1, 1)), "device is missing in row 1"),
        (Binary(), {"device": [1], "value": [1]}, "no column 'period'"),
        (Binary(), {"device": [], "period": [], "value": []}, "the table has no rows"),
    ],
)
def test_a_bad_table_is_answered_with_one_sentence(
    values: Values, table: Any, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        read_streams(values, 4, table)
    assert "\n" not in str(caught.value)


def test_recorded_streams_are_taken_once_or_drawn() -> None:
    streams = np.arange(12).reshape(6, 2)
    assert Recorded(streams).streams().tolist() == streams.tolist()
    drawn = Recorded(streams, 50_000, seed=4)
    first, second = (drawn.part(place).streams() for place in range(drawn.parts))
    assert np.array_equal(drawn.streams(), np.concatenate([first, second]))
    assert np.array_equal(drawn.values(2), drawn.streams()[:, 1])
    assert len(drawn.streams()) == 50_000
    shares = np.bincount(first[:, 0] // 2, minlength=6) / len(first)
    assert np.abs(shares - 1 / 6).max() < 0.015
    with pytest.raises(ConfigurationError, match="there are no recorded streams"):
        Recorded(streams[:0])
