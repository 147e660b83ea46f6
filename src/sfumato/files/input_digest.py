"""The digest of what was read of an input, so that it goes on as what it began as."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from sfumato.errors import InputError

__all__ = ["InputDigest"]

EMPTY: Final = ""
"""The digest in journals that were begun before there were any."""


class InputDigest:
    """The digest of an input from some byte on, compared with a recorded one on the way.

    Parameters
    ----------
    name
        The name of the input, for an error message.
    position
        The position of the next byte that comes.
    since
        The position of the first byte that is part of the digest.
    until, recorded
        The position up to which bytes were read before, and their digest.

    """

    def __init__(
        self, name: str, position: int, since: int, until: int, recorded: str = EMPTY
    ) -> None:
        self._name, self._recorded = name, recorded
        self.position, self.since, self.until = position, since, until
        self._hash = sha256()

    def update(self, data: bytes) -> None:
        """Add further bytes; raise InputError if those read before have changed."""
        start, edge = max(0, self.since - self.position), self.until - self.position
        self.position += len(data)
        if 0 < edge <= len(data):
            self._hash.update(data[start:edge])
            if self._recorded not in (EMPTY, self.text()):
                raise InputError(
                    f"{self._name} is not what was read before: its first {self.until:,} bytes "
                    "have changed; go on with the input that the output was begun with."
                )
            start = max(start, edge)
        self._hash.update(data[start:])

    def text(self) -> str:
        """Return the digest of all bytes so far."""
        return self._hash.hexdigest()

    def refuse_short(self) -> None:
        """Raise InputError if the input has ended before what was read of it."""
        if self.position < self.until:
            raise InputError(
                f"{self._name} has {self.position:,} bytes, fewer than the {self.until:,} that "
                "were read of it before; go on with the input that the output was begun with."
            )
