"""Whether an answer is a matter of moments, or of a computation that others must not wait for."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from sfumato.service.running_task import RunningTask
from sfumato.streams.posterior.believed import BELIEVED, POSTERIOR

__all__ = ["TakesLong", "refuse_long", "refuse_many"]

FEW_PERIODS: Final = 64
FEW_NUMBERS: Final = 1 << 12
"""The size of a task, in closed periods and in numbers, that is read anew within a moment."""

MANY: Final = 1 << 14
"""The number of rows whose writing takes longer than a moment: about a tenth of a second."""

MIXED: Final = 8
"""So many numbers of a posterior are mixed while one row is written."""


class TakesLong(Exception):
    """An answer takes longer than others can wait; it belongs where long work is done."""


def refuse_many(rows: int) -> None:
    """Raise TakesLong if an answer has so many rows that writing them takes long."""
    if rows > MANY:
        raise TakesLong


def refuse_long(
    running: RunningTask, decoder: str, asked: Collection[int], *, is_projected: bool
) -> None:
    """Raise TakesLong unless an answer needs little beyond what has already been read.

    Parameters
    ----------
    running
        The task.
    decoder
        The decoder that is asked for.
    asked
        The periods that are asked about, or the first and the last one; none for curves.
    is_projected
        Whether values are projected, which needs those of all items.

    """
    closed, items = running.closed, len(running.labels)
    if closed <= FEW_PERIODS and closed * items <= FEW_NUMBERS:
        return
    work = items
    if not asked:  # for its intervals, a posterior's curve has the covariance of all periods
        joined = closed // MIXED if decoder == POSTERIOR else 1
        work = closed * max(joined, items if is_projected else 1)
    elif decoder in BELIEVED:
        work = closed * items // MIXED
    if work > MANY or not running.kept_history.is_ready(closed, decoder, asked):
        raise TakesLong
