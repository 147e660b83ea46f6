"""Periods that wait for an engine, and what is said of them."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.core.duration import ago

__all__ = ["EngineLag"]


@dataclass(frozen=True)
class EngineLag:
    """Periods that have closed and wait for an engine that counts them.

    Parameters
    ----------
    first, last
        The first and the last of them.
    since
        The time since which the first one waits, in seconds since 1970.

    """

    first: int
    last: int
    since: float

    def words(self, now: float) -> str:
        """Return the same in words, as the end of a sentence."""
        waiting = ago(max(now - self.since, 1.0)).removesuffix(" ago")
        if self.first == self.last:
            return f"period {self.first:,} has closed and waits for the engine, for {waiting}"
        return (
            f"periods {self.first:,} to {self.last:,} have closed and wait for the engine, the "
            f"first one for {waiting}"
        )
