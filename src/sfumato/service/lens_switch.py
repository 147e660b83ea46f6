"""The switch of a task's page: links to other ways to look at the task, each in one line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Final

from sfumato.core.decoded import ONLINE
from sfumato.queries.postprocessing import PROJECTIONS
from sfumato.service.rereading import Lens, decoders_of
from sfumato.service.running_task import RunningTask
from sfumato.streams.horizon import SMOOTHED
from sfumato.streams.posterior.believed import FILTERED, POSTERIOR

__all__ = ["switch"]

READ: Final = {
    ONLINE: ("As released", "What each period said when it closed; these numbers are final."),
    SMOOTHED: (
        "Smoothed",
        "Each period again, by all reports so far: closer to the truth, and later ones change it.",
    ),
    FILTERED: (
        "Filtered",
        "What each period said, if curves move by a simple law: calmer and final, but biased.",
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

CHOSEN: Final = ' aria-current="true"'


def switch(running: RunningTask, lens: Lens) -> str:
    """Return the links to other ways to look at a task, and what this one does, as HTML."""
    decoders = [(replace(lens, decoder=name), READ[name][0]) for name in decoders_of(running)]
    shares = [
        (replace(lens, projection=None), "As estimated"),
        *((replace(lens, projection=name), "Summing to 100%") for name in PROJECTIONS),
    ]
    lists = _links("How reports are read", decoders, lens) * (len(decoders) > 1)
    lists += _links("Which shares are shown", shares, lens) * bool(running.protocol.wholes)
    explained = READ[lens.decoder][1] + f" {SUMMED}" * (lens.projection is not None)
    return f'{lists}<p id="explained" class="quiet">{explained}</p>' if lists else ""


def _links(name: str, ways: Sequence[tuple[Lens, str]], lens: Lens) -> str:
    """Return links to ways to look at a task as HTML; the one that is followed is marked."""
    links = "".join(
        f'<li><a href="?{escape(way.query)}"{CHOSEN * (way == lens)}>{label}</a></li>'
        for way, label in ways
    )
    return f'<nav aria-label="{name}"><ul class="switch">{links}</ul></nav>'
