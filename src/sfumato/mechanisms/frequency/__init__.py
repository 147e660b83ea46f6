"""Which share of people holds each item."""

from __future__ import annotations

from sfumato.mechanisms.frequency.oracle import FrequencyOracle

__all__ = ["FrequencyOracle"]
