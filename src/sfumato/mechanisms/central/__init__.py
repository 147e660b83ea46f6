"""Mechanisms of a trusted curator: noise on integers, and choices made with noise."""

from __future__ import annotations

from sfumato.mechanisms.central.laplace import DiscreteLaplace
from sfumato.mechanisms.central.noisy_max import NoisyMax
from sfumato.mechanisms.central.smooth_sensitivity import SmoothQuantile

__all__ = ["DiscreteLaplace", "NoisyMax", "SmoothQuantile"]
