"""The shuffle model: how well a report is hidden among others, and how many people it needs."""

from __future__ import annotations

from sfumato.extras import on_demand

__getattr__, __dir__ = on_demand(__name__, __file__)
