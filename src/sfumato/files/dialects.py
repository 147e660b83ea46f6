"""How a CSV file is written: its separator, its encoding, and the texts that mean "no value"."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from sfumato.errors import ConfigurationError

__all__ = ["USUAL", "Dialect"]


@dataclass(frozen=True)
class Dialect:
    r"""How a CSV file is written.

    Examples
    --------
    >>> Dialect(separator="tab", missing=("NA",)).delimiter
    '\t'
    """

    separator: str = ","
    """The character between two cells; ``tab`` for a tabulator."""
    encoding: str = "utf-8"
    """The name of the encoding, such as utf-16 or latin-1."""
    missing: tuple[str, ...] = ()
    """Texts that mean "no value", blanks around them aside; an empty cell always does."""

    def __post_init__(self) -> None:
        """Raise ConfigurationError for a separator or an encoding that no file can have."""
        mark = self.delimiter
        if len(mark) != 1 or not mark.isascii() or mark in '"\r\n\0':
            raise ConfigurationError(
                f"separator is {self.separator!r}; one ASCII character such as ; or the word tab "
                "is expected."
            )
        try:
            codecs.getincrementaldecoder(self.encoding)
            "".encode(self.encoding)  # of codecs, only those of text can do this
        except (LookupError, ValueError, TypeError):
            raise ConfigurationError(
                f"encoding is {self.encoding!r}; a name such as utf-8, utf-16 or latin-1 is "
                "expected."
            ) from None

    @property
    def delimiter(self) -> str:
        """The character between two cells."""
        return "\t" if self.separator == "tab" else self.separator

    @property
    def is_utf8(self) -> bool:
        """Whether the bytes of a file are UTF-8 as they are."""
        return codecs.lookup(self.encoding).name in {"utf-8", "utf-8-sig"}


USUAL = Dialect()
"""Commas, UTF-8, and empty cells where there is no value."""
