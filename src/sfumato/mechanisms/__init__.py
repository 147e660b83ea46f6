"""The mechanisms, one file each; a new one needs its file and its lines here, nothing else.

A room is imported when one of its mechanisms is first used, so that a device does not import all.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.mechanisms.density import SquareWave
    from sfumato.mechanisms.frequency import GRR, OLH, OUE, Adaptive, SubsetSelection
    from sfumato.mechanisms.mean import Hybrid, Piecewise, StochasticRounding
    from sfumato.mechanisms.sparse import CoCo, Collision, Concord, ExSub, PrivSet

__all__ = [
    "GRR",
    "OLH",
    "OUE",
    "Adaptive",
    "CoCo",
    "Collision",
    "Concord",
    "ExSub",
    "Hybrid",
    "Piecewise",
    "PrivSet",
    "SquareWave",
    "StochasticRounding",
    "SubsetSelection",
]

_ROOMS = ("frequency", "mean", "density", "sparse")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for room in _ROOMS:
            module = import_module(f"{__name__}.{room}")
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
