"""What will it cost, and what will it tell: answers before any data are collected."""

from __future__ import annotations

from sfumato.planner.compare import Candidate, candidates, compare

__all__ = ["Candidate", "candidates", "compare"]
