"""The share of people who hold each item."""

from __future__ import annotations

from sfumato.mechanisms.frequency.oracle import FrequencyOracle

__all__ = ["FrequencyOracle"]
