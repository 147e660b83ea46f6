"""The contracts: mechanisms, tallies, estimates and guarantees; this room needs only numpy.

Each name is imported when it is first used, because a device needs only a few of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato.core.contrast import Contrast, Contrasts
    from sfumato.core.domain import Domain
    from sfumato.core.estimate import Covariance, Estimate, FrequencyEstimate
    from sfumato.core.guarantee import Guarantee
    from sfumato.core.law import Law
    from sfumato.core.mechanism import Mechanism
    from sfumato.core.tally import Tallies, Tally

__all__ = [
    "Contrast",
    "Contrasts",
    "Covariance",
    "Domain",
    "Estimate",
    "FrequencyEstimate",
    "Guarantee",
    "Law",
    "Mechanism",
    "Tallies",
    "Tally",
]

_PLACES = ("contrast", "domain", "estimate", "guarantee", "law", "mechanism", "tally")


def __getattr__(name: str) -> Any:
    if name in __all__:
        for place in _PLACES:
            module = import_module(f"{__name__}.{place}")
            if name in module.__all__:
                return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
