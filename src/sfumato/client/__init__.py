"""Talking to a collector: its tasks, its answers, and each period as it closes.

Only the standard library is used. A refusal raises
:class:`~sfumato.errors.InputError` with the collector's own sentence.
"""

from __future__ import annotations

from sfumato.client.collector_events import periods
from sfumato.client.collectors import addresses, ask, joined_at, task_of
from sfumato.client.published_answers import Collector, CollectorClient, TaskClient

__all__ = [
    "Collector",
    "CollectorClient",
    "TaskClient",
    "addresses",
    "ask",
    "joined_at",
    "periods",
    "task_of",
]
