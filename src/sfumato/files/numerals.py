"""Numbers that are written as text: each cell or line is read by itself, from its bytes alone.

The grammar, in ASCII, with blanks (space, tab, line feed, vertical tab, form feed, carriage return)
around it and none inside::

    numeral  = [ "+" | "-" ] ( digits [ "." [ digits ] ] | "." digits ) [ exponent ]
    exponent = ( "e" | "E" ) [ "+" | "-" ] digits
    digits   = one or more of 0 1 2 3 4 5 6 7 8 9

in at most 400 bytes. Nothing else is a number: no other digits, blanks or signs, no underscores, no
hexadecimals, no separators of thousands. A numeral means exactly the decimal number that it writes.
``inf`` and ``infinity``, in upper or lower case, are not numbers either; where invalid values are
moved to the nearer end (see :class:`Amounts`), they are moved to the upper one.

Many cells are read at once where the result is provably the same as one by one: cells in a shorter
form of the grammar, without a plus sign, are cast together, and wherever rounding could matter, the
exact number decides.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.arrays import Array, Bools, Ints
from sfumato.errors import InputError
from sfumato.streams.published.amounts import Amounts

__all__ = [
    "BLANKS",
    "LONGEST",
    "as_bytes",
    "as_string",
    "as_text",
    "decoded",
    "exact",
    "in_units",
    "listed",
    "shown",
    "trimmed",
    "typed",
]

BLANKS: Final = " \t\n\v\f\r"
LONGEST: Final = 400  # bytes of a cell that can still be a number, blanks included

_NUMERAL: Final = re.compile(
    rb"([+-]?)(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(?:[eE]([+-]?[0-9]+))?"
)
_WHOLE: Final = re.compile(rb"[+-]?[0-9]+")
_INFINITE: Final = re.compile(rb"\+?inf(inity)?", re.IGNORECASE)
# Of these a cast to 64-bit floats is the nearest one, far from where floats end.
_PLAIN: Final = r"\A-?[0-9]{1,17}(\.[0-9]{1,17})?([eE][+-]?[0-9]{1,2})?\z"
_PLAIN_WHOLE: Final = r"\A-?[0-9]{1,17}\z"
# Units and bounds lie between 1e-324 and 1e309: with larger exponents only the sign is told apart.
_EXPONENT: Final = 1200
_SHOWN: Final = 40


def exact(cell: bytes) -> Fraction | None:
    """Return the number in a cell, or None if the cell is not a numeral.

    Examples
    --------
    >>> exact(b" 0.10 "), exact(b"-2e3"), exact(b"0x10"), exact("5\u00a0".encode())
    (Fraction(1, 10), Fraction(-2000, 1), None, None)

    """
    parts = None if len(cell) > LONGEST else _NUMERAL.fullmatch(_trimmed_one(cell))
    if parts is None:
        return None
    sign, before, after, only, power = parts.groups(default=b"")
    behind = after + only
    exponent = max(-_EXPONENT, min(int(power or b"0"), _EXPONENT)) - len(behind)
    digits = int(before + behind) * (-1 if sign == b"-" else 1)
    return Fraction(digits * 10**exponent) if exponent >= 0 else Fraction(digits, 10**-exponent)


def in_units(cells: Any, amounts: Amounts, first: int = 0) -> Ints:
    """Return a column of text in units.

    Parameters
    ----------
    cells
        The cells, as text or bytes.
    amounts
        The bound and the unit of a value, and what becomes of cells that are not numerals.
    first
        The number of cells before these, for messages.

    Examples
    --------
    >>> cells = pa.array([b"1.5", b"spam", None, b" 99 ", b"-1e3", b"inf"])
    >>> in_units(cells, Amounts(bound=10.0, unit=0.5, invalid="clip")).tolist()
    [3, 0, 0, 20, 0, 20]

    """
    cells = as_bytes(cells)
    texts = trimmed(cells)
    plain = _matches(texts, _PLAIN)
    if plain.all():
        whole = _cast(texts, pa.int64())
        if whole is not None and not bool((whole < 0).any()):
            return amounts.encode(whole)
    numbers = _cast(pc.if_else(pa.array(plain), texts, b"0"), pa.float64())
    assert numbers is not None  # noqa: S101 - what is plain can be cast
    wrong = numbers < 0
    numbers[wrong] = 0

    def exactly(indices: Ints) -> list[int]:
        return [_nearest(amounts, text) for text in texts.take(pa.array(indices)).to_pylist()]

    units = amounts.rounded(numbers / amounts.unit, exactly)
    for index in np.flatnonzero(~plain).tolist():
        text = texts[index].as_py()
        number = exact(text)
        wrong[index] = number is None or number < 0
        if not wrong[index]:
            units[index] = _nearest(amounts, text)
        elif amounts.invalid == "clip" and _INFINITE.fullmatch(text):
            units[index] = amounts.units
    if amounts.invalid == "stop" and wrong.any():
        index = int(np.flatnonzero(wrong)[0])
        raise amounts.refusal(first + index, shown(cells[index].as_py()))
    return units


def listed(cells: Any) -> list[int | float | None]:
    """Return the number in each cell: a whole number as it is, any other as the nearest float.

    Examples
    --------
    >>> listed(pa.array([b"7", b"7.0", None, b"9007199254740993"]))
    [7, 7.0, None, 9007199254740993]

    """
    cells = as_bytes(cells)
    texts = trimmed(cells)
    there = cells.is_valid().to_numpy(zero_copy_only=False)
    if not (_matches(texts, _PLAIN) | ~there).all():
        return [_number(cell, index) for index, cell in enumerate(cells.to_pylist())]
    filled = pc.if_else(pa.array(there), texts, b"0")
    numbers: list[int | float | None] = pc.cast(as_string(filled), pa.float64()).to_pylist()
    whole = np.flatnonzero(_matches(filled, _PLAIN_WHOLE))
    exactly = pc.cast(as_string(filled.take(pa.array(whole))), pa.int64()).to_pylist()
    for index, number in zip(whole.tolist(), exactly, strict=True):
        numbers[index] = number
    for index in np.flatnonzero(~there).tolist():
        numbers[index] = None
    return numbers


def typed(cells: Any) -> Any:
    """Return the numbers as a column of whole numbers if all are whole, or else of floats."""
    cells = as_bytes(cells)
    texts = trimmed(cells)
    if not cells.null_count and _matches(texts, _PLAIN).all():
        whole = _cast(texts, pa.int64())
        return pc.cast(as_string(texts), pa.float64()) if whole is None else pa.array(whole)
    numbers = listed(cells)
    if any(isinstance(number, float) for number in numbers):
        floats = [None if number is None else float(number) for number in numbers]
        return pa.array(floats, pa.float64())
    return pa.array(numbers, pa.int64())


def as_bytes(cells: Any) -> Any:
    """Return a column of text or bytes as one of bytes."""
    large = pa.types.is_large_string(cells.type) or pa.types.is_large_binary(cells.type)
    kind = pa.large_binary() if large else pa.binary()
    return cells if cells.type == kind else cells.cast(kind)


def as_text(cells: Any) -> Any:
    """Return a column of bytes as text; bytes that are not UTF-8 become escapes."""
    try:
        return cells.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [None if cell is None else decoded(cell) for cell in cells.to_pylist()]
        return pa.array(texts, pa.string())


def blank_free(cells: Any) -> Any:
    """Return a column of bytes without the blanks around each cell."""
    return pc.ascii_trim(as_string(cells), BLANKS).view(cells.type)


def trimmed(cells: Any) -> Any:
    """Return the cells without blanks; one that is missing or too long becomes empty."""
    if cells.null_count:
        cells = pc.fill_null(cells, b"")
    short = pc.less_equal(pc.binary_length(cells), pa.scalar(LONGEST))
    if not pc.all(short, min_count=0).as_py():
        cells = pc.if_else(short, cells, b"")
    return blank_free(cells)


def _trimmed_one(cell: bytes) -> bytes:
    return cell.strip(BLANKS.encode())


def as_string(cells: Any) -> Any:
    """Return a column of bytes as text, without a look at whether it is UTF-8."""
    return cells.view(pa.string() if cells.type == pa.binary() else pa.large_string())


def _matches(texts: Any, pattern: str) -> Bools:
    matched = pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False)
    return np.asarray(matched, dtype=np.bool_)


def _cast(texts: Any, kind: Any) -> Array | None:
    """Return texts as an array of numbers, or None if one of them is not of this kind."""
    try:
        numbers = pc.cast(as_string(texts), kind)
    except pa.ArrowInvalid:
        return None
    return np.array(numbers.to_numpy(zero_copy_only=False))


@lru_cache(maxsize=1 << 16)
def _nearest(amounts: Amounts, text: bytes) -> int:
    number = exact(text)
    assert number is not None  # noqa: S101 - asked for numerals only
    return amounts.nearest(number)


def _number(cell: bytes | None, index: int) -> int | float | None:
    if cell is None:
        return None
    if exact(cell) is None:
        raise InputError(f"values[{index}] is {shown(cell)}; a number is expected.")
    text = _trimmed_one(cell)
    if _WHOLE.fullmatch(text) and -(1 << 63) <= int(text) < 1 << 63:
        return int(text)
    return float(text)


def decoded(cell: bytes) -> str:
    """Return a cell as text; bytes that are not UTF-8 become escapes."""
    return cell.decode("utf-8", "backslashreplace")


def shown(cell: bytes | None) -> str:
    """Return a cell for a message, as its curator wrote it, cut to a short length."""
    if cell is None:
        return "missing"
    text = decoded(cell)
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return shown.strip(BLANKS) if exact(cell) is not None else repr(shown)
