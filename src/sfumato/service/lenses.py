"""The lenses of a task's page: other ways to look at its periods, each in one line."""

from __future__ import annotations

from typing import Final

from sfumato.core.decoded import ONLINE
from sfumato.pages.subject import Way
from sfumato.queries.postprocessing import PROJECTIONS
from sfumato.service.rereading import Lens, decoders_of, usual
from sfumato.service.running_task import RunningTask
from sfumato.streams.horizon import SMOOTHED
from sfumato.streams.posterior.believed import FILTERED, POSTERIOR

__all__ = ["ways_of"]

READ: Final = {
    ONLINE: ("As released", "What each period said when it closed; these numbers are final."),
    SMOOTHED: (
        "Smoothed",
        "Each period again, by all reports so far: closer to the truth, and later ones change it.",
    ),
    FILTERED: (
        "Filtered",
        "What each period said when it closed, if curves move by a simple law: calmer, but biased.",
    ),
    POSTERIOR: (
        "Posterior",
        "All reports so far, if curves move by a simple law: the calmest, but biased.",
    ),
}
"""The name of each decoder on the page, and what it shows in one line."""

SUMMED: Final = (
    "Shares are moved to the nearest ones that sum to 100%, and their intervals with them."
)
"""What the projection does, in one line."""


def ways_of(running: RunningTask, lens: Lens) -> tuple[tuple[Way, bool], ...]:
    """Return the ways to look at a task, each with whether a lens shows it so."""
    decoders, opens = decoders_of(running), usual(running).decoder
    ways = [
        (
            Way({"decoder": None if name == opens else name}, *READ[name], "How reports are read"),
            name == lens.decoder,
        )
        for name in decoders * (len(decoders) > 1)
    ]
    projections = (None, *PROJECTIONS) if running.protocol.wholes else ()
    ways += [
        (
            Way(
                {"projection": name},
                "As estimated" if name is None else "Summing to 100%",
                "" if name is None else SUMMED,
                "Which shares are shown",
            ),
            name == lens.projection,
        )
        for name in projections
    ]
    return tuple(ways)
