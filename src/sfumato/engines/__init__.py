"""Engines that turn many reports into tallies; all of them agree bit by bit."""

from __future__ import annotations

from sfumato.engines.local import aggregate, tally
from sfumato.engines.row_files import exported
from sfumato.engines.rows import Row

__all__ = ["Row", "aggregate", "exported", "tally"]
