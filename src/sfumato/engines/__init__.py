"""Ways to turn many batches of reports into one tally; they all agree bit for bit."""

from __future__ import annotations

from sfumato.engines.local import aggregate

__all__ = ["aggregate"]
