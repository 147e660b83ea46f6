"""A guarantee is described in one sentence that never promises more than it holds."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato import Guarantee


def test_the_sentence_names_all_that_is_promised() -> None:
    promise = Guarantee(
        "shuffle",
        "a device's stream",
        0.25,
        delta=1e-6,
        window=7,
        assumptions=("1,000 reports are honest", "the shuffler keeps its key"),
    )
    assert str(promise) == (
        "A device's stream is protected with epsilon 0.25, delta 1e-06 over any 7 consecutive "
        "periods (shuffle: blurred on the device and mixed with others by a shuffler), provided "
        "that 1,000 reports are honest and the shuffler keeps its key."
    )


@pytest.mark.parametrize(
    ("epsilon", "shown"),
    [
        (1.0, "1"),
        (0.1, "0.1"),
        (20, "20"),
        (1 / 3, "0.333334"),
        (1e-6, "1e-06"),
        (2.0000001, "2.00001"),
    ],
)
def test_round_numbers_stay_round_and_others_are_rounded_up(epsilon: float, shown: str) -> None:
    assert f"with epsilon {shown} (" in str(Guarantee("local", "each report", epsilon))


@given(st.floats(1e-9, 50), st.floats(1e-300, 1))
def test_what_is_printed_is_an_upper_bound(epsilon: float, delta: float) -> None:
    sentence = str(Guarantee("local", "each report", epsilon, delta))
    printed = re.search(r"epsilon (\S+), delta (\S+) ", sentence)
    assert printed
    for shown, real in zip(printed.groups(), (epsilon, delta), strict=True):
        assert Decimal(shown) >= Decimal(repr(real))
        assert float(shown) == pytest.approx(real, rel=0.02)


def test_two_equal_promises_are_one() -> None:
    assert (
        len({Guarantee("local", "each report", 1.0), Guarantee("local", "each report", 1.0)}) == 1
    )
