"""Small curves of text, one line high."""

from __future__ import annotations

from typing import Final

import numpy as np

from sfumato.core.answers import Answers

__all__ = ["sparkline"]

STEPS: Final = "▁▂▃▄▅▆▇█"
WIDTH: Final = 32


def sparkline(answers: Answers, width: int = WIDTH) -> str:
    """Return the values of answers as blocks of eight heights; a space where nothing is known.

    The lowest block stands for the lowest end of all intervals and the highest for the highest one,
    so that a curve which only moves within its noise stays in the middle. Of more values than
    ``width``, neighbours are averaged.

    Examples
    --------
    >>> from sfumato.core.answers import Answers
    >>> values = np.array([0.1, 0.2, np.nan, 0.7, 0.9])
    >>> sides = (values, values - 0.1, values + 0.1)
    >>> sparkline(Answers((1, 2, 3, 4, 5), *sides, n=9, guarantee=""))
    '▁▂ ▆█'

    """
    known = np.array([row[0] is not None for row in answers.known()], dtype=bool)
    if not known.any():
        return " " * min(width, len(answers))
    bottom, top = answers.low[known].min(), answers.high[known].max()
    heights = (answers.values - bottom) / (top - bottom) if top > bottom else answers.values * 0
    heights = np.where(known, heights, np.nan)
    blocks = ""
    for some in np.array_split(heights, min(width, heights.size)):
        if np.isnan(some).all():
            blocks += " "
        else:
            blocks += STEPS[int(np.clip(np.nanmean(some) * len(STEPS), 0, len(STEPS) - 1))]
    return blocks
