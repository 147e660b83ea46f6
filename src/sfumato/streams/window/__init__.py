"""Streams without an end, with at most epsilon in any w consecutive periods."""

from __future__ import annotations

from sfumato.extras import on_demand

__getattr__, __dir__ = on_demand(__name__, __file__)
