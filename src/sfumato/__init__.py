"""Statistics over time from many people's devices, without anyone handing over their data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from sfumato.errors import SfumatoError
from sfumato.extras import explain_imports

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
    from sfumato.randomness import secure, seeded

__version__: Final = "0.1.0"

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


explain_imports()


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, so that `import sfumato` is fast."""
    if name in ("core", "mechanisms"):
        return import_module(f"{__name__}.{name}")
    if name in ("secure", "seeded"):
        return getattr(import_module(f"{__name__}.randomness"), name)
    if name in __all__:
        from sfumato import core, mechanisms  # noqa: PLC0415 -- see above

        return getattr(mechanisms if name in mechanisms.__all__ else core, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
