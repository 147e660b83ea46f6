"""The whole distribution of a bounded number."""

from __future__ import annotations

from sfumato.mechanisms.density.distribution import Distribution

__all__ = ["Distribution"]
