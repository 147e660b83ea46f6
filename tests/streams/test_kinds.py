"""Values at the edge: what a device takes, what it refuses, and how much can change."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from sfumato.core.tally import Tally
from sfumato.errors import ConfigurationError, InputError, ReportError
from sfumato.randomness import seeded
from sfumato.streams.kinds import Attributes, Binary, Category, Items, Values
from sfumato.streams.weave import Weave
from sfumato.streams.weave.messages import Difference
from sfumato.streams.weave.threads import Thread

NAN = float("nan")
ANYTHING = [None, NAN, float("inf"), -1, 2.5, "1", b"1", object(), 1 + 0j, np.array([1]), {}]

BAD: list[tuple[Values, list[Any]]] = [
    (Binary(), [*ANYTHING, 2, [1], np.array([0, 1]), "on"]),
    (Category(3), [*ANYTHING, 3, True, [1], (0,)]),
    (Category(("a", "b")), [*ANYTHING, "c", 0, ["a"], "ab"]),
    (Items(("a", "b")), [*ANYTHING, "a", ["c"], [["a"]], [None], {"a": 1}, [NAN], 0]),
    (Attributes({"x": ("a", "b"), "y": 2}), [*ANYTHING, "a", {"x": "a"}, ["a", 0]]),
    (Attributes({"x": ("a", "b"), "y": 2}), [{"x": "a", "y": 2}, {"x": None, "y": 1}]),
]


@pytest.mark.parametrize(
    ("values", "value"),
    [
        pytest.param(values, value, id=f"{values.kind}-{place}")
        for values, bad in BAD
        for place, value in enumerate(bad)
    ],
)
def test_bad_values_are_refused_in_one_sentence(values: Values, value: Any) -> None:
    with pytest.raises(InputError, match=r"value is .*; .* expected\.$") as error:
        values.encode(value)
    assert "\n" not in str(error.value)


def test_the_sentence_names_the_attribute() -> None:
    both = Attributes({"place": ("in", "out"), "app": 3})
    with pytest.raises(InputError, match=r"^app: value is 'mail'; one of the items 0, 1, 2"):
        both.encode({"place": "in", "app": "mail"})


STREAMS: list[tuple[Values, Any, str]] = [
    (Binary(), np.zeros((2, 3, 1), int), r"shape \(2, 3, 1\); \(devices, periods\)"),
    (Binary(), np.full((2, 3), 0.5), "dtype float64; whole numbers 0..1"),
    (Binary(), np.full((2, 3), NAN), "dtype float64"),
    (Binary(), np.array([["0", "1"]]), "dtype <U1"),
    (Binary(), np.array([[0, 1], [1, 2]]), "has 2 for device 1 in period 2; .* 0..1"),
    (Category(3), np.array([[0, 3]]), "has 3 for device 0 in period 2; .* 0..2"),
    (Category(3), np.array([[-1, 1]]), "has -1 for device 0 in period 1; .* 0..2"),
    (Category(3, optional=True), np.array([[-2, 1]]), "has -2 .* -1..2"),
    (Items(3), np.zeros((2, 4, 2), int), r"shape \(2, 4, 2\); \(devices, periods, 3\)"),
    (Items(3), np.full((2, 4, 3), 2), "has 2 for device 0"),
    (Attributes({"x": 2, "y": 3}), np.zeros((2, 4, 3), int), r"\(devices, periods, 2\)"),
    (
        Attributes({"x": 2, "y": 3}),
        np.full((1, 2, 2), 2),
        "has 2 for device 0 in period 1; .* 0..1",
    ),
]


@pytest.mark.parametrize(("values", "streams", "sentence"), STREAMS)
def test_bad_streams_are_refused_in_one_sentence(
    values: Values, streams: Any, sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        values.encode_streams(streams)


KINDS: list[tuple[Values, list[Any], list[Any]]] = [
    (Binary(), [0, 1, True, np.int64(1), 1.0], [0, 1, 1, 1, 1]),
    (Category(("a", "b", "c")), ["a", "b", "c", "b", "a"], [0, 1, 2, 1, 0]),
    (Items(3, most=2), [(), {0}, [1, 2], {0, 1, 2}, (2, 2)], [0, 1, 6, 7, 4]),
    (
        Attributes({"x": ("a", "b"), "y": 3}),
        [{"x": x, "y": y} for x, y in (("a", 0), ("b", 2), ("a", 1), ("b", 0), ("b", 1))],
        [[0, 0], [1, 2], [0, 1], [1, 0], [1, 1]],
    ),
]


@pytest.mark.parametrize(("values", "one_by_one", "codes"), KINDS, ids=lambda x: str(x)[:20])
def test_values_and_whole_streams_are_encoded_alike(
    values: Values, one_by_one: list[Any], codes: list[Any]
) -> None:
    if isinstance(values, Items):
        codes = [[code >> place & 1 for place in range(3)] for code in codes]
    streams = values.encode_streams(np.array([codes]))
    assert streams.tolist() == [[values.encode(value).tolist() for value in one_by_one]]
    assert streams.shape[2] == values.width == len(values.labels)


def test_nothing_is_an_item_of_its_own_where_it_may_be() -> None:
    late = Category(3, optional=True)
    assert late.encode(None).tolist() == [0, 0, 0]
    look = late.snapshot(20.0, 0)
    bits = late.encode_streams(np.array([[-1, 0, 1, 2, -1]]))[0]
    values = look.read(look.mechanism.tally(look.mechanism.randomize(look.encode(bits), seeded(1))))
    np.testing.assert_allclose(values, 0.2, atol=1e-4)
    assert not late.always_there
    mixed = Attributes({"x": Category(2, optional=True), "y": 2})
    assert mixed.always_there
    assert mixed.encode({"x": None, "y": 1}).tolist() == [0, 0, 0, 1]
    with pytest.raises(InputError, match="y: value is None"):
        mixed.encode({"x": None, "y": None})


@pytest.mark.parametrize("anchored", [False, True])
@pytest.mark.parametrize("most", [2, 3, 4, 6])
@pytest.mark.parametrize("differences", [1, 2, 3])
def test_no_thread_has_more_changes_than_are_counted_on(
    differences: int, most: int, *, anchored: bool
) -> None:
    """By listing all streams whose whole changes are few enough."""
    for values, every in (
        (Binary(), [0, 1]),
        (Category(3), [0, 1, 2]),
        (Items(2), [(), (0,), (1,), (0, 1)]),
        (Attributes({"x": 2, "y": 2}), [{"x": x, "y": y} for x in (0, 1) for y in (0, 1)]),
    ):
        if anchored and not values.always_there:
            continue
        bits = [values.encode(value).astype(int) for value in every]
        largest = 0
        for stream in product(bits, repeat=differences + anchored):
            changes = np.abs(np.diff([np.zeros(values.width, int), *stream], axis=0))
            if changes.sum() <= most:
                largest = max(largest, int(changes[int(anchored) :].sum()))
        counted = values.changes(most, differences, anchored=anchored)
        assert counted == max(1, largest)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Category(1), "domain has 1 item"),
        (lambda: Category(("a", "a")), "domain names 'a' more than once"),
        (lambda: Category(3, optional=1), "optional is 1"),  # type: ignore[arg-type]
        (lambda: Items(3, most=4), "most is 4; a set holds between 1 and 3"),
        (lambda: Items(3, most=0), "most is 0"),
        (lambda: Attributes({}), "attributes is empty"),
        (lambda: Weave(Binary(), 1, 1, 1.0, (0,), (1.0,)), "periods is 1"),
        (lambda: Weave(Binary(), 4.0, 1, 1.0, (0,), (1.0,)), "periods is 4.0"),  # type: ignore[arg-type]
        (lambda: Weave(Binary(), 4, 0, 1.0, (0,), (1.0,)), "changes is 0"),
        (lambda: Weave(Binary(), 4, 5, 1.0, (0,), (1.0,)), "changes is 5; .* 1..4"),
        (
            lambda: Weave(Attributes({"x": 2, "y": 2}), 4, 1, 1.0, (0,), (1.0,)),
            "changes is 1; .* 2..",
        ),
        (lambda: Weave(Binary(), 4, 1, NAN, (0,), (1.0,)), "epsilon is nan"),
        (lambda: Weave(Binary(), 4, 1, 0, (0,), (1.0,)), "epsilon is 0"),
        (lambda: Weave(Binary(), 4, 1, 1.0, (), ()), "one share for each"),
        (lambda: Weave(Binary(), 4, 1, 1.0, (0, 1), (1.0,)), "one share for each"),
        (lambda: Weave(Binary(), 4, 1, 1.0, (1, 1), (0.5, 0.5)), "each may be there once"),
        (lambda: Weave(Binary(), 4, 1, 1.0, (3,), (1.0,)), "spans has 3; two looks"),
        (lambda: Weave(Binary(), 4, 1, 1.0, (-1,), (1.0,)), "spans has -1"),
        (lambda: Weave(Binary(), 4, 1, 1.0, (1.0,), (1.0,)), "whole numbers"),  # type: ignore[arg-type]
        (lambda: Weave(Binary(), 4, 1, 1.0, (5,), (1.0,), aligned=True), "spans has 5; 0..4"),
        (lambda: Weave(Binary(), 4, 1, 1.0, (0,), (NAN,)), "shares are"),
        (lambda: Weave(Binary(), 4, 1, 1.0, (0, 1), (1.5, -0.5)), "shares are"),
        (lambda: Weave(Binary(), 4, 1, 1.0, (0, 1), (0.5, 0.4)), "shares sum to 0.9"),
        (lambda: Weave(Binary(), 4, 1, 1.0, (0,), (1.0,), "magic"), "mechanism is 'magic'"),
    ],
)
def test_designs_that_cannot_be_are_refused(make: Any, sentence: str) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        make()


def test_looks_edges_and_counts_of_threads_agree() -> None:
    for periods, span, offset in product((2, 5, 12), (1, 2, 5), range(5)):
        thread = Thread(span, offset)
        if offset >= span or 2 * span > periods:
            continue
        looks = [t for t in range(1, periods + 1) if t % span == offset % span]
        assert list(thread.looks(periods)) == looks
        assert [t for t in range(1, periods + 1) if thread.looks_at(t)] == looks
        for anchored in (False, True):
            edges = thread.edges(periods, anchored=anchored)
            assert thread.differences(periods, anchored=anchored) == len(edges)
            assert [end for _, end in edges] == looks[int(anchored) :]


# ---- messages -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("width", [1, 3, 4, 9])
def test_messages_say_what_was_written_and_only_what_devices_write_is_valid(
    width: int, *, dense: bool
) -> None:
    form = Difference(width, dense)
    draw = seeded(width).simulator()
    signs = draw.choice([-1, 1] if dense else [-1, 0, 1], size=(300, width))
    messages = form.write(signs)
    assert form.signs(messages).tolist() == signs.tolist()
    assert form.valid(messages).all()
    tally = form.tally(messages)
    assert tally == Tally(300, np.stack([(signs == 1).sum(0), (signs == -1).sum(0)]))
    noise = np.frombuffer(seeded(9).take(2_000 * form.dtype.itemsize), dtype=form.dtype)
    again = form.write(form.signs(noise))
    same = [a.tobytes() == b.tobytes() for a, b in zip(noise, again, strict=True)]
    assert form.valid(noise).tolist() == same
    if not all(same):
        with pytest.raises(ReportError, match=rf"messages\[{same.index(False)}\]"):
            form.tally(noise)
    for hostile in (np.zeros(3), signs, b"\0", None):
        with pytest.raises(ReportError, match="differences have"):
            form.tally(hostile)  # type: ignore[arg-type]
