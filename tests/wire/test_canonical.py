from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.wire.canonical import canonical


@pytest.mark.parametrize(
    ("number", "text"),
    [  # the examples of RFC 8785, appendix B, and their neighbours
        (0.0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (1e20, "100000000000000000000"),
        (1.2345678901234567e20, "123456789012345670000"),
        (9007199254740994.0, "9007199254740994"),
        (-1e16, "-10000000000000000"),
        (1e21, "1e+21"),
        (9.5e-7, "9.5e-7"),
        (1e-7, "1e-7"),
        (0.000001, "0.000001"),
        (-0.00000123, "-0.00000123"),
        (0.00012, "0.00012"),
        (333333333.3333333, "333333333.3333333"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
    ],
)
def test_numbers_are_written_as_in_ecmascript(number: float, text: str) -> None:
    assert canonical(number).decode() == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_come_back(number: float) -> None:
    assert float(canonical(number)) == number


TEXT = st.text(st.sampled_from('aZ0é"\\/\n\x00\x1f\x7f\u2028\ud7ff\ue000😀'))
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
)


@given(PLAIN)
def test_plain_data_come_back(data: object) -> None:
    text = canonical(data)
    assert json.loads(text) == data
    assert canonical(json.loads(text)) == text
