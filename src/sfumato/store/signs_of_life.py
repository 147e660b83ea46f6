"""Signs of life of the thread that closes periods, which may work for long with much to move."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import get_ident

__all__ = ["SignsOfLife"]


class SignsOfLife:
    """Counts how often the thread that closes periods comes to the store.

    Examples
    --------
    >>> signs = SignsOfLife()
    >>> with signs.of_this_thread():
    ...     signs.give()
    True
    >>> signs.give(), signs.count
    (False, 1)

    """

    def __init__(self) -> None:
        self.count = 0
        self._thread: int | None = None

    @contextmanager
    def of_this_thread(self) -> Iterator[None]:
        """Let this thread be the one that closes periods, until the block ends."""
        self._thread = get_ident()
        try:
            yield
        finally:
            self._thread = None

    def give(self) -> bool:
        """Note that a thread comes to the store; return whether it is the one that closes."""
        if get_ident() != self._thread:
            return False
        self.count += 1
        return True
