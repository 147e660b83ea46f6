from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sfumato.core.domain import Domain
from sfumato.errors import InputError
from sfumato.mechanisms.sparse.data.holdings import Holdings, read_holdings, vectors_of
from sfumato.randomness import seeded

KEYS = Domain(("a", "b", "c"))
ROWS: dict[str, list[Any]] = {
    "who": ["x", "y", "x", "z"],
    "key": ["b", "a", "c", None],
    "value": [0.5, -1.0, 1.0, None],
}


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_tables_of_every_library(kind: Callable[[Any], Any]) -> None:
    held = read_holdings(kind(ROWS), KEYS, "who", "key", "value")
    assert held.people == 3
    assert held.person.tolist() == [0, 1, 0]
    assert held.key.tolist() == [1, 0, 2]
    assert held.value.tolist() == [0.5, -1.0, 1.0]


@pytest.mark.parametrize("kind", [dict, pd.DataFrame, pl.DataFrame, pa.table])
def test_keys_that_are_numbers_may_be_missing(kind: Callable[[Any], Any]) -> None:
    rows = {"who": [7, 8, 7], "key": [2, None, 0]}
    held = read_holdings(kind(rows), Domain(3), "who", "key")
    assert (held.people, held.person.tolist(), held.key.tolist()) == (2, [0, 0], [2, 0])
    with pytest.raises(InputError, match=r"key\[0\] is (2|2.0); the keys are 0, 1"):
        read_holdings(kind(rows), Domain(2), "who", "key")


def test_one_collection_for_each_person() -> None:
    held = read_holdings([{"b": 0.5, "c": 1}, {}, {"a": -1}], KEYS, "who", "key", "value")
    assert held.people == 3
    assert held.person.tolist() == [0, 0, 2]
    sets = read_holdings([["b", "c"], [], ("a",)], KEYS, "who", "key")
    assert sets.key.tolist() == held.key.tolist()
    assert sets.value.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"key": ["b", "a", "d", None]}, "key[2] is 'd'; the keys are 'a', 'b', 'c'."),
        ({"key": ["b", "a", "b", None]}, "person x has the key 'b' twice; once is expected."),
        ({"value": [0.5, "?", 1.0, None]}, "value[1] is '?'; a finite number is expected."),
        ({"value": [0.5, None, 1.0, None]}, "value[1] is None; a finite number is expected."),
        ({"value": [np.inf, 0, 1.0, None]}, "value[0] is inf; a finite number is expected."),
        ({"who": ["x", None, "x", "z"]}, "who[1] is missing; every row says whose it is."),
        ({"key": [["b"], "a", "c", None]}, "who and key must hold one word or number in each row"),
        ({"who": ["x"]}, "the columns have [1, 4] rows; one length is expected."),
    ],
)
def test_bad_rows_get_one_sentence(changed: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        read_holdings(ROWS | changed, KEYS, "who", "key", "value")
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ([{"a": 1}, {"d": 1}], "data[1] names a key that is 'd'; the keys are 'a', 'b', 'c'."),
        ([{"a": 1}, "ab"], "data[1] is 'ab'; a mapping from key to value is expected."),
        ([["a"]], "data[0] is ['a']; a mapping from key to value is expected."),
        ([], "data is empty; at least one person is expected."),
        (7, "data has type int; a table with columns who, key, value is expected."),
        ({"who": [1], "key": ["a"]}, "the table has no column 'value'; it has who, key."),
        ({"who": [], "key": [], "value": []}, "who is empty; at least one person is expected."),
    ],
)
def test_bad_collections_get_one_sentence(data: Any, sentence: str) -> None:
    with pytest.raises(InputError) as caught:
        read_holdings(data, KEYS, "who", "key", "value")
    assert str(caught.value) == sentence


def test_an_item_twice_in_a_list_is_refused() -> None:
    with pytest.raises(InputError, match="person 1 has the key 'a' twice; once is expected"):
        read_holdings([["b"], ["a", "a"]], KEYS, "who", "key")


def crowd(people: int, each: int) -> Holdings:
    person = np.repeat(np.arange(people), each)
    key = np.tile(np.arange(each), people)
    return Holdings(people, person, key, key / each)


def test_every_key_is_kept_equally_often() -> None:
    people, each, count = 20_000, 8, 3
    kept = crowd(people, each).at_most(count, seeded(1))
    assert np.bincount(kept.person).tolist() == [count] * people
    found = np.bincount(kept.key, minlength=each) / people
    sigma = np.sqrt(3 / 8 * 5 / 8 / people)
    assert np.abs(found - 3 / 8).max() < 5.5 * sigma  # false alarm 3e-7 over eight keys
    assert kept.value.tolist() == (kept.key / each).tolist()  # values follow their keys


def test_few_keys_are_all_kept_in_their_order() -> None:
    held = crowd(5, 3)
    kept = held.at_most(3, seeded(1))
    assert (kept.person.tolist(), kept.key.tolist()) == (held.person.tolist(), held.key.tolist())


def test_the_choice_looks_at_nothing_but_whose_a_row_is() -> None:
    held = crowd(50, 6)
    other = Holdings(50, held.person, held.key[::-1].copy(), -held.value)
    one, two = held.at_most(2, seeded(3)), other.at_most(2, seeded(3))
    assert one.person.tolist() == two.person.tolist()
    assert (5 - one.key % 6).tolist() == two.key.tolist()  # the same rows of each person


def test_vectors_are_sorted_and_filled_up_with_nothing() -> None:
    held = Holdings(3, np.array([0, 2, 0]), np.array([4, 1, 2]), np.zeros(3))
    vectors = vectors_of(held, np.array([1, -1, -1], dtype=np.int8), 3)
    assert vectors["position"].tolist() == [[2, 4, 0], [0, 0, 0], [1, 0, 0]]
    assert vectors["sign"].tolist() == [[-1, 1, 0], [0, 0, 0], [-1, 0, 0]]
