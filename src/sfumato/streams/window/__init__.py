"""Streams without an end: at most epsilon in any w consecutive periods."""

from __future__ import annotations

from sfumato.streams.window.curators import Step, WindowCurator, WindowEstimate
from sfumato.streams.window.device import WindowDevice, WindowLedger
from sfumato.streams.window.filtered import history
from sfumato.streams.window.methods import METHODS
from sfumato.streams.window.protocol import Window
from sfumato.streams.window.readings import Reading
from sfumato.streams.window.tiers import TieredEstimate, Tiers

__all__ = [
    "METHODS",
    "Reading",
    "Step",
    "TieredEstimate",
    "Tiers",
    "Window",
    "WindowCurator",
    "WindowDevice",
    "WindowEstimate",
    "WindowLedger",
    "history",
]
