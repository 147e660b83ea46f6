"""The mean of a bounded number."""

from __future__ import annotations

from sfumato.mechanisms.mean.hybrid import Hybrid
from sfumato.mechanisms.mean.piecewise import Piecewise
from sfumato.mechanisms.mean.stochastic_rounding import StochasticRounding

__all__ = ["Hybrid", "Piecewise", "StochasticRounding"]
