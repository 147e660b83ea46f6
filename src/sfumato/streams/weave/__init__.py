"""Weave: statistics over a horizon from devices whose values change a few times."""

from __future__ import annotations

from sfumato.extras import on_demand

__getattr__, __dir__ = on_demand(__name__, __file__)
