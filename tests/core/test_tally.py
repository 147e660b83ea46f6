"""Tallies add up in any order and own what they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.core import Tallies, Tally
from sfumato.core.tally import Place
from sfumato.errors import MismatchError

tallies = st.builds(
    Tally,
    st.integers(0, 1 << 40),
    st.lists(st.integers(-(1 << 40), 1 << 40), min_size=3, max_size=3).map(np.array),
)


@given(tallies, tallies, tallies)
def test_tallies_are_a_commutative_monoid(a: Tally, b: Tally, c: Tally) -> None:
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + Tally.zero(3) == a
    assert (a + b).n == a.n + b.n
    assert ((a + b).sums == a.sums + b.sums).all()


places = st.builds(Place, st.integers(0, 65535), st.integers(0, 1 << 31), st.integers(0, 65535))


@given(st.dictionaries(places, tallies, max_size=6))
def test_tallies_are_written_and_read_again(given_: dict[Place, Tally]) -> None:
    counted = Tallies(given_)
    written = counted.encode()
    assert dict(Tallies.decode(written)) == given_
    backwards = Tallies(dict(reversed(given_.items())))
    assert backwards.encode() == written  # one form, whatever the order


@given(st.binary(max_size=80), st.integers(0, 200), st.integers(1, 255))
def test_damaged_tallies_are_refused_or_other_tallies(
    noise: bytes, where: int, flipped: int
) -> None:
    good = bytearray(
        Tallies(
            {Place(0, 1): Tally(2, np.array([1, 1])), Place(4, 9, 1): Tally(1, np.array([[3]]))}
        ).encode()
    )
    good[where % len(good)] ^= flipped
    for data in (noise, b"SFT1" + noise, bytes(good), bytes(good[: where % len(good)])):
        try:
            again = Tallies.decode(data)
        except MismatchError:
            continue
        assert again.encode() == data


def test_only_places_are_written() -> None:
    with pytest.raises(MismatchError, match="key is 'monday'; only places can be written"):
        Tallies({"monday": Tally(1, np.array([1]))}).encode()


def test_equal_tallies_have_one_hash() -> None:
    one, same, other = (Tally(2, np.array([1, x])) for x in (1, 1, 2))
    assert one == same
    assert one != other
    assert one != Tally(3, one.sums)
    assert len({one, same, other}) == 2
    assert one != "a tally"


def test_a_tally_keeps_its_own_sums() -> None:
    sums: Any = np.array([1, 2], dtype=np.int32)
    tally = Tally(2, sums)
    sums[0] = 7
    assert tally.sums.tolist() == [1, 2]
    assert tally.sums.dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        tally.sums[0] = 7


def test_a_long_tally_is_shown_short() -> None:
    assert repr(Tally(2, np.array([1, 2]))) == "Tally(n=2, sums=[1, 2])"
    assert len(repr(Tally.zero(1000))) < 80


@pytest.mark.parametrize(
    ("n", "sums", "says"),
    [
        (-1, [0], "n is -1; a tally counts 0 or more reports."),
        (1, [0.5], "sums have dtype float64; a tally holds integers."),
        (2.5, [0], "n is 2.5; a tally counts 0 or more reports."),
        (1, [1 << 63], "sums have a number above 2^63 - 1; a tally holds 64-bit integers."),
        (1, ["a"], "sums have dtype <U1; a tally holds integers."),
    ],
)
def test_what_no_tally_can_be_is_refused(n: Any, sums: list[Any], says: str) -> None:
    with pytest.raises(MismatchError) as caught:
        Tally(n, np.array(sums))
    assert str(caught.value) == says


def test_tallies_of_two_mechanisms_cannot_be_added() -> None:
    with pytest.raises(MismatchError, match=r"shapes \(2,\) and \(3,\) cannot be added"):
        Tally.zero(2) + Tally.zero(3)
    with pytest.raises(TypeError):
        Tally.zero(2) + 1


def test_keyed_tallies_merge_key_by_key() -> None:
    one, two = Tally(1, np.array([1])), Tally(2, np.array([3]))
    merged = Tallies({"a": one, "b": one}) + Tallies({"b": two, "c": two})
    assert dict(merged) == {"a": one, "b": one + two, "c": two}
    assert merged.total() == one + one + two + two
    assert len(merged) == 3
    assert repr(Tallies({1: one})) == "Tallies({1: Tally(n=1, sums=[1])})"


def test_keyed_tallies_do_not_change_with_what_they_were_made_of() -> None:
    source = {"a": Tally.zero(1)}
    kept = Tallies(source)
    source["b"] = Tally.zero(1)
    assert list(kept) == ["a"]
    with pytest.raises(TypeError):
        kept["b"] = Tally.zero(1)  # type: ignore[index]


def test_nothing_has_no_total() -> None:
    with pytest.raises(MismatchError, match="there is no tally to total"):
        Tallies[str]().total()
    with pytest.raises(TypeError):
        Tallies[str]() + 1
