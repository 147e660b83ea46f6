"""Hot loops, which numba compiles at their first call if it is installed.

A server that decodes millions of reports needs a compiler; a device that sends one does not. So
numba is not imported until a loop runs. Callers ask :func:`available` first, and have a numpy
version with the same result, bit by bit. ``NUMBA_DISABLE_JIT=1`` in the environment switches
compiled loops off.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from typing import Any, Final, Generic, ParamSpec, TypeVar

__all__ = ["WORTH_COMPILING", "available", "compiled"]

# The number of loop steps for which numpy takes about as long as numba to start.
WORTH_COMPILING: Final = 1 << 25

P = ParamSpec("P")
R = TypeVar("R")


@cache
def _numba() -> Any:
    """Return numba; None if it is not installed or does not work with this numpy."""
    try:
        return import_module("numba")
    except ImportError:
        return None


def available() -> bool:
    """Return whether loops are compiled: numba is installed and not switched off."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0") and _numba() is not None


class _Compiled(Generic[P, R]):
    """A function that is compiled at its first call, for the types of its arguments."""

    def __init__(self, function: Callable[P, R]) -> None:
        self._function = function
        update_wrapper(self, function)

    @cached_property
    def _quick(self) -> Callable[P, R]:
        jit = _numba().njit
        try:
            # The cache is beside the source, or in the user's cache folder if the installation is
            # read-only.
            quick = jit(cache=True, nogil=True)(self._function)
        except RuntimeError:  # there is no place for the cache, so each process compiles again
            quick = jit(nogil=True)(self._function)
        return quick  # type: ignore[no-any-return]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return (self._quick if available() else self._function)(*args, **kwargs)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function, compiled at its first call; without numba it stays slow but right.

    Examples
    --------
    >>> @compiled
    ... def total(numbers):
    ...     found = 0
    ...     for number in numbers:
    ...         found += number
    ...     return found
    >>> total.__name__
    'total'

    """
    return _Compiled(function)
