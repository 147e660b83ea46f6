"""Pictures of answers, streams and experiments, as matplotlib figures.

A file of this room is imported when a name of it is first asked for, and with it matplotlib
(``pip install 'sfumato[plots]'``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.extras import on_demand

if TYPE_CHECKING:
    from sfumato.plots.answer_plots import curves, dots, errors, means
    from sfumato.plots.contest_plots import contest
    from sfumato.plots.shuffle_plots import bounds_over
    from sfumato.plots.stream_plots import bands

__all__ = ["bands", "bounds_over", "contest", "curves", "dots", "errors", "means"]

__getattr__ = on_demand(
    __name__,
    {
        "answer_plots": ("curves", "dots", "errors", "means"),
        "contest_plots": ("contest",),
        "shuffle_plots": ("bounds_over",),
        "stream_plots": ("bands",),
    },
)
