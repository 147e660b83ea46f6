"""Pictures of answers, streams and experiments, as matplotlib figures.

A file of this room is imported when a name of it is first asked for, and with it matplotlib
(``pip install 'sfumato[plots]'``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sfumato.extras import on_demand

if TYPE_CHECKING:
    from sfumato.plots.answer_plots import dots
    from sfumato.plots.contest_plots import contest
    from sfumato.plots.line_plots import bounds_over, curves
    from sfumato.plots.released_plots import errors, means
    from sfumato.plots.stream_plots import bands

__all__ = ["bands", "bounds_over", "contest", "curves", "dots", "errors", "means"]

__getattr__ = on_demand(
    __name__,
    {
        "answer_plots": ("dots",),
        "contest_plots": ("contest",),
        "line_plots": ("bounds_over", "curves"),
        "released_plots": ("errors", "means"),
        "stream_plots": ("bands",),
    },
)
