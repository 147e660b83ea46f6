"""Tables of answers have the same columns everywhere, and every value has its interval."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from sfumato import GRR, Estimate, ExSub, Guarantee, StochasticRounding, seeded
from sfumato.core import Covariance
from sfumato.core.answers import Answers, columns_of, plain_of
from sfumato.core.quantity import AMOUNT, MEAN, SHARE, Quantity
from sfumato.errors import ConfigurationError
from sfumato.mechanisms.sparse import KeyValues
from sfumato.queries import History, postprocess, top
from sfumato.streams.kinds import Category
from sfumato.streams.weave import Weave
from sfumato.streams.weave.weave_fleet import collect

PROMISE = Guarantee("local", "each report", 1.0)
PETS = ("cat", "dog", "fish")


def pets() -> Estimate:
    mechanism = GRR(2.0, PETS)
    reports = mechanism.randomize(["dog"] * 600 + ["cat"] * 400, seeded(1))
    return mechanism.estimate(mechanism.tally(reports))


def history() -> History:
    stream = Weave(Category(PETS), 4, 4, 2.0, spans=(0,), shares=(1.0,))
    return History.of(stream, collect(stream, np.zeros((900, 4), dtype=int), seeded(2)))


def table(values: list[float], reach: float = 0.01, **more: Any) -> Answers:
    middle = np.array(values)
    labels = tuple("abcdefgh"[: len(values)])
    return Answers(labels, middle, middle - reach, middle + reach, 9, PROMISE, **more)


DOORS: dict[str, tuple[Answers, str]] = {
    "an estimate": (pets().answers(), "item"),
    "post-processing": (postprocess(pets(), "norm_sub"), "item"),
    "the largest": (top(pets(), 2), "item"),
    "a period": (history().mean(2), "item"),
    "a sum": (history().range(1, 3), "item"),
    "a change": (history().difference(1, 4), "item"),
    "the largest of a period": (history().top(2, 4), "item"),
    "a period moved to where it can be": (history().mean(4, projection="simplex"), "item"),
    "a curve": (history().curve("dog"), "period"),
}


@pytest.mark.parametrize("door", DOORS)
def test_every_door_gives_the_same_table(door: str) -> None:
    answers, what = DOORS[door]
    assert type(answers) is Answers
    names = [what, "value", "low", "high"]
    assert list(answers.columns()) == names
    assert list(answers.to_frame("polars").columns) == names
    assert list(answers.records()[0]) == names
    assert answers.n > 0
    assert "is protected with epsilon 2" in repr(answers)
    assert ("period" in answers.sentence()) == (answers.as_of is not None)


@pytest.mark.parametrize("door", DOORS)
def test_plain_data_says_everything_again(door: str) -> None:
    answers, _ = DOORS[door]
    told = json.loads(json.dumps(answers.plain(), allow_nan=False))
    again = Answers.of_plain(told)
    assert again.plain() == told
    assert repr(again) == repr(answers)
    assert again.labels == answers.labels
    assert np.array_equal(again.values, answers.values)


def test_a_value_without_an_interval_is_not_told() -> None:
    labels, promise = ("a", "b", "c", "d"), PROMISE
    values = np.array([0.1, 0.2, np.nan, np.nan])
    low, high = np.array([0.0, -np.inf, 1.0, np.nan]), np.array([0.2, np.inf, 5.0, np.nan])
    answers = Answers(labels, values, low, high, 9, promise)
    assert answers.known() == [
        [0.1, 0.0, 0.2],
        [None, None, None],
        [None, 1.0, 5.0],
        [None, None, None],
    ]
    assert [row.value for row in answers.printed()].count("unknown") == 3
    assert [bool(row.high.strip()) for row in answers.printed()] == [True, False, True, False]
    assert "nan" not in repr(answers) + answers._repr_html_()
    assert answers.largest().labels[0] == "a"


@pytest.mark.parametrize(
    ("quantity", "printed"),
    [
        (SHARE, ("54.2%", "1.0%", "53.2%", "55.2%")),
        (SHARE.changed, ("54.2 points", "1.0 points", "53.2 points", "55.2 points")),
        (MEAN, ("0.542", "0.010", "0.532", "0.552")),
        (Quantity("mean", "Temperature", " °C"), ("0.542 °C", "0.010 °C", "0.532 °C", "0.552 °C")),
    ],
)
def test_a_row_is_printed_in_its_unit(quantity: Quantity, printed: tuple[str, ...]) -> None:
    answers = table([0.541678], quantity=quantity)
    assert tuple(answers.printed()[0]) == (*printed, "")
    assert str(answers["a"]) == f"a: {printed[0]} ± {printed[1]}"
    assert printed[0] in answers._repr_html_()


def test_a_value_out_of_its_interval_is_printed_at_the_nearest_end_and_raw() -> None:
    """Data keep the unbiased value; people see one that is possible, and both numbers."""
    value, low, high = np.array([[-0.015, 0.3], [0.0, 0.29], [0.017, 0.31]])
    answers = Answers(("a", "b"), value, low, high, 9, PROMISE, quantity=SHARE)
    row, other = answers.printed()
    assert (row.value, row.reach, row.high, row.raw) == ("0.0%", "1.7%", " 1.7%", "-1.5%")
    assert other.raw == ""
    assert "[ 0.0%,  1.7%]  (raw -1.5%)" in repr(answers)
    assert "0.0% (raw -1.5%)" in answers._repr_html_()
    assert answers.columns()["value"] == [-0.015, 0.3]


def test_what_mechanisms_estimate_is_what_their_answers_say() -> None:
    numbers = StochasticRounding(2.0, low=0, high=10)
    mean = numbers.estimate(numbers.tally(numbers.randomize([4.0] * 50, seeded(3))))
    signs = ExSub(2.0, 4, 2)
    vectors = np.zeros((50, 4), dtype=np.int8)
    entries = signs.estimate(signs.tally(signs.randomize(vectors, seeded(4))))
    assert pets().answers().quantity == SHARE
    assert mean.answers().quantity == MEAN
    assert entries.answers().quantity == AMOUNT
    assert pets().only([1]).answers().quantity == SHARE


def test_several_answers_for_each_key_are_tables_side_by_side() -> None:
    mechanism = ExSub(4.0, 3, 2, goal="frequency")
    films = KeyValues(mechanism, ("Alien", "Brazil", "Dune"), low=1, high=5)
    people = [{"Alien": 5}] * 300 + [{"Brazil": 2}] * 100
    named = films.estimate(mechanism.tally(films.randomize(people, seeded(5)))).answers()
    assert {type(answers) for answers in named.values()} == {Answers}
    columns = columns_of(named)
    assert list(columns)[:5] == ["key", "frequency", "frequency_low", "frequency_high", "mean"]
    assert columns["mean_low"] == named["mean"].low.tolist()
    told = plain_of(named)
    assert set(told["answers"][0]) == {"key", "frequency", "mean", "conditional_mean"}
    assert told["quantity"]["frequency"]["noun"] == "Share of holders"
    one = {"mean": named["mean"]}
    assert columns_of(one) == named["mean"].columns()
    assert plain_of(one) == named["mean"].plain()


def test_rows_are_picked_by_place_and_named_by_label() -> None:
    answers = table([0.2, 0.5, 0.1])
    assert answers.largest().labels == ("b", "a", "c")
    assert answers.pick(slice(2)).labels == ("a", "b")
    assert answers.pick([2, 0]).values.tolist() == [0.1, 0.2]
    assert answers["b"].value == 0.5
    with pytest.raises(ConfigurationError, match="item is 'z'; there are a, b, c"):
        answers["z"]
    assert len(answers.rounded(0).columns()["value"]) == 3
    assert answers.rounded(0).values.tolist() == [0.0, 0.0, 0.0]


def test_the_reach_goes_to_the_farther_side() -> None:
    labels = ("a", "b")
    sides = (np.array([0.1, np.nan]), np.array([0.0, 1.0]), np.array([0.5, 5.0]))
    assert Answers(labels, *sides, 9, PROMISE).reach.tolist() == [0.4, 2.0]


def test_a_band_says_so() -> None:
    estimate = Estimate(np.zeros(3), Covariance(np.ones(3)), ("a", "b", "c"), 9, PROMISE)
    band = estimate.answers(0.9, band=True)
    assert band.plain()["band"] is True
    assert "90% band" in band.sentence()
    assert (band.high > estimate.answers(0.9).high).all()
