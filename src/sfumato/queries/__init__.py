"""Questions about estimates; all of this is post-processing and costs no privacy."""

from __future__ import annotations

from sfumato.extras import on_demand

__getattr__, __dir__ = on_demand(__name__, __file__)
