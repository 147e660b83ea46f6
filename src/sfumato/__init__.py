"""Statistics over time from many people's devices, without anyone handing over their data."""

from __future__ import annotations

from sfumato.core import Estimate, Guarantee, Mechanism, Tallies, Tally
from sfumato.errors import SfumatoError
from sfumato.mechanisms import (
    GRR,
    OLH,
    OUE,
    Adaptive,
    Concord,
    ExSub,
    Hybrid,
    Piecewise,
    SquareWave,
    StochasticRounding,
    SubsetSelection,
)
from sfumato.randomness import secure, seeded

__all__ = [
    "GRR",
    "OLH",
    "OUE",
    "Adaptive",
    "Concord",
    "Estimate",
    "ExSub",
    "Guarantee",
    "Hybrid",
    "Mechanism",
    "Piecewise",
    "SfumatoError",
    "SquareWave",
    "StochasticRounding",
    "SubsetSelection",
    "Tallies",
    "Tally",
    "secure",
    "seeded",
]
