"""Data whose truth is known: flights, ratings, trips and made-up curves."""

from __future__ import annotations

from sfumato.datasets.flights import CITIES, ELSEWHERE, Flights, read_flights

__all__ = ["CITIES", "ELSEWHERE", "Flights", "read_flights"]
