"""The share of people who hold each item."""

from __future__ import annotations

from sfumato.mechanisms.frequency.adaptive import Adaptive
from sfumato.mechanisms.frequency.grr import GRR
from sfumato.mechanisms.frequency.olh import OLH
from sfumato.mechanisms.frequency.oracle import FrequencyOracle
from sfumato.mechanisms.frequency.oue import OUE
from sfumato.mechanisms.frequency.subset_selection import SubsetSelection

__all__ = ["GRR", "OLH", "OUE", "Adaptive", "FrequencyOracle", "SubsetSelection"]
