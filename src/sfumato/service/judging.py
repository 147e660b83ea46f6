"""Which contents a device can have sent, and what they add up to.

All reports of a batch are one array. They are judged and counted in groups of one span, period and
block, each by the protocol's own objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.tally import Tally
from sfumato.streams.flat import Flat
from sfumato.streams.weave.protocol import Weave
from sfumato.streams.weave.threads import SNAPSHOT, Thread
from sfumato.wire.reports import VERSION, Layout

__all__ = ["Judge"]

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class _Form:
    """How the payloads of one span, period and block are read."""

    dtype: np.dtype[Any]
    valid: Callable[[NDArray[Any]], Mask]
    tally: Callable[[NDArray[Any]], Tally]

    def read(self, payloads: NDArray[np.uint8]) -> NDArray[Any]:
        """Return payloads without their padding, as messages."""
        cut = np.ascontiguousarray(payloads[:, : self.dtype.itemsize])
        return cut.reshape(-1).view(self.dtype)


class Judge:
    """Judges and counts the contents of a task's reports.

    Parameters
    ----------
    protocol
        The task's.
    layout
        Of its reports.

    """

    def __init__(self, protocol: Weave | Flat, layout: Layout) -> None:
        self._protocol = protocol
        self._content = layout.content_dtype
        self._forms: dict[tuple[int, int, int], _Form | None] = {}

    def well_formed(self, contents: NDArray[Any]) -> Mask:
        """Return which contents are of a version that we know."""
        return np.asarray(contents["version"] == VERSION)

    def valid(self, periods: NDArray[Any], contents: NDArray[Any]) -> Mask:
        """Return which contents a device can have sent in these periods, padding included."""
        good = np.zeros(len(contents), dtype=bool)
        known = np.flatnonzero(self._known(contents))
        for (span, period, block), places in _groups(periods[known], contents[known]):
            form = self._form(span, period, block)
            if form is None:
                continue
            rows = known[places]
            payloads = contents["payload"][rows]
            judged = form.valid(form.read(payloads))
            good[rows] = judged & ~payloads[:, form.dtype.itemsize :].any(axis=1)
        return good

    def _known(self, contents: NDArray[Any]) -> Mask:
        """Return which contents have a span and block of the task: there are few of these."""
        blocks = np.where(contents["span"] == SNAPSHOT, self._blocks, 1)
        return np.isin(contents["span"], self._spans) & (contents["block"] < blocks)

    def count(self, period: int, contents: NDArray[Any] | bytes) -> dict[tuple[int, int], Tally]:
        """Return what valid contents of a period add up to, by span and block."""
        if isinstance(contents, bytes):
            contents = np.frombuffer(contents, dtype=self._content)
        counted = {}
        for (span, _, block), rows in _groups(period, contents):
            form = self._form(span, period, block)
            if form is None:
                raise ValueError(f"span {span}, block {block} is not due in period {period}.")
            counted[(span, block)] = form.tally(form.read(contents["payload"][rows]))
        return counted

    def _form(self, span: int, period: int, block: int) -> _Form | None:
        key = (span, period, block)
        if key not in self._forms:
            self._forms[key] = self._found(*key) if self._is_due(span, period) else None
        return self._forms[key]

    def _is_due(self, span: int, period: int) -> bool:
        """Return whether any device sends a message of a span in a period."""
        if not 1 <= period <= self._protocol.periods:
            return False
        if isinstance(self._protocol, Flat):
            return True
        if span == SNAPSHOT:
            return True
        offset = period % span
        if offset not in self._protocol.offsets(span):
            return False
        edges = self._protocol.edges(Thread(span, offset))
        return any(end == period for _, end in edges)

    @cached_property
    def _spans(self) -> list[int]:
        return [1] if isinstance(self._protocol, Flat) else list(self._protocol.spans)

    @cached_property
    def _blocks(self) -> int:
        return 1 if isinstance(self._protocol, Flat) else len(self._protocol.snapshots)

    def _found(self, span: int, period: int, block: int) -> _Form:
        if isinstance(self._protocol, Flat):
            difference = self._protocol.form
        elif span == SNAPSHOT:
            look = self._protocol.snapshots[block].mechanism
            return _Form(look.report_dtype, look.valid, look.tally)
        else:
            difference = self._protocol.form(Thread(span, period % span))
        return _Form(difference.dtype, difference.valid, difference.tally)


def _groups(
    periods: NDArray[Any] | int, contents: NDArray[Any]
) -> Iterator[tuple[tuple[int, int, int], NDArray[np.int64]]]:
    """Yield span, period and block of each group, and the rows that belong to it."""
    keys = contents["span"].astype(np.int64) << 16 | contents["block"]
    keys |= np.asarray(periods, dtype=np.int64) << 32
    if not len(keys):
        return
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    for start, rows in zip(starts, np.split(order, starts[1:]), strict=True):
        key = int(ordered[start])
        yield (key >> 16 & 0xFFFF, key >> 32, key & 0xFFFF), rows
