"""Checks of single fields of a file; each error is one sentence that names the field."""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sfumato.core.domain import Domain, Label
from sfumato.core.exact import LARGEST_EPSILON, SMALLEST_EPSILON, is_finite_number
from sfumato.errors import ConfigurationError

__all__ = [
    "Path",
    "Problem",
    "address",
    "choice",
    "epsilon",
    "in_range",
    "is_whole",
    "items",
    "label",
    "refuse_unknown",
    "seconds",
    "shown",
    "table",
    "text",
    "title",
]

Path = tuple[str, ...]

LONGEST_TITLE: Final = 200
LONGEST_ADDRESS: Final = 2000
UNITS: Final[Mapping[str, int]] = {
    "second": 1,
    "minute": 60,
    "hour": 3600,
    "day": 86_400,
    "week": 604_800,
}


class Problem(ConfigurationError):
    """An error in a field, raised before the file and line of the field are known."""

    def __init__(self, path: Path, sentence: str) -> None:
        super().__init__(sentence)
        self.path = path


def shown(given: Any) -> str:
    """Return a value as text for an error message, shortened if it is long."""
    return reprlib.repr(given)


def is_whole(given: Any) -> bool:
    """Return whether a value is a whole number, and not a bool."""
    return isinstance(given, int) and not isinstance(given, bool)


def in_range(given: Any, path: Path, low: int, high: int) -> int:
    """Return a whole number if it is in low..high; raise Problem otherwise."""
    if not is_whole(given) or not low <= given <= high:
        raise Problem(
            path,
            f"{'.'.join(path)} is {shown(given)}; a whole number in {low}..{high} is expected.",
        )
    return int(given)


def epsilon(given: Any, path: Path) -> float:
    """Return an epsilon that mechanisms can keep; raise Problem otherwise."""
    low, high = SMALLEST_EPSILON, LARGEST_EPSILON
    if not is_finite_number(given) or not low <= given <= high:
        name = ".".join(path)
        raise Problem(path, f"{name} is {shown(given)}; a number in {low:g}..{high:g} is expected.")
    return float(given)


def table(given: Any) -> Any:
    """Return a table as a dict, also if it is a list of pairs, as in the canonical form.

    Any other value is returned unchanged.

    Examples
    --------
    >>> table([["online", 1.0]]), table(["online"])
    ({'online': 1.0}, ['online'])

    """
    if not isinstance(given, (list, tuple)):
        return given
    pairs = [tuple(pair) for pair in given if isinstance(pair, (list, tuple)) and len(pair) == 2]
    named = all(isinstance(name, (int, str)) for name, _ in pairs)
    return dict(pairs) if len(pairs) == len(given) and named else given


def text(given: Any, path: Path) -> str:
    """Return text that can be printed in one line; raise Problem otherwise."""
    if not isinstance(given, str) or not given.strip() or not given.isprintable():
        raise Problem(
            path, f"{'.'.join(path)} is {shown(given)}; printable text in one line is expected."
        )
    return given


def label(given: Any, path: Path) -> Label:
    """Return the label of an item; raise Problem unless it is a whole number or printable text."""
    if is_whole(given) or (isinstance(given, str) and given.strip() and given.isprintable()):
        return given  # type: ignore[no-any-return]
    raise Problem(
        path,
        f"{'.'.join(path)} holds {shown(given)}; labels are whole numbers or printable text.",
    )


def items(given: Any, path: Path) -> int | tuple[Label, ...]:
    """Return the number of items or a tuple of their labels; raise Problem if it is neither."""
    name = ".".join(path)
    if not (is_whole(given) or isinstance(given, (list, tuple))):
        raise Problem(
            path, f"{name} is {shown(given)}; a number of items or a list of labels is expected."
        )
    items_given = given if is_whole(given) else tuple(label(one, path) for one in given)
    try:
        Domain(items_given)
    except ConfigurationError as error:
        raise Problem(path, str(error).replace("domain", name, 1)) from error
    return items_given


def title(given: Any) -> str:
    """Return the title of a task; raise Problem unless it is short, printable text."""
    title_text = text(given, ("title",))
    if len(title_text) > LONGEST_TITLE:
        raise Problem(
            ("title",),
            f"title has {len(title_text)} characters; up to {LONGEST_TITLE} are expected.",
        )
    return title_text


def seconds(given: Any, path: Path) -> int:
    """Return a length of time in seconds, from text such as "15 minutes" or from a number."""
    if is_whole(given) and given > 0 and path != ("period",):
        return int(given)
    parsed = re.fullmatch(r"(\d{1,9}) *([a-z]+?)s?", given) if isinstance(given, str) else None
    if parsed is None or parsed[2] not in UNITS or not int(parsed[1]):
        raise Problem(
            path,
            f"{'.'.join(path)} is {shown(given)}; a whole number of {'s, '.join(UNITS)}s is "
            'expected, as in "15 minutes".',
        )
    return int(parsed[1]) * UNITS[parsed[2]]


def address(given: Any, path: Path) -> str:
    """Return an address on the network; raise Problem unless it is an http or https address."""
    good = isinstance(given, str) and given.isascii() and given.isprintable() and " " not in given
    if not good or not given.startswith(("http://", "https://")) or len(given) > LONGEST_ADDRESS:
        raise Problem(
            path, f"{'.'.join(path)} is {shown(given)}; an address with https:// is expected."
        )
    return str(given)


def choice(given: Any, path: Path, known: Sequence[str], words: str = "") -> str:
    """Return a name if it is known; otherwise raise Problem, which suggests a similar one."""
    if isinstance(given, str) and given in known:
        return given
    name = ".".join(path)
    expected = words or " or ".join(filter(None, [", ".join(known[:-1]), known[-1]]))
    near = _near(str(given), known)
    hint = f" (did you mean {near[0]!r}?)" if near else ""
    raise Problem(path, f"{name} is {shown(given)}; {expected} is expected{hint}.")


def refuse_unknown(given: Mapping[str, Any], known: Sequence[str], path: Path, have: str) -> None:
    """Raise Problem at the first unknown key; it suggests a similar one."""
    for key in given:
        if key in known:
            continue
        near = _near(key, known)
        hint = f"did you mean {near[0]!r}?" if near else f"{have} {', '.join(known)}."
        raise Problem((*path, key), f"{'.'.join((*path, key))} is no field of a task; {hint}")


def _near(given: str, known: Iterable[str]) -> list[str]:
    """Return a list with the known word that is most similar to a given one; empty if none is."""
    from difflib import get_close_matches  # noqa: PLC0415 -- for people who write task files

    return get_close_matches(given, list(known), n=1)
