"""Our second method: filters whose items learn from each other, and a larger first cohort.

The motion of a single item is hard to see in its own noisy answers, but all answers together show
how all items move. And a level that is known well from the first period on helps in every later
one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from sfumato.streams.bank import MOTIONS, STILL, Bank
from sfumato.streams.window.curators import POSITIVE
from sfumato.streams.window.filtered import Filtered

__all__ = ["Pooled"]

DOUBT: Final = 1.4
"""The factor of posterior variances.

Items that learn from each other have smaller variances, which are slightly too small for curves
that jump: with 1.2, 95% intervals cover 93-94% there.
"""

FIRST: Final = 0.1
"""The share of the devices that the first period asks beyond its even part."""


@dataclass(eq=False, repr=False, kw_only=True)
class Pooled(Filtered):
    """The method ``filtered`` for curves whose items move alike, or not at all.

    Parameters
    ----------
    doubt
        The factor of posterior variances.
    first
        The share of the devices that the first period asks beyond its even part. They are free
        again when their window is over, and answer in turn like all others.

    """

    doubt: float = field(default=DOUBT, metadata=POSITIVE)
    first: float = FIRST

    def __post_init__(self) -> None:
        """Raise ConfigurationError unless the first cohort is a share of the devices."""
        self._check_shares("first")
        super().__post_init__()

    def size(self, period: int) -> float:
        """Return how many devices a period asks; the first window shares what period 1 leaves."""
        if period > self.window:
            return self.each
        later = (1 - self.first) * self.each
        return later if period > 1 else later + self.first * self.division.whole

    def _new_bank(self) -> Bank:
        return Bank(
            self.protocol.width,
            motions=(*STILL, *MOTIONS),
            switch=self.switch,
            apart=True,
            surprise=self.restart,
            pooled=True,
            unit=self.size(1) / self.each,
        )
