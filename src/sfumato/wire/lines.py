"""The line of a TOML file that a field is in; the standard reader does not tell."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["line_of", "syntax_error"]

Path = tuple[str, ...]


def line_of(text: str, path: Path) -> int | None:
    r"""Return the line, from 1, in which a field of a valid file (or what contains it) starts.

    Examples
    --------
    >>> line_of('title = "A"\n[values]\nitems = [\n  1,\n]\n', ("values", "items"))
    3
    >>> line_of('title = "A"\n[values]\nitems = 4\n', ("values", "kind"))
    2

    """
    nearest: tuple[int, int] = (0, 0)
    for line, stated in _statements(text):
        depth = _agreement(stated, path)
        if depth > nearest[0]:
            nearest = (depth, line)
    return nearest[1] or None


def _statements(text: str) -> Iterator[tuple[int, Path]]:
    """Yield the line and the whole path of every header and every key.

    A statement ends when it is valid TOML on its own, so strings and arrays over several lines need
    no further rules.
    """
    table: Path = ()
    begun, start = "", 0
    for line, content in enumerate(text.splitlines(), start=1):
        start = start if begun else line
        begun += content + "\n"
        try:
            parsed = tomllib.loads(begun)
        except tomllib.TOMLDecodeError:
            continue
        is_header = begun.lstrip().startswith("[")
        begun = ""
        keys = _first_path(parsed)
        if is_header:
            table = keys
            yield start, table
        elif keys:
            yield start, table + keys


def _first_path(parsed: Mapping[str, Any]) -> Path:
    """Return the path of nested keys of a statement: a.b = 1 gives ("a", "b")."""
    path: list[str] = []
    inside: Any = parsed
    while isinstance(inside, (dict, list)) and len(inside) == 1:
        if isinstance(inside, list):  # a header in double brackets
            inside = inside[0]
            if not isinstance(inside, dict):
                break
            continue
        key = next(iter(inside))
        path.append(key)
        inside = inside[key]
    return tuple(path)


def _agreement(stated: Path, path: Path) -> int:
    """Return how many keys a statement and a path share; 0 if one names a key of its own."""
    depth = 0
    for one, other in zip(stated, path, strict=False):
        if one != other:
            break
        depth += 1
    return depth if depth == len(stated) or depth == len(path) else 0


def syntax_error(error: tomllib.TOMLDecodeError, text: str) -> tuple[int, str]:
    """Return the line of a syntax error, and what is wrong there."""
    message = str(error)
    last = text.rstrip().count("\n") + 1
    position = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", message)
    if position is None:
        return last, message
    return int(position[1] or last), message[: position.start()]
