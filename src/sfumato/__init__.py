"""Statistics over time from many people's devices, without anyone handing over their data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from sfumato.errors import SfumatoError as SfumatoError
from sfumato.extras import explain_imports

if TYPE_CHECKING:
    from sfumato.core import Estimate as Estimate
    from sfumato.core import Guarantee as Guarantee
    from sfumato.core import Mechanism as Mechanism
    from sfumato.core import Tallies as Tallies
    from sfumato.core import Tally as Tally
    from sfumato.mechanisms import *  # noqa: F403 -- every mechanism is public
    from sfumato.randomness import secure as secure
    from sfumato.randomness import seeded as seeded

__version__: Final = "0.1.0"

_ROOMS: Final = {
    "core": ("Estimate", "Guarantee", "Mechanism", "Tallies", "Tally"),
    "randomness": ("secure", "seeded"),
}
"""Where the public names are from that are no mechanisms."""

explain_imports()


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, so that `import sfumato` is fast."""
    if name in ("core", "mechanisms"):
        return import_module(f"{__name__}.{name}")
    for room, names in _ROOMS.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{room}"), name)
    mechanisms = import_module(f"{__name__}.mechanisms")
    if name == "__all__":
        return sorted(["SfumatoError", *sum(_ROOMS.values(), ()), *mechanisms.__all__])
    if name in mechanisms.__all__:
        return getattr(mechanisms, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
