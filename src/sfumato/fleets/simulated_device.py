"""Devices that hold one value each and exist only in this process, so that the truth is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sfumato.core.domain import Label
from sfumato.core.mechanism import Mechanism
from sfumato.randomness import Source

__all__ = ["SimulatedDevice", "simulate"]


@dataclass(frozen=True)
class SimulatedDevice:
    """A device that holds one value; only a randomized message ever leaves it.

    Examples
    --------
    >>> from sfumato import GRR, seeded
    >>> device = SimulatedDevice("cat")
    >>> len(device.message(GRR(1.0, ("cat", "dog")), seeded(1)))
    1

    """

    value: Label

    def message(self, mechanism: Mechanism, rng: Source) -> bytes:
        """Return the bytes that the device sends."""
        return mechanism.randomize(self.value, rng).tobytes()


def simulate(values: Sequence[Label], n: int, rng: Source) -> list[SimulatedDevice]:
    """Return n devices whose values are drawn from a list, with replacement."""
    drawn = rng.simulator().integers(len(values), size=n)
    return [SimulatedDevice(values[index]) for index in drawn.tolist()]
