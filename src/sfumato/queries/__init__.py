"""Questions about estimates; all of this is post-processing and costs no privacy."""

from __future__ import annotations

from sfumato.core.answers import Answer, Answers
from sfumato.queries.events import ROC, Event, Watch, roc
from sfumato.queries.history import History
from sfumato.queries.postprocess import (
    at_most,
    capped_simplex,
    clip,
    norm_sub,
    postprocess,
    simplex,
)
from sfumato.queries.top import top

__all__ = [
    "ROC",
    "Answer",
    "Answers",
    "Event",
    "History",
    "Watch",
    "at_most",
    "capped_simplex",
    "clip",
    "norm_sub",
    "postprocess",
    "roc",
    "simplex",
    "top",
]
