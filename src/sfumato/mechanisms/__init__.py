"""One file, one mechanism. A new one needs its file and its line here, nothing else."""

from __future__ import annotations

from sfumato.mechanisms.frequency import GRR, OLH, OUE

__all__ = ["GRR", "OLH", "OUE"]
