"""The sizes that a mechanism may take if nobody has chosen one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

__all__ = ["SizeRange"]


@dataclass(frozen=True)
class SizeRange:
    """The values of one field that was left open, such as the size of a subset.

    Parameters
    ----------
    field_name
        The name of the field.
    least, largest, step
        The smallest and the largest value, and the distance between two values.
    fixed
        The values of other fields that were left open, which stay the same over this range.

    """

    field_name: str
    least: int
    largest: int
    step: int = 1
    fixed: Mapping[str, int] = field(default_factory=dict)

    def doubled(self) -> Iterator[int]:
        """Yield the least value, values that double, and the largest one.

        Examples
        --------
        >>> [*SizeRange("subset_size", 3, 40).doubled()]
        [3, 6, 12, 24, 40]

        """
        largest = self.largest - (self.largest - self.least) % self.step
        value = self.least
        while value < largest:
            yield value
            value += max(value // self.step, 1) * self.step
        yield largest

    def fields(self, value: int) -> dict[str, int]:
        """Return the fields that were left open, with this value for the one of the range."""
        return {**self.fixed, self.field_name: value}
