"""Hot loops, compiled by numba where it is installed, and not before they are first run.

A server that decodes millions of reports is worth a compiler; a device that sends one is not. So
nothing here imports numba until a loop runs, and whoever calls one asks :func:`available` first
and has a way in numpy with the same result, bit for bit. ``NUMBA_DISABLE_JIT=1`` in the
environment switches compiled loops off.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache, cached_property, update_wrapper
from importlib import import_module
from typing import Any, Final, Generic, ParamSpec, TypeVar

__all__ = ["WORTH_COMPILING", "available", "compiled"]

WORTH_COMPILING: Final = 1 << 25  # steps of a loop that take numpy about as long as to start numba

P = ParamSpec("P")
R = TypeVar("R")


@cache
def _numba() -> Any:
    """Return numba, or None if it is not there or does not work with this numpy."""
    try:
        return import_module("numba")
    except ImportError:
        return None


def available() -> bool:
    """Return whether loops are compiled: numba is installed and not switched off."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0") and _numba() is not None


class _Compiled(Generic[P, R]):
    """A function that is compiled when it is first called, for the types it is called with."""

    def __init__(self, function: Callable[P, R]) -> None:
        self._function = function
        update_wrapper(self, function)

    @cached_property
    def _quick(self) -> Callable[P, R]:
        jit = _numba().njit
        try:
            # Beside the source, or in the user's cache folder if the installation is read-only.
            quick = jit(cache=True, nogil=True)(self._function)
        except RuntimeError:  # no place to keep what is compiled: it is compiled in each process
            quick = jit(nogil=True)(self._function)
        return quick  # type: ignore[no-any-return]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return (self._quick if available() else self._function)(*args, **kwargs)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function, compiled at its first call; as it is (right, but slow) without numba.

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
