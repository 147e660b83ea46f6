"""The canonical form of plain data, so that two parties who hash it get the same result.

It is JSON in UTF-8 with sorted keys, no spaces, and numbers as ECMAScript writes them, which is RFC
8785 for all data with ASCII keys.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from json.encoder import encode_basestring
from typing import Any

__all__ = ["canonical"]


def canonical(data: Any) -> bytes:
    """Return the canonical form of plain data.

    Examples
    --------
    >>> canonical({"b": [1.0, 0.25], "a": "é"}).decode()
    '{"a":"é","b":[1,0.25]}'

    """
    return _text(data).encode()


_plain = json.JSONEncoder(ensure_ascii=False).encode


def _text(data: Any) -> str:
    if isinstance(data, str):
        return encode_basestring(data)
    if isinstance(data, float):
        return _number(data)
    if isinstance(data, (list, tuple)):
        return "[" + ",".join(map(_text, data)) + "]"
    if not isinstance(data, int) and isinstance(data, (dict, Mapping)):
        return "{" + ",".join(f"{_text(key)}:{_text(data[key])}" for key in sorted(data)) + "}"
    return _plain(data)


def _number(value: float) -> str:
    """Return a number in the shortest digits that restore it, as ECMAScript writes it."""
    if value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    sign = "-" if value < 0 else ""
    digits, _, exponent = repr(abs(value)).partition("e")
    if not exponent:
        return sign + digits
    power, plain = int(exponent), digits.replace(".", "")
    # Python writes exponents below 1e-4 and from 1e16 on, ECMAScript below 1e-6 and from 1e21 on.
    if -6 <= power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{plain}"
    if 0 < power < 21:
        return sign + plain.ljust(power + 1, "0")
    return f"{sign}{digits}e{power:+d}"
