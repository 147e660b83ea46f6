"""Strict reading of JSON and TOML from strangers; the result can be hashed, saved and printed.

The standard readers accept too much: NaN and infinities, repeated keys, broken characters, and
nesting of any depth. All of these are refused here.
"""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter
from typing import Any, Final

from sfumato.errors import InputError
from sfumato.wire.lines import syntax_error

__all__ = ["DEEPEST", "read_json", "read_toml"]

DEEPEST: Final = 32
"""The largest depth of nested lists and tables."""


def read_json(data: bytes | str, what: str) -> Any:
    """Return the data of a JSON text; raise InputError, which begins with ``what``, if it is bad.

    Examples
    --------
    >>> read_json(b'{"epsilon": 1.5}', "the task")
    {'epsilon': 1.5}
    >>> read_json('{"epsilon": 1, "epsilon": 2}', "the task")
    Traceback (most recent call last):
    ...
    sfumato.errors.InputError: the task is no JSON ('epsilon' is there twice).

    """
    try:
        plain = json.loads(
            data, parse_float=_finite, parse_constant=_refused, object_pairs_hook=_table
        )
        _check(plain)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what} is no JSON ({_reason(error)}).") from None
    return plain


def read_toml(text: str, what: str) -> dict[str, Any]:
    r"""Return the data of a TOML text; raise InputError, which names the line, if it is bad.

    Examples
    --------
    >>> read_toml("a = 1\nb = ?", "task.toml")
    Traceback (most recent call last):
    ...
    sfumato.errors.InputError: task.toml, line 2: Invalid value; TOML is expected.

    """
    try:
        plain = tomllib.loads(text)
        _check(plain)
    except tomllib.TOMLDecodeError as error:
        line, reason = syntax_error(error, text)
        raise InputError(f"{what}, line {line}: {reason}; TOML is expected.") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what} is no TOML ({_reason(error)}).") from None
    return plain


def _reason(error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return f"lists and tables stand more than {DEEPEST} deep in one another"
    if isinstance(error, UnicodeError):
        return f"{error.reason} at place {error.start}"  # type: ignore[attr-defined]
    return str(error).partition("; use sys.")[0]


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        _refused(text)
    return number


def _refused(text: str) -> Any:
    raise ValueError(f"{text[:40]} is no number")


def _table(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{twice[:40]!r} is there twice")
    return table


def _check(plain: Any) -> None:
    """Raise an error if data are nested too deeply or contain text that cannot be encoded."""
    level, depth = [plain], 0
    while level:
        deeper: list[Any] = []
        for each in level:
            if isinstance(each, str):
                each.encode()
            elif isinstance(each, dict):
                deeper += each
                deeper += each.values()
            elif isinstance(each, list):
                deeper += each
        level, depth = deeper, depth + 1
        if depth > DEEPEST + 1:
            raise RecursionError
