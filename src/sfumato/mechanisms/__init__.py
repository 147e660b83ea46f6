"""One file, one mechanism. A new one needs its file and its line here, nothing else."""

from __future__ import annotations

from sfumato.mechanisms.density import SquareWave
from sfumato.mechanisms.frequency import GRR, OLH, OUE, Adaptive, SubsetSelection
from sfumato.mechanisms.mean import Hybrid, Piecewise, StochasticRounding
from sfumato.mechanisms.sparse import Concord, ExSub

__all__ = [
    "GRR",
    "OLH",
    "OUE",
    "Adaptive",
    "Concord",
    "ExSub",
    "Hybrid",
    "Piecewise",
    "SquareWave",
    "StochasticRounding",
    "SubsetSelection",
]
