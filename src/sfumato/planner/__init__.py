"""Planning: what a task will cost and tell, before any data are collected."""

from __future__ import annotations

from sfumato.extras import on_demand

__getattr__, __dir__ = on_demand(__name__, __file__)
