"""Statistics over time from many people's devices, without anyone handing over their data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sfumato import core, mechanisms
from sfumato.errors import SfumatoError
from sfumato.randomness import secure, seeded

if TYPE_CHECKING:
    from sfumato.core import Estimate, Guarantee, Mechanism, Tallies, Tally
    from sfumato.mechanisms import (
        GRR,
        OLH,
        OUE,
        Adaptive,
        CoCo,
        Collision,
        Concord,
        ExSub,
        Hybrid,
        Piecewise,
        PrivSet,
        SquareWave,
        StochasticRounding,
        SubsetSelection,
    )

__all__ = [
    "GRR",
    "OLH",
    "OUE",
    "Adaptive",
    "CoCo",
    "Collision",
    "Concord",
    "Estimate",
    "ExSub",
    "Guarantee",
    "Hybrid",
    "Mechanism",
    "Piecewise",
    "PrivSet",
    "SfumatoError",
    "SquareWave",
    "StochasticRounding",
    "SubsetSelection",
    "Tallies",
    "Tally",
    "secure",
    "seeded",
]


def __getattr__(name: str) -> Any:
    if name in __all__:  # imported when first asked for
        return getattr(mechanisms if name in mechanisms.__all__ else core, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
