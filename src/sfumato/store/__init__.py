"""The store of a collector: tasks, reports, tallies, releases and tokens, safe in a crash."""

from __future__ import annotations

from sfumato.store.epochs import EngineProgress, Epoch
from sfumato.store.interface import Store
from sfumato.store.records import Filled, LogRow, Release, StoredTask
from sfumato.store.seen_ids import Full, SeenIds
from sfumato.store.sqlite import SQLiteStore

__all__ = [
    "EngineProgress",
    "Epoch",
    "Filled",
    "Full",
    "LogRow",
    "Release",
    "SQLiteStore",
    "SeenIds",
    "Store",
    "StoredTask",
]
