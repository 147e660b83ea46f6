"""Experiments: real data, simulated devices."""

from __future__ import annotations

from sfumato.lab.device import SimulatedDevice, simulate
from sfumato.lab.flights import CITIES, ELSEWHERE, Flights, read_flights

__all__ = ["CITIES", "ELSEWHERE", "Flights", "SimulatedDevice", "read_flights", "simulate"]
