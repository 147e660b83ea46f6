"""Simulated devices: the values they hold over time, and their results on any stream."""

from __future__ import annotations

from sfumato.simulation.driving import simulate, steps
from sfumato.simulation.made_up_lives import Synthetic
from sfumato.simulation.observed import Observed, observed_by
from sfumato.simulation.outcome import Metrics, Simulation
from sfumato.simulation.populations import Recorded

__all__ = [
    "Metrics",
    "Observed",
    "Recorded",
    "Simulation",
    "Synthetic",
    "observed_by",
    "simulate",
    "steps",
]
