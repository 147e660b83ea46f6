"""The store of a collector: tasks, reports, tallies, releases and tokens, safe in a crash."""

from __future__ import annotations

from sfumato.store.buckets import Buckets
from sfumato.store.interface import Filled, Release, Store, StoredTask
from sfumato.store.sqlite import SQLiteStore

__all__ = ["Buckets", "Filled", "Release", "SQLiteStore", "Store", "StoredTask"]
