"""Flat: streams of rise, no move and fall, with one level and no hierarchy."""

from __future__ import annotations

from sfumato.streams.flat.flat import Flat
from sfumato.streams.flat.flat_device import FlatDevice

__all__ = ["Flat", "FlatDevice"]
