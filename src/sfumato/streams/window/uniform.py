"""Methods that do not depend on the data: equal parts, or all for every w-th period.

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
    """A curator that spends a w-th of the whole in each period.

    If the population is divided, after the first window a device is free exactly every w periods,
    and all free devices answer; so the cohorts are the paper's w groups, drawn by the devices' own
    coins.
    """

    unbiased: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise ConfigurationError if the window has too little for each period."""
        super().__post_init__()
        self.each = self.division.even

    def release(self, period: int) -> Step:
        """Ask with a w-th of the whole, and publish."""
        del period
        return self.publish((yield from self.asked(self.each)))


@dataclass(eq=False, repr=False)
class Sampling(WindowCurator):
    """A curator that spends the whole in every w-th period."""

    def release(self, period: int) -> Step:
        """Ask in periods 1, w + 1, 2w + 1, ...; repeat the last release in between."""
        if (period - 1) % self.window:
            return self.repeat()
        return self.publish((yield from self.asked(self.division.whole)))
