"""The items that a value can be: the numbers 0..d-1 or labels, which are encoded as numbers."""

from __future__ import annotations

import reprlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from sfumato import frames
from sfumato.arrays import Array, Ints
from sfumato.core.exact import is_whole_number
from sfumato.errors import ConfigurationError, InputError

__all__ = ["Domain", "Label", "printable", "shortened"]

Label = str | int
LARGEST: Final = 1 << 24
_LISTED: Final = 12


def shortened(labels: Sequence[Label]) -> str:
    """Return the first 12 labels in one line, and how many more there are.

    Examples
    --------
    >>> shortened(("home", "work")), shortened(range(100))
    ('home, work', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 88 more')

    """
    more = len(labels) - _LISTED
    return ", ".join(map(str, labels[:_LISTED])) + (f" and {more:,} more" if more > 0 else "")


def printable(label: Any) -> str:
    r"""Return a label as printable text, for any characters in it.

    Examples
    --------
    >>> printable("cat"), printable("\x1b[31m")
    ('cat', "'\\x1b[31m'")

    """
    text = str(label)
    return text if text.isprintable() and text else repr(text)


@dataclass(frozen=True)
class Domain:
    """A fixed, public list of items.

    Parameters
    ----------
    items
        The number of items, which are then called 0, 1, 2, ...; or a tuple of their labels.

    Examples
    --------
    >>> Domain(("cat", "dog")).encode(["dog", "cat", "dog"]).tolist()
    [1, 0, 1]
    >>> Domain(3).encode([2, 0]).tolist()
    [2, 0]
    >>> Domain(("cat", "dog")).encode(["bird"])
    Traceback (most recent call last):
    ...
    sfumato.errors.InputError: values[0] is 'bird'; the domain has the items 'cat', 'dog'.

    """

    items: int | tuple[Label, ...]

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless there are enough distinct items to hide a value among."""
        if isinstance(self.items, bool) or not isinstance(self.items, (int, tuple)):
            raise ConfigurationError(
                f"domain is {self.items!r}; a number of items or a list of labels is expected."
            )
        if isinstance(self.items, tuple):
            for label in self.items:
                if isinstance(label, bool) or not isinstance(label, (str, int)):
                    raise ConfigurationError(
                        f"domain holds {label!r}; labels are strings or whole numbers."
                    )
            if len(set(self.items)) < len(self.items):
                twice = Counter(self.items).most_common(1)[0][0]
                raise ConfigurationError(
                    f"domain names {twice!r} more than once; every label must be there once."
                )
        if not 2 <= self.size <= LARGEST:
            raise ConfigurationError(f"domain has {self.size} item(s); 2..{LARGEST} are possible.")

    @classmethod
    def of(cls, items: int | Sequence[Label]) -> Domain:
        """Return a domain from a number of items or from a sequence of labels."""
        if isinstance(items, (list, tuple, range, np.ndarray)):
            return cls(tuple(x.item() if isinstance(x, np.generic) else x for x in items))
        return cls(items.item() if isinstance(items, np.generic) else items)  # type: ignore[arg-type]

    @property
    def size(self) -> int:
        """How many items there are."""
        return self.items if isinstance(self.items, int) else len(self.items)

    @property
    def labels(self) -> Sequence[Label]:
        """The names of the items, in the order of their codes."""
        return range(self.items) if isinstance(self.items, int) else self.items

    @cached_property
    def _codes(self) -> dict[Label, int]:
        return {label: code for code, label in enumerate(self.labels)}

    def code(self, label: Any) -> int | None:
        """Return the code of a label; None if it is not in the domain."""
        if isinstance(self.items, int):
            return int(label) if is_whole_number(label) and 0 <= label < self.items else None
        return self._codes.get(label) if isinstance(label, str) or is_whole_number(label) else None

    def encode(self, values: Any) -> Ints:
        """Return the code of each value; raise InputError at the first one outside the domain."""
        array = frames.column(values)
        if isinstance(self.items, int):
            return self._encode_numbers(array, self.items)
        labels = array.tolist()
        plain = set(map(type, labels)) <= {int, str}
        codes = list(map(self._codes.get if plain else self.code, labels))
        if None in codes:
            index = codes.index(None)
            raise InputError(
                f"values[{index}] is {reprlib.repr(labels[index])}; "
                f"the domain has the items {self.shown()}."
            )
        return np.array(codes, dtype=np.int64)

    def _encode_numbers(self, array: Array, size: int) -> Ints:
        if array.dtype.kind not in "iu":
            values = array.tolist()
            fractional = array.dtype.kind == "f"
            bad = array % 1 != 0 if fractional else [not is_whole_number(x) for x in values]
            if array.dtype.kind != "O" or any(bad):
                index = int(np.argmax(bad))
                raise InputError(
                    f"values[{index}] is {reprlib.repr(values[index])}; "
                    f"whole numbers 0..{size - 1} are expected."
                )
        if int(array.min()) < 0 or int(array.max()) >= size:
            index = int(np.flatnonzero((array < 0) | (array >= size))[0])
            raise InputError(
                f"values[{index}] is {array[index]}; the domain has the items 0..{size - 1}."
            )
        return array.astype(np.int64, copy=False)

    def shown(self) -> str:
        """Return the first 8 labels as text for an error message, and how many there are in all."""
        few = 8
        shown = ", ".join(repr(label) for label in self.labels[:few])
        return shown + (f", ... ({self.size} in all)" if self.size > few else "")
