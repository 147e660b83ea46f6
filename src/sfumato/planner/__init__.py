"""What will it cost, and what will it tell: answers before any data are collected."""

from __future__ import annotations

from sfumato.planner.advice import reasons, warnings
from sfumato.planner.compare import Candidate, answers, candidates, compare
from sfumato.planner.expected import Expected, expected
from sfumato.planner.pilot import Pilot
from sfumato.planner.plan import Option, Plan, Reach, plan
from sfumato.planner.shuffled import compare_shuffled

__all__ = [
    "Candidate",
    "Expected",
    "Option",
    "Pilot",
    "Plan",
    "Reach",
    "answers",
    "candidates",
    "compare",
    "compare_shuffled",
    "expected",
    "plan",
    "reasons",
    "warnings",
]
