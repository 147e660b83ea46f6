"""Every method by its name; a new one is one file and one line here."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from sfumato.errors import ConfigurationError
from sfumato.streams.window.adaptive import LBA, LBD, LPA, LPD
from sfumato.streams.window.curators import WindowCurator
from sfumato.streams.window.dsat import LBDSAT, LPDSAT
from sfumato.streams.window.fast import LBFAST, LPFAST
from sfumato.streams.window.filtered import Filtered
from sfumato.streams.window.pegasus import LBPeGaSus, LPPeGaSus
from sfumato.streams.window.rescue_dp import LBRescueDP, LPRescueDP
from sfumato.streams.window.uniform import LBU, LPU, LSP

if TYPE_CHECKING:
    from sfumato.streams.window.protocol import Window

__all__ = ["BEST", "METHODS", "curator", "parameters"]

METHODS: Final[Mapping[str, type[WindowCurator]]] = {
    method.name: method
    for method in (
        LBU,
        LSP,
        LPU,
        LBD,
        LBA,
        LPD,
        LPA,
        Filtered,
        LBDSAT,
        LPDSAT,
        LBRescueDP,
        LPRescueDP,
        LBPeGaSus,
        LPPeGaSus,
        LBFAST,
        LPFAST,
    )
}

BEST: Final = Filtered.name
"""What ``auto`` stands for."""


def parameters(name: str) -> dict[str, Any]:
    """Return what a method can be told beyond the task, with its defaults.

    Examples
    --------
    >>> parameters("lpd")
    {'share': 0.5, 'least': 1}

    """
    if name not in METHODS:
        raise ConfigurationError(f"method is {name!r}; auto, {', '.join(METHODS)} are there.")
    known = list(inspect.signature(METHODS[name].__init__).parameters.values())
    return {each.name: each.default for each in known if each.kind is each.KEYWORD_ONLY}


def curator(protocol: Window) -> WindowCurator:
    """Return a new curator of the method that a protocol names."""
    name = BEST if protocol.method == "auto" else protocol.method
    known = parameters(name)
    for given, _ in protocol.parameters:
        if given not in known:
            takes = ", ".join(known) or "nothing beyond the task"
            raise ConfigurationError(f"{name} has no parameter {given!r}; it takes {takes}.")
    return METHODS[name](protocol, **dict(protocol.parameters))
