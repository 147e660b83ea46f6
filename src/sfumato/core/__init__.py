"""The contract: mechanisms, tallies, estimates, guarantees. Imports numpy and nothing above."""

from __future__ import annotations

from sfumato.core.contrast import Contrast, Contrasts
from sfumato.core.domain import Domain
from sfumato.core.estimate import Covariance, Estimate, FrequencyEstimate
from sfumato.core.guarantee import Guarantee
from sfumato.core.law import Law
from sfumato.core.mechanism import Mechanism
from sfumato.core.tally import Tallies, Tally

__all__ = [
    "Contrast",
    "Contrasts",
    "Covariance",
    "Domain",
    "Estimate",
    "FrequencyEstimate",
    "Guarantee",
    "Law",
    "Mechanism",
    "Tallies",
    "Tally",
]
