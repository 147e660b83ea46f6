"""Planning: what a task will cost and tell, before any data are collected."""

from __future__ import annotations

from sfumato.core.outlook import Expected, Option
from sfumato.planner.comparison import Candidate, answers, candidates, compare
from sfumato.planner.planning import Plan, plan
from sfumato.planner.shuffled import compare_shuffled
from sfumato.streams.pilot import Pilot

__all__ = [
    "Candidate",
    "Expected",
    "Option",
    "Pilot",
    "Plan",
    "answers",
    "candidates",
    "compare",
    "compare_shuffled",
    "plan",
]
