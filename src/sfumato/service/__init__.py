"""The collector: it receives reports, counts each once, closes periods and answers questions."""

from __future__ import annotations

from sfumato.service.collector import Collector
from sfumato.service.running_task import RunningTask

__all__ = ["Collector", "RunningTask"]
