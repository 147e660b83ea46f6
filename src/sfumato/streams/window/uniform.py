"""Methods that never look at the data: each period has the same, or every w-th has all.

Ren, Shi, Yu, Yang, Zhao, Xu, "LDP-IDS: Local Differential Privacy for Infinite Data Streams"
(2022).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sfumato.streams.window.curators import Step, WindowCurator

__all__ = ["Sampling", "Uniform"]


@dataclass(eq=False, repr=False)
class Uniform(WindowCurator):
    """Each period has a w-th of the whole.

    If the population is divided, a device is free exactly every w periods after the first window
    and everybody who is free answers, so the cohorts are the paper's w groups, drawn by the
    devices' own coins.
    """

    unbiased: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Refuse a window that has too little for each period."""
        super().__post_init__()
        self.each = self.division.even

    def release(self, period: int) -> Step:
        """Ask for a w-th of the whole."""
        del period
        return self.publish((yield from self.asked(self.each)))


@dataclass(eq=False, repr=False)
class Sampling(WindowCurator):
    """Every w-th period has the whole."""

    def release(self, period: int) -> Step:
        """Ask in periods 1, w + 1, 2w + 1, ...; repeat the release in between."""
        if (period - 1) % self.window:
            return self.repeat()
        return self.publish((yield from self.asked(self.division.whole)))
