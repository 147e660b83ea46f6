"""Simulated devices: the values they hold over time, and their results on any stream."""

from __future__ import annotations

from sfumato.extras import on_demand

__getattr__, __dir__ = on_demand(__name__, __file__)
