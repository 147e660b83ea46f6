"""What will it cost, and what will it tell: answers before any data are collected."""

from __future__ import annotations

from sfumato.planner.compare import Candidate, answers, candidates, compare
from sfumato.planner.shuffled import compare_shuffled

__all__ = ["Candidate", "answers", "candidates", "compare", "compare_shuffled"]
