"""The first door: any thread decodes, opens and checks the reports of a batch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.arrays import Array, Bools, Ints
from sfumato.errors import ReportError
from sfumato.service.running_task import Key, RunningTask
from sfumato.streams.amplification import TOO_FEW, kept_among
from sfumato.wire.receipts import Receipt
from sfumato.wire.reports import Batch
from sfumato.wire.unsealing import open_sealed

__all__ = ["ScreenedBatch", "TooFew", "screen"]


class TooFew(ReportError):
    """A batch of shuffled reports is so small that the promise about them could not be kept."""


@dataclass(frozen=True, eq=False)
class ScreenedBatch:
    """A batch that has passed the first door: its valid reports, and the receipt to fill in."""

    running: RunningTask
    key_id: int
    places: Ints
    ids: Array
    periods: Array
    contents: Array
    receipt: Receipt


def screen(running: RunningTask, body: bytes, now: float, *, mixed: bool = False) -> ScreenedBatch:
    """Return the valid reports of a batch; raise ReportError if it is malformed.

    If the task's reports must be shuffled, only shuffled (``mixed``) batches count, and
    TooFew is raised if one has fewer reports of some period than the task's promise needs.
    """
    batch = Batch.decode(body, running.layout)
    reports = batch.reports
    if mixed:
        _refuse_few(running, reports["period"])
    keys, until = running.keys, running.until  # keys may be renewed at the same time
    receipt = Receipt(key_id=running.published.key_id)
    alive = np.ones(len(reports), dtype=bool)

    def refuse(which: Bools, reason: str) -> None:
        gone = alive & which
        receipt.refused += [(int(place), reason) for place in np.flatnonzero(gone)]
        alive[gone] = False

    refuse(np.full(len(reports), batch.task_id != running.task_id), "wrong_task")
    refuse(np.full(len(reports), running.is_mixed and not mixed), "direct")
    sealed = running.layout.overhead > 0
    known = batch.key_id in keys if sealed else batch.key_id == 0
    refuse(np.full(len(reports), not known), "unknown_key")
    periods = reports["period"]
    refuse((periods < 1) | (periods > running.periods), "invalid")
    refuse(periods > running.last_begun(now), "future")
    refuse(periods <= running.closed, "stale")
    refuse(periods > until.get(batch.key_id, running.periods), "unknown_key")
    if sealed and alive.any():
        contents, opened = _opened(running, keys[batch.key_id], reports, alive)
        refuse(~opened, "unopened")
    elif sealed:
        contents = np.zeros(len(reports), dtype=running.layout.content_dtype)
    else:
        contents = np.ascontiguousarray(reports["sealed"]).view(running.layout.content_dtype)
    refuse(~running.judge.well_formed(contents), "malformed")
    refuse(running.is_late(periods, contents), "stale")
    rows = np.flatnonzero(alive)
    if len(rows) < len(reports):
        reports, contents, periods = reports[rows], contents[rows], periods[rows]
    valid = running.judge.valid(periods, contents)
    if not valid.all():
        receipt.refused += [(int(place), "invalid") for place in rows[~valid]]
        rows, contents, periods = rows[valid], contents[valid], periods[valid]
        reports = reports[valid]
    return ScreenedBatch(running, batch.key_id, rows, reports["id"], periods, contents, receipt)


def _refuse_few(running: RunningTask, periods: Array) -> None:
    """Raise TooFew if a shuffled batch has too few reports of a period."""
    required = running.required
    if required is None:
        return
    for period, n in zip(*np.unique(periods, return_counts=True), strict=True):
        if n < required.min_batch:
            epsilon = kept_among(running.shuffled, required, int(n))
            raise TooFew(
                f"the batch has {n:,} reports of period {period}, {TOO_FEW}: at least "
                f"{required.min_batch:,} are expected, and among {n:,} only epsilon {epsilon:.4g}, "
                f"delta {required.delta:g} could be kept."
            )


def _opened(running: RunningTask, key: Key, reports: Array, alive: Bools) -> tuple[Array, Bools]:
    """Return the contents of sealed reports, and a mask of those that could be opened."""
    size = running.layout.content_dtype.itemsize
    private, context = key.private, key.context
    nothing = bytes(size)
    opened = np.zeros(len(reports), dtype=bool)
    contents = []
    sealed = reports["sealed"].tolist()
    names, periods = reports["id"].tolist(), reports["period"].tolist()
    for place in range(len(reports)):
        content = nothing
        if alive[place]:
            try:
                content = open_sealed(sealed[place], private, context, names[place], periods[place])
                opened[place] = True
            except ReportError:
                pass
        contents.append(content)
    return running.layout.contents(b"".join(contents)), opened
