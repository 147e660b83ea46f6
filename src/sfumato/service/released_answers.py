"""Values and curves as they were released, without reading any report again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from sfumato.core.answers import Answers
from sfumato.core.decoded import ONLINE
from sfumato.core.domain import Label
from sfumato.service.event_stream import answers
from sfumato.service.running_task import RunningTask
from sfumato.service.task_driving import LEVEL

__all__ = ["released"]

USUAL: Final = {"decoder": ONLINE, "level": LEVEL, "simultaneous": False}
"""The fields of a question that releases answer, with their values."""


def released(running: RunningTask, query: str, asked: Mapping[str, Any]) -> Answers | None:
    """Return the values of a period, or curves, if what was released is what is asked for.

    That is final, and costs nothing to read. None if the question asks for something else: another
    decoder, another level, a band, a projection, or a sum.

    Parameters
    ----------
    running
        The task.
    query
        The name of the question.
    asked
        The fields of the question; of a curve also ``item``, which is None for all items.

    """
    others = {name: value for name, value in asked.items() if name not in ("item", "period")}
    if not running.protocol.decodes or any(
        value != USUAL.get(name) for name, value in others.items()
    ):
        return None
    if query == "mean":
        return _mean(running, asked["period"])
    return _curve(running, asked["item"]) if query == "curve" else None


def _mean(running: RunningTask, period: int) -> Answers | None:
    """Return the values of a period; None if nothing is known of it."""
    if not 1 <= period <= running.closed:
        return None
    release = running.releases[period - 1]
    if release.ends is None or not np.isfinite(release.values).any():
        return None
    noun = running.protocol.quantity.noun
    question, method = f"{noun} in period {period}", _method(running, period)
    return replace(answers(running, release), question=question, method=method)


def _method(running: RunningTask, period: int) -> str:
    """Return how releases up to a period were computed, and over whom, in words."""
    return ", ".join(filter(None, (ONLINE, running.over(period))))


def _curve(running: RunningTask, item: Label | None) -> Answers | None:
    """Return the curve of an item, or of all."""
    releases = running.releases[: running.closed]
    ends = [release.ends for release in releases if release.ends is not None]
    if not releases or len(ends) < len(releases):
        return None
    whole = item is None and len(running.labels) > 1
    chosen = running.labels if whole else (running.labels[0] if item is None else item,)
    places = [running.labels.index(label) for label in chosen]
    columns = (
        [release.values for release in releases],
        [low for low, _ in ends],
        [high for _, high in ends],
    )
    values, low, high = (np.array(column)[:, places].T.ravel() for column in columns)
    quantity = running.protocol.quantity
    periods = tuple(release.period for release in releases)
    single = "" if whole or str(chosen[0]) == quantity.noun.lower() else f", {chosen[0]},"
    return Answers(
        periods * len(chosen),
        values,
        low,
        high,
        releases[-1].n,
        running.protocol.guarantee,
        LEVEL,
        quantity,
        "period",
        question=f"{quantity.noun}{single} in each period",
        method=_method(running, periods[-1]),
        as_of=periods[-1],
        beside={"item": tuple(label for label in chosen for _ in periods)} if whole else {},
    )
