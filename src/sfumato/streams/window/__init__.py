"""Streams without an end, with at most epsilon in any w consecutive periods."""

from __future__ import annotations

from sfumato.streams.window.curators import Step, WindowCurator, WindowEstimate
from sfumato.streams.window.filtered import history
from sfumato.streams.window.readings import Reading
from sfumato.streams.window.tiers import TieredEstimate, Tiers
from sfumato.streams.window.window import Window
from sfumato.streams.window.window_device import WindowDevice, WindowLedger
from sfumato.streams.window.window_methods import METHODS

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
