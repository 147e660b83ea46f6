"""A raw stream of amounts that a trusted curator publishes, with accurate range sums."""

from __future__ import annotations

from sfumato.extras import on_demand

__getattr__, __dir__ = on_demand(__name__, __file__)
