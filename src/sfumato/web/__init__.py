"""What every server of this package shares: limits, problem documents, logs, and the loop."""

from __future__ import annotations
