"""The whole distribution of a bounded number."""

from __future__ import annotations

from sfumato.mechanisms.density.distribution import Distribution
from sfumato.mechanisms.density.square_wave import SquareWave

__all__ = ["Distribution", "SquareWave"]
