"""Threads: when a device looks at its value, and what it sends.

A device follows one thread, drawn before it sees any data. On a *difference* thread (span g,
offset phi) it looks at the periods phi, phi + g, phi + 2g, ... and sends the changes since the look
before; on a *snapshot* thread it looks once and sends the whole value.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["SNAPSHOT", "Thread"]

SNAPSHOT = 0
"""The span of a snapshot thread, which looks once."""


@dataclass(frozen=True, order=True)
class Thread:
    """The times at which a device looks at its value.

    Parameters
    ----------
    span
        The number of periods between two looks; 0 for a snapshot.
    offset
        The start of the looks, below the span; for a snapshot, the period of its look.
    block
        For a snapshot, the index of its block of entries.

    Examples
    --------
    >>> Thread(4, 1).looks(12)
    (1, 5, 9)
    >>> Thread(4, 0).edges(12, anchored=False)
    ((0, 4), (4, 8), (8, 12))
    >>> Thread(4, 0).edges(12, anchored=True)
    ((4, 8), (8, 12))

    """

    span: int
    offset: int
    block: int = 0

    @property
    def is_snapshot(self) -> bool:
        """Whether the thread looks only once."""
        return self.span == SNAPSHOT

    @property
    def first(self) -> int:
        """The period of the first look."""
        return self.offset or self.span

    def looks_at(self, period: int) -> bool:
        """Return whether the device looks at its value in a period."""
        if self.is_snapshot:
            return period == self.offset
        return period >= self.first and (period - self.offset) % self.span == 0

    def looks(self, periods: int) -> tuple[int, ...]:
        """Return the periods in which the device looks at its value."""
        if self.is_snapshot:
            return (self.offset,)
        return tuple(range(self.first, periods + 1, self.span))

    def differences(self, periods: int, *, anchored: bool) -> int:
        """Return the number of differences that the thread sends."""
        return (periods - self.first) // self.span + (not anchored)

    def edges(self, periods: int, *, anchored: bool) -> tuple[tuple[int, int], ...]:
        """Return the pairs of periods whose difference is sent at the end of the second.

        The state before the first period is empty. An anchored thread leaves out its first look:
        snapshots show the level, and the first value does not count as a change.
        """
        looks = self.looks(periods)
        if self.is_snapshot:
            return ((0, looks[0]),)
        pairs = tuple(zip((0, *looks[:-1]), looks, strict=True))
        return pairs[1:] if anchored else pairs
