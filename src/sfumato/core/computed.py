"""Properties that are computed once for each object, while other objects' need not wait."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

__all__ = ["Computed"]

T = TypeVar("T")


class Computed(Generic[T]):
    """A property that is computed when it is read for the first time, and kept.

    ``functools.cached_property`` does the same, but before Python 3.12 all objects of a class wait
    while it is computed for one of them, so a small task would wait for a large one. Here two
    threads that read the same property of the same object at once may both compute it.

    Parameters
    ----------
    compute
        The method that computes it.

    Examples
    --------
    >>> class Square:
    ...     side = 3
    ...     @Computed
    ...     def area(self) -> int:
    ...         print("computed")
    ...         return self.side**2
    >>> square = Square()
    >>> square.area, square.area
    computed
    (9, 9)

    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> Self | T:
        """Return what was computed; it is kept in the object, and found there from now on."""
        if instance is None:
            return self
        kept: T = instance.__dict__.setdefault(self._name, self._compute(instance))
        return kept
