"""Simulated devices: whole ones that live through a task, and ones that hold a single value."""

from __future__ import annotations

from sfumato.fleets.gateway import Gateway
from sfumato.fleets.live_fleet import LiveFleet, replayed
from sfumato.fleets.simulated_device import SimulatedDevice, simulate

__all__ = ["Gateway", "LiveFleet", "SimulatedDevice", "replayed", "simulate"]
