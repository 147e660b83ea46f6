"""The shuffle model: how well a report is hidden among others, and how many people it needs."""

from __future__ import annotations

from sfumato.accounting.shuffle.bounds import Amplified, amplify, assumption_of, best
from sfumato.accounting.shuffle.compose import BatchedReport, Levels, composed
from sfumato.accounting.shuffle.crowd import Crowd
from sfumato.accounting.shuffle.inverse import Requirement, calibrated, holds, people_needed
from sfumato.accounting.shuffle.named_bounds import BOUNDS, Hiding
from sfumato.accounting.shuffle.profile import delta_above, delta_below

__all__ = [
    "BOUNDS",
    "Amplified",
    "BatchedReport",
    "Crowd",
    "Hiding",
    "Levels",
    "Requirement",
    "amplify",
    "assumption_of",
    "best",
    "calibrated",
    "composed",
    "delta_above",
    "delta_below",
    "holds",
    "people_needed",
]
