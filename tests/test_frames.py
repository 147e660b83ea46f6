"""Columns of every library are read; a bad cell is refused with its place and value."""

from __future__ import annotations

import array
import datetime as dt
from collections import deque
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from tests.fitting import python

from sfumato import GRR, OLH, OUE, seeded
from sfumato.errors import InputError
from sfumato.frames import column, table
from sfumato.mechanisms.frequency import FrequencyOracle

NUMBERS: list[Any] = [
    [2, 0, 1],
    (2, 0, 1),
    array.array("b", [2, 0, 1]),
    deque([2, 0, 1]),
    [np.int64(2), 0, np.uint8(1)],
    np.array([2, 0, 1], dtype=np.uint16),
    np.array([9, 2, 9, 0, 9, 1])[1::2],
    np.ma.array([2, 0, 1], mask=False),
    pd.Series([2, 0, 1], index=[5, 5, 7]),
    pd.Series([2, 0, 1], dtype="Int64"),
    pd.Series([2, 0, 1], dtype="UInt8"),
    pd.Series([2, 0, 1], dtype="int64[pyarrow]"),
    pd.Series([2, 0, 1], dtype="category"),
    pd.Series([2, 0, 1], dtype=object),
    pd.Index([2, 0, 1]),
    pd.array([2, 0, 1]),
    pd.DataFrame({"x": [2, 0, 1]}),
    pl.Series([2, 0, 1]),
    pl.Series([2, 0, 1], dtype=pl.UInt8),
    pl.DataFrame({"x": [2, 0, 1]}),
    pa.array([2, 0, 1]),
    pa.array([2, 0, 1], pa.uint8()),
    pa.array([9, 2, 0, 1])[1:],
    pa.array([2, 0, 1]).dictionary_encode(),
    pa.chunked_array([[2], [], [0, 1]]),
    pa.table({"x": [2, 0, 1]}),
    pa.record_batch({"x": [2, 0, 1]}),
]

WORDS: list[Any] = [
    ["b", "a"],
    ("b", "a"),
    np.array(["b", "a"]),
    np.array(["b", "a"], dtype=object),
    pd.Series(["b", "a"]),
    pd.Series(["b", "a"], dtype="string"),
    pd.Series(["b", "a"], dtype="category"),
    pd.Series(["b", "a"], dtype=object),
    pd.Categorical(["b", "a"]),
    pl.Series(["b", "a"]),
    pl.Series(["b", "a"], dtype=pl.Categorical),
    pl.Series(["b", "a"], dtype=pl.Enum(["a", "b"])),
    pa.array(["b", "a"]),
    pa.array(["b", "a"], pa.large_string()),
    pa.array(["b", "a"], pa.string_view()),
    pa.array(["b", "a"]).dictionary_encode(),
    pa.chunked_array([["b"], ["a"]]),
    pa.chunked_array([pa.array(["b", "a"]).dictionary_encode()]),
    pa.table({"x": ["b", "a"]}),
]


def name(value: Any) -> str:
    dtype = getattr(value, "dtype", getattr(value, "type", ""))
    return f"{type(value).__module__}.{type(value).__name__} {dtype}"


@pytest.mark.parametrize("values", NUMBERS, ids=name)
def test_numbers_of_every_library_are_a_column(values: Any) -> None:
    found = column(values)
    assert found.ndim == 1
    assert found.tolist() == [2, 0, 1]


@pytest.mark.parametrize("values", WORDS, ids=name)
def test_words_of_every_library_are_a_column(values: Any) -> None:
    assert column(values).tolist() == ["b", "a"]


def test_a_range_is_a_column() -> None:
    assert column(range(3)).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "value", [7, 2.5, True, "word", b"bytes", np.int8(7), np.float32(2.5), np.str_("word"), 10**30]
)
def test_a_scalar_is_a_column_of_one(value: Any) -> None:
    assert column(value).tolist() == [value]
    assert column(np.array(value)).tolist() == [value]


def test_an_array_is_not_copied() -> None:
    values = np.arange(5)
    assert column(values) is values


MISSING: list[tuple[Any, int]] = [
    ([1, None], 1),
    (["a", None], 1),
    (None, 0),
    ([1, pd.NA], 1),
    ([pd.NaT, 1], 0),
    (np.array(["a", float("nan")], dtype=object), 1),
    (np.ma.array([1, 2, 3], mask=[False, False, True]), 2),
    (pd.Series([1, None], dtype="Int64"), 1),
    (pd.Series([1.5, float("nan")]), 1),
    (pd.Series(["a", None]), 1),
    (pd.Series(["a", None], dtype="category"), 1),
    (pd.Series([None, True], dtype="boolean"), 0),
    (pd.DataFrame({"x": [1.0, None]}), 1),
    (pl.Series([1, None]), 1),
    (pl.Series(["a", None]), 1),
    (pa.array([1, None]), 1),
    (pa.array([None, "a"]), 0),
    (pa.array(["a", None]).dictionary_encode(), 1),
    (pa.chunked_array([[1], [2, None]]), 2),
    (pa.table({"x": [1, None]}), 1),
]


@pytest.mark.parametrize(("values", "place"), MISSING, ids=[name(v) for v, _ in MISSING])
def test_a_missing_value_is_named_by_its_place(values: Any, place: int) -> None:
    with pytest.raises(InputError) as caught:
        column(values)
    assert str(caught.value) == f"values[{place}] is missing; drop or fill it first."


def test_many_missing_values_are_counted() -> None:
    with pytest.raises(InputError) as caught:
        column(pl.Series([1, None, None, None]), what="pets")
    assert str(caught.value) == "pets[1] and 2 more are missing; drop or fill them first."


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([1, float("nan")], "values[1] is nan; every value must be a finite number."),
        ([float("inf"), 1], "values[0] is inf; every value must be a finite number."),
        (np.array([1, -np.inf], np.float32), "values[1] is -inf; every value must be a finite"),
        (pl.Series([1.0, float("nan")]), "values[1] is nan; every value must be a finite number."),
        (pa.array([float("inf")]), "values[0] is inf; every value must be a finite number."),
        ([], "values is empty; at least one value is expected."),
        (pd.Series([], dtype="int64"), "values is empty; at least one value is expected."),
        (pa.chunked_array([], pa.int64()), "values is empty; at least one value is expected."),
        (
            np.ones((2, 3)),
            "values has shape (2, 3); one column, a flat list of values, is expected.",
        ),
        ([[1, 2]], "values has shape (1, 2); one column, a flat list of values, is expected."),
        ([1, [2, 3]], "values[1] is [2, 3]; one column, a flat list of values, is expected."),
        ([[1], [2, 3]], "values[0] is [1]; one column, a flat list of values, is expected."),
        (pd.DataFrame({"a": [1], "b": [2]}), "values is a table with columns a, b; one column is"),
        (pl.DataFrame({"a": [1], "b": [2]}), "values is a table with columns a, b; one column is"),
        (pa.table({"a": [1], "b": [2]}), "values is a table with columns a, b; one column is exp"),
        (pd.DataFrame(), "values is a table with columns none; one column is expected."),
        (pl.LazyFrame({"a": [1]}), "values is a LazyFrame; collect it first."),
        (object(), "values has type object; a list, array, series or column is expected."),
        ({"a": 1}, "values has type dict; a list, array, series or column is expected."),
        ({1, 2}, "values has type set; a list, array, series or column is expected."),
        ((x for x in (1, 2)), "values has type generator; a list, array, series or column is exp"),
    ],
)
def test_what_is_no_column_is_refused_in_one_sentence(values: Any, says: str) -> None:
    with pytest.raises(InputError) as caught:
        column(values)
    assert str(caught.value).startswith(says)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize(
    "values", [[1, "1"], [1, True], [b"a", "a"], [Decimal(1), "x"], [dt.date(2024, 1, 1), 1]]
)
def test_mixed_types_stay_what_they_were(values: list[Any]) -> None:
    assert column(values).tolist() == values
    assert [type(value) for value in column(values)] == [type(value) for value in values]


@pytest.mark.parametrize("kind", [GRR, OUE, OLH])
def test_a_column_of_any_library_gives_the_same_reports(kind: type[FrequencyOracle]) -> None:
    expected = kind(1.0, 3).randomize([2, 0, 1], seeded(4)).tobytes()
    for values in NUMBERS:
        assert kind(1.0, 3).randomize(values, seeded(4)).tobytes() == expected
    expected = kind(1.0, ("a", "b")).randomize(["b", "a"], seeded(4)).tobytes()
    for values in WORDS:
        assert kind(1.0, ("a", "b")).randomize(values, seeded(4)).tobytes() == expected


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_columns_become_a_table_and_come_back(backend: str) -> None:
    made = table({"x": [2, 0, 1]}, backend)
    assert type(made).__module__.split(".")[0] == backend
    assert column(made).tolist() == [2, 0, 1]


def test_an_unknown_library_is_refused() -> None:
    with pytest.raises(InputError, match="backend is 'excel'; pandas, polars or pyarrow is"):
        table({"x": [1]}, "excel")


@pytest.mark.parametrize(
    ("absent", "package"), [("narwhals", "'sfumato[frames]'"), ("polars", "polars")]
)
def test_a_library_that_is_not_installed_is_named(absent: str, package: str) -> None:
    code = """
import sys
sys.modules[sys.argv[1]] = None
from sfumato.errors import MissingExtra
from sfumato.frames import table
try:
    table({"x": [1]}, "polars")
except MissingExtra as error:
    print(error)
"""
    says = f"{absent} is not installed; `pip install {package}` adds it."
    assert python(code, absent).strip() == says
