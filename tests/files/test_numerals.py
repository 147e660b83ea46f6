"""What a cell or a line of text means depends on its own bytes alone."""

from __future__ import annotations

import os
import re
import tempfile
from decimal import Decimal
from fractions import Fraction
from hashlib import sha256

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sfumato.errors import InputError
from sfumato.files import follower, numerals
from sfumato.files.input_digest import InputDigest
from sfumato.streams.published.amounts import Amounts

NUMERAL = re.compile(rb"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
AMOUNTS = [
    Amounts(300.0, 1.0, "clip"),
    Amounts(300.0, 0.01, "clip"),
    Amounts(2.0**40, 1.0, "zero"),
    Amounts(9e18, 9e7, "clip"),
    Amounts(1e-7, 3e-15, "clip"),
    Amounts(1e300, 1e290, "zero"),
]
STRANGE = [
    *("200\u00a0", "\u2003200", "0xC8", "1_000", "1,5", "٣", "½", "5 5", "+-5", "5e", "e5"),
    *("", " ", ".", "-", "+5", "-0", "5.", ".5", "0.5", "1.5", "2.5", "149.5", "1.005", "1.015"),
    *("9007199254740993", "9007199254740992.5", "18446744073709551615", "99999999999999999999"),
    *("nan", "inf", "-inf", "+Infinity", "1e999", "1e-999", "-1e-999", "1e" + "9" * 300, "True"),
    *("0" * 396 + "5", "0" * 400 + "5", " " * 399 + "5", " " * 400 + "5", "5\r", "\x005", "5\x00"),
]


def meaning(cell: bytes, amounts: Amounts) -> int:
    """Return the units of a cell, by itself, by the book."""
    text = cell.strip(b" \t\n\v\f\r")
    if len(cell) > 400 or NUMERAL.fullmatch(text) is None:
        infinite = text.lower() in {b"inf", b"+inf", b"infinity", b"+infinity"}
        return amounts.units if infinite and len(cell) <= 400 and amounts.invalid == "clip" else 0
    mantissa, _, power = text.lower().partition(b"e")
    if text.startswith(b"-") or abs(int(power or 0)) > 2000:
        tiny = int(power or 0) < 0 or not Decimal(mantissa.decode())
        return 0 if tiny or text.startswith(b"-") else amounts.units
    unit = Fraction(Decimal(repr(amounts.unit)))
    scaled = Fraction(mantissa.decode().rstrip(".").replace("+.", "0.")) * Fraction(10) ** int(
        power or 0
    )
    return min(round(scaled / unit), amounts.units)


digits = st.text("0123456789", max_size=20)
numbers = st.builds(
    lambda sign, whole, point, part, power, blank: (
        f"{blank}{sign}{whole}{point}{part}{power}{blank}"
    ),
    st.sampled_from(["", "", "", "+", "-"]),
    digits,
    st.sampled_from(["", ".", "."]),
    digits,
    st.one_of(st.just(""), st.integers(-30, 30).map(lambda e: f"e{e}")),
    st.sampled_from(["", "", " ", "\t"]),
).map(str.encode)
halves = st.integers(0, 10**6).map(lambda n: f"{n / 2}".encode())
ties = st.integers(0, 10**5).map(lambda n: f"{n // 100}.{n % 100:02}5".encode())
cells = st.one_of(
    numbers,
    halves,
    ties,
    st.binary(max_size=12).filter(lambda cell: b"\n" not in cell),
    st.sampled_from(STRANGE).map(str.encode),
)


@settings(max_examples=80)
@given(rows=st.lists(cells, min_size=1, max_size=30), amounts=st.sampled_from(AMOUNTS))
@example(rows=[text.encode() for text in STRANGE], amounts=AMOUNTS[0])
@example(rows=[text.encode() for text in STRANGE], amounts=AMOUNTS[2])
@example(rows=[b"9007199254740993", b"0.5"], amounts=AMOUNTS[3])
def test_a_cell_means_the_same_whatever_stands_beside_it(
    rows: list[bytes], amounts: Amounts
) -> None:
    """Altering, adding or moving a cell never changes another one's units."""
    expected = [meaning(cell, amounts) for cell in rows]
    assert numerals.in_units(pa.array(rows, pa.binary()), amounts).tolist() == expected
    for cell, units in zip(rows, expected, strict=True):
        assert numerals.in_units(pa.array([cell], pa.binary()), amounts).tolist() == [units]


@settings(max_examples=50)
@given(rows=st.lists(st.one_of(st.none(), cells), min_size=1, max_size=30))
def test_missing_cells_are_zero_and_change_no_other(rows: list[bytes | None]) -> None:
    amounts = AMOUNTS[1]
    expected = [0 if cell is None else meaning(cell, amounts) for cell in rows]
    for kind in (pa.binary(), pa.large_binary()):
        assert numerals.in_units(pa.array(rows, kind), amounts).tolist() == expected


@settings(max_examples=50)
@given(numbers=st.lists(st.integers(0, 10**19), min_size=1), unit=st.sampled_from([1.0, 0.01, 3.0]))
def test_whole_numbers_have_the_units_of_their_numerals(numbers: list[int], unit: float) -> None:
    """In a typed column and written down, above 2^53 too."""
    amounts = Amounts(1e15 * unit, unit)
    written = numerals.in_units(pa.array([str(number).encode() for number in numbers]), amounts)
    assert amounts.encode(np.array(numbers, dtype=np.uint64)).tolist() == written.tolist()


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "i4", "i8", "u8", "f2", "f4", "f8"])
def test_every_type_of_numbers_is_cut_to_a_bound_beyond_it(kind: str) -> None:
    amounts = Amounts(30_000.0, 1.0, "clip")
    assert amounts.encode(np.array([0, 5, 100], dtype=kind)).tolist() == [0, 5, 100]
    gaps = np.array([False, True, False])
    assert amounts.encode(np.array([0, 5, 100], dtype=kind), missing=gaps).tolist() == [0, 0, 100]


@settings(max_examples=80)
@given(rows=st.lists(st.one_of(st.none(), numbers.filter(NUMERAL.fullmatch)), min_size=1))
@example(rows=[b"9007199254740993", b"0.5"])
@example(rows=[b"7", b"+7", b"7.0"])
def test_numbers_are_listed_one_by_one(rows: list[bytes | None]) -> None:
    def alone(cell: bytes | None) -> float | None:
        if cell is None:
            return None
        whole = re.fullmatch(rb"[+-]?[0-9]+", cell) and -(1 << 63) <= int(cell) < 1 << 63
        return int(cell) if whole else float(cell)

    expected = [alone(cell) for cell in rows]
    found = numerals.listed(pa.array(rows, pa.binary()))
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))
    column = numerals.typed(pa.array(rows, pa.binary())).to_pylist()
    for number, one in zip(column, expected, strict=True):
        assert number == one or number == float(one or 0)


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (b"abc", "'abc'"),
        (b" -5 ", "-5"),
        (None, "missing"),
        (b"x" * 1000, f"'{'x' * 40}...'"),
        (b"5\xff", r"'5\\xff'"),
        ("5\u00a0".encode(), r"'5\xa0'"),
    ],
)
def test_an_invalid_cell_is_named_by_its_own_text(cell: bytes | None, shown: str) -> None:
    column = pa.array([b"1", cell, b"spam"])
    with pytest.raises(InputError) as raised:
        numerals.in_units(column, Amounts(10.0, invalid="stop"), 100)
    assert str(raised.value) == (
        f"value 102 is {shown}; a number from 0 on is expected "
        "(with invalid clip or zero it would go on)."
    )


# ---- lines, however they arrive ---------------------------------------------------------------


@settings(max_examples=80)
@given(
    rows=st.lists(
        st.one_of(cells, st.sampled_from([b"7" * 900, b" " * 850 + b"7", b"7" + b" " * 850])),
        max_size=30,
    ).filter(lambda rows: not any(b"\n" in row for row in rows)),
    chunk=st.integers(1, 40),
)
def test_lines_mean_the_same_wherever_a_read_ends(rows: list[bytes], chunk: int) -> None:
    data = b"".join(row + b"\n" for row in rows)
    amounts = AMOUNTS[1]
    with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(follower, "_BYTES", chunk)
        file.write(data)
        file.flush()
        os.lseek(file.fileno(), 0, os.SEEK_SET)
        read = InputDigest("the input", 0, 0, 0)
        batches = list(follower._lines(file.fileno(), read))  # noqa: SLF001
    assert (read.position, read.text()) == (len(data), sha256(data).hexdigest())
    assert sum(size for _, size in batches) == len(data)
    units = [
        unit
        for lines, _ in batches
        for unit in numerals.in_units(pa.array(lines, pa.binary()), amounts).tolist()
    ]
    assert units == [meaning(row, amounts) for row in rows]
