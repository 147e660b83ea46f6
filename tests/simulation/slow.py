"""A stream of another package: it has no simulated devices and no outlook of its own."""

from __future__ import annotations

from typing import ClassVar

from sfumato.core.fleet import DeviceFleet, Population
from sfumato.core.outlook import Outlook
from sfumato.randomness import Source
from sfumato.streams.window import Window

__all__ = ["Slow"]


class Slow(Window):
    """A window that keeps to what every stream has."""

    outlook_class: ClassVar[type[Outlook]] = Outlook

    def fleet(self, population: Population, rng: Source) -> DeviceFleet:  # type: ignore[override]
        return DeviceFleet(self, population, rng)
