"""Experiments: real data, simulated devices."""

from __future__ import annotations

from sfumato.lab.flights import CITIES, ELSEWHERE, Flights, read_flights
from sfumato.lab.simulated_device import SimulatedDevice, simulate

__all__ = ["CITIES", "ELSEWHERE", "Flights", "SimulatedDevice", "read_flights", "simulate"]
