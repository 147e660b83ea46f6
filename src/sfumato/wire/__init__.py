"""What crosses a boundary, and how it is judged."""

from __future__ import annotations

from sfumato.wire.task import Task
from sfumato.wire.values import TaskValues

__all__ = ["Task", "TaskValues"]
