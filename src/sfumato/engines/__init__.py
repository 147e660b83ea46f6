"""Engines that turn many reports into tallies; all of them agree bit by bit."""

from __future__ import annotations

from sfumato.engines.counting import MechanismCounter, RowCounter, TaskCounter, counter_of
from sfumato.engines.lake import Lake
from sfumato.engines.local import Engine, Local, aggregate, tally
from sfumato.engines.rows import Row
from sfumato.engines.tally_files import CountedReports

__all__ = [
    "CountedReports",
    "Engine",
    "Lake",
    "Local",
    "MechanismCounter",
    "Row",
    "RowCounter",
    "TaskCounter",
    "aggregate",
    "counter_of",
    "tally",
]
