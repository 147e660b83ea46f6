"""How good inputs are made hostile: bytes, plain data, and the texts that are written from it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any, Final

__all__ = ["NASTY", "Raw", "damaged", "damaged_plain", "json_text", "nasty", "toml_text"]


class Raw(str):
    """Text that is written as it stands where a value is expected."""

    __slots__ = ()


DEEP: Final = 2_000
TOKENS: Final = (
    b"\0",
    b"\xef\xbb\xbf",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xc3",
    b"\xf4\x90\x80\x80",
    b"\r",
    b"\n",
    b"\t",
    b'"',
    b"'",
    b",",
    b"#",
    b"\\",
    b"\\ud800",
    b"{",
    b"}",
    b"[" * DEEP,
    b'{"a":' * DEEP,
    b"NaN",
    b"-Infinity",
    b"null",
    b"true",
    b"1e999",
    b"-1e-999",
    b"5e-324",
    b"9223372036854775808",
    b"-9223372036854775809",
    b"18446744073709551616",
    b"7" * 4_001,
    b"7" * 5_000,
    b"0." + b"3" * 500,
    b"0x1F",
    b"1_000",
    "\uff11\uff12".encode(),
    "\u0663".encode(),
    "\u2028".encode(),
    "\u202e".encode(),
    b"x" * 70_000,
    b"../../etc/passwd",
    b"%00%n%s",
)
"""Bytes that some reader somewhere has stumbled over."""

NASTY: Final[Sequence[Any]] = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2,
    255,
    65_536,
    2**31,
    2**32,
    2**53 + 1,
    2**63,
    -(2**63) - 1,
    2**64,
    10**400,
    Raw("7" * 4_001),
    Raw("7" * 5_000),
    0.0,
    -0.0,
    0.5,
    1.5,
    1e-9,
    1e308,
    -1e308,
    5e-324,
    math.nan,
    math.inf,
    -math.inf,
    "",
    " ",
    "\0",
    "\ud800",
    "\ufeff",
    "\u202e",
    "a\nb",
    "\uff11\uff12",
    "1",
    "1e5",
    "-1",
    "NaN",
    "null",
    "x" * 3_000,
    "'; DROP TABLE tasks; --",
    "../../etc/passwd",
    (),
    {},
    ((),),
    (None,),
    ({},),
    (1, 2, 3),
    ("a", 1, None),
    {"": 0},
    {"kind": "category"},
    {"\ud800": 1},
    Raw("[" * DEEP + "]" * DEEP),
    Raw('{"a":' * DEEP + "1" + "}" * DEEP),
    Raw("1" + ", 1" * 2_000),
)
"""Values that are seldom what was meant."""


def nasty(rng: Random) -> Any:
    """Return a value that is seldom what was meant; nobody else has the same table or list."""
    return _copied(rng.choice(NASTY))


# ---- bytes -----------------------------------------------------------------------------------


def _cut(rng: Random, size: int) -> tuple[int, int]:
    """Return where a chunk begins and ends, short ones as often as long ones."""
    start = rng.randrange(size + 1)
    return start, min(size, start + int(2 ** rng.uniform(0, 12)))


def _flip(data: bytes, rng: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if changed:
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _overwrite(data: bytes, rng: Random) -> bytes:
    start, end = _cut(rng, len(data))
    filled = rng.choice((b"\0", b"\xff", rng.randbytes(1)))
    return data[:start] + filled * (end - start) + data[end:]


def _truncate(data: bytes, rng: Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _behead(data: bytes, rng: Random) -> bytes:
    return data[rng.randrange(len(data) + 1) :]


def _remove(data: bytes, rng: Random) -> bytes:
    start, end = _cut(rng, len(data))
    return data[:start] + data[end:]


def _repeat(data: bytes, rng: Random) -> bytes:
    start, end = _cut(rng, len(data))
    return data[:end] + data[start:end] * rng.choice((1, 2, 7)) + data[end:]


def _move(data: bytes, rng: Random) -> bytes:
    start, end = _cut(rng, len(data))
    chunk, rest = data[start:end], data[:start] + data[end:]
    place = rng.randrange(len(rest) + 1)
    return rest[:place] + chunk + rest[place:]


def _insert(data: bytes, rng: Random) -> bytes:
    place = rng.randrange(len(data) + 1)
    return data[:place] + rng.choice(TOKENS) + data[place:]


def _replace_word(data: bytes, rng: Random) -> bytes:
    """Put a token where a word or a number stood."""
    stops = [place for place, byte in enumerate(data[:20_000]) if byte in b' ,:=\n"[]{}']
    if len(stops) < 2:
        return _insert(data, rng)
    place = rng.randrange(len(stops) - 1)
    return data[: stops[place] + 1] + rng.choice(TOKENS) + data[stops[place + 1] :]


MUTATORS: Final[Sequence[Callable[[bytes, Random], bytes]]] = (
    _flip,
    _flip,
    _overwrite,
    _truncate,
    _behead,
    _remove,
    _repeat,
    _move,
    _insert,
    _replace_word,
)


def damaged(data: bytes, rng: Random) -> bytes:
    """Return bytes that were damaged in one to three ways."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(MUTATORS)(data, rng)
    return data


# ---- plain data ------------------------------------------------------------------------------


def damaged_plain(data: Any, rng: Random) -> Any:
    """Return plain data with one to three of its parts replaced, removed, moved or doubled."""
    data = _copied(data)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        slots = list(_slots(data))
        if not slots:
            return nasty(rng)
        holder, key = rng.choice(slots)
        _damage(holder, key, slots, rng)
    return data


def _damage(holder: Any, key: Any, slots: list[tuple[Any, Any]], rng: Random) -> None:
    way = rng.randrange(10)
    if way == 0:
        del holder[key]
    elif way == 1 and isinstance(holder, dict):
        holder[rng.choice(("", "x", "\0", str(key) + "s", str(key).upper()))] = holder.pop(key)
    elif way == 2 and isinstance(holder, dict):
        twice = json_text(nasty(rng))
        holder[key] = Raw(f"{json_text(holder[key])}, {json_text(str(key))}: {twice}")
    elif way == 3:
        other, place = rng.choice(slots)
        if place in (other if isinstance(other, dict) else range(len(other))):
            holder[key] = _copied(other[place])
    elif way == 4:
        holder[key] = [holder[key]]
    elif way == 5 and isinstance(holder, list):
        holder.extend([_copied(holder[key])] * rng.choice((1, 3, 100)))
    else:
        holder[key] = nasty(rng)


def _copied(data: Any) -> Any:
    """Return lists and tables that can be changed; what is in them stays as it is."""
    if isinstance(data, dict):
        return {key: _copied(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_copied(value) for value in data]
    return data


def _slots(data: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each place at which a value stands: the list or table, and its key there."""
    if isinstance(data, (dict, list)):
        for key in list(data) if isinstance(data, dict) else range(len(data)):
            yield data, key
            yield from _slots(data[key])


# ---- texts -----------------------------------------------------------------------------------


def json_text(data: Any) -> str:
    """Return JSON, and beyond JSON what its readers take: numbers that are none, surrogates."""
    if isinstance(data, Raw):
        return str(data)
    if isinstance(data, dict):
        inside = (f"{json.dumps(str(key))}: {json_text(value)}" for key, value in data.items())
        return "{" + ", ".join(inside) + "}"
    if isinstance(data, (list, tuple)):
        return "[" + ", ".join(map(json_text, data)) + "]"
    return json.dumps(data)


def toml_text(data: dict[str, Any]) -> str:
    """Return a TOML file with all tables in line."""
    return "".join(f"{_toml_key(key)} = {_toml(value)}\n" for key, value in data.items())


def _toml_key(key: Any) -> str:
    plain = str(key).isascii() and str(key).isidentifier()
    return str(key) if plain else json.dumps(str(key), ensure_ascii=False)


def _toml(data: Any) -> str:
    if isinstance(data, dict):
        inside = (f"{_toml_key(key)} = {_toml(value)}" for key, value in data.items())
        return "{" + ", ".join(inside) + "}"
    if isinstance(data, (list, tuple)):
        return "[" + ", ".join(map(_toml, data)) + "]"
    if isinstance(data, float):
        return repr(data)
    return json_text(data)
