"""The checks of a field: that it is a whole number, a number or one of several names.

Each check returns the value, or raises ConfigurationError with one sentence that names the field,
the value and what would be right.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import TypeVar

from sfumato.core.exact import is_finite_number, is_whole_number
from sfumato.errors import ConfigurationError

__all__ = ["check_number", "check_one_of", "check_whole"]

T = TypeVar("T")


def check_whole(name: str, value: int, least: int, most: int | None = None) -> int:
    """Return the value if it is a whole number in least..most (without ``most``: from least on).

    Examples
    --------
    >>> check_whole("devices", 0, 1)
    Traceback (most recent call last):
    ...
    sfumato.errors.ConfigurationError: devices is 0; a whole number from 1 on is expected.

    """
    if is_whole_number(value) and least <= value and (most is None or value <= most):
        return int(value)
    within = f"from {least} on" if most is None else f"in {least}..{most}"
    raise ConfigurationError(f"{name} is {value!r}; a whole number {within} is expected.")


def check_number(
    name: str,
    value: float,
    *,
    least: float = -inf,
    above: float = -inf,
    most: float = inf,
    below: float = inf,
) -> float:
    """Return the value if it is a finite number within the bounds.

    The numbers ``least`` and ``most`` are allowed themselves; ``above`` and ``below`` are not.

    Examples
    --------
    >>> check_number("share", 1.5, above=0, most=1)
    Traceback (most recent call last):
    ...
    sfumato.errors.ConfigurationError: share is 1.5; a number above 0 and up to 1 is expected.

    """
    if is_finite_number(value) and least <= value <= most and above < value < below:
        return float(value)
    expected = _interval(least, above, most, below)
    raise ConfigurationError(f"{name} is {value!r}; {expected} is expected.")


def _interval(least: float, above: float, most: float, below: float) -> str:
    """Return a phrase that describes the numbers within the bounds."""
    if max(least, above) == -inf and min(most, below) == inf:
        return "a finite number"
    if min(most, below) == inf:
        if above == 0:
            return "a positive number"
        return f"a number above {above:g}" if above > least else f"a number from {least:g} on"
    if max(least, above) == -inf:
        return f"a number below {below:g}" if below < most else f"a number up to {most:g}"
    if above > least:
        return f"a number {'between' if below < most else 'above'} {above:g} and " + (
            f"{below:g}" if below < most else f"up to {most:g}"
        )
    return f"a number from {least:g} to {'below ' if below < most else ''}{min(most, below):g}"


def check_one_of(name: str, value: T, known: Iterable[T]) -> T:
    """Return the value if it is one of the known ones.

    Examples
    --------
    >>> check_one_of("noise", "gauss", ("laplace", "geometric"))
    Traceback (most recent call last):
    ...
    sfumato.errors.ConfigurationError: noise is 'gauss'; laplace or geometric is expected.

    """
    names = list(known)
    if value in names:
        return value
    *others, last = map(str, names)
    expected = f"{', '.join(others)} or {last}" if others else last
    raise ConfigurationError(f"{name} is {value!r}; {expected} is expected.")
