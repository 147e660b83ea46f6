"""Weave: statistics over a horizon from devices whose values change a few times."""

from __future__ import annotations

from sfumato.streams.weave.curve import Curve, online, smoothed
from sfumato.streams.weave.weave import Weave
from sfumato.streams.weave.weave_device import WeaveDevice

__all__ = [
    "Curve",
    "Weave",
    "WeaveDevice",
    "online",
    "smoothed",
]
