"""Which contents a device can have sent, and what they add up to.

All reports of a batch are one array. They are judged and counted in groups of one span, period and
block, each by the protocol's own objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sfumato.core.mechanism import Mechanism
from sfumato.core.protocol import Ask
from sfumato.core.tally import Tally
from sfumato.service.driving import ASKED
from sfumato.streams.flat import Flat
from sfumato.streams.specs import Streams
from sfumato.streams.weave.protocol import Weave
from sfumato.streams.weave.threads import SNAPSHOT, Thread
from sfumato.streams.window import Window
from sfumato.wire.reports import VERSION, Layout

__all__ = ["Judge"]

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class _Form:
    """How the payloads of one span, period and block are read."""

    dtype: np.dtype[Any]
    valid: Callable[[NDArray[Any]], Mask]
    tally: Callable[[NDArray[Any]], Tally]

    @classmethod
    def of(cls, mechanism: Mechanism) -> Self:
        """Return how the reports of a mechanism are read."""
        return cls(mechanism.report_dtype, mechanism.valid, mechanism.tally)

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
    periods
        How many there are.
    asked
        Every question so far, by period and round, where devices are asked anew.

    """

    def __init__(
        self,
        protocol: Streams,
        layout: Layout,
        periods: int,
        asked: Mapping[tuple[int, int], Ask],
    ) -> None:
        self._protocol = protocol
        self._content = layout.content_dtype
        self._periods = periods
        self._asked = asked
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
        if isinstance(self._protocol, Window):
            ask = self._asked.get((period, block))
            return None if ask is None else _Form.of(ask.mechanism)
        key = (span, period, block)
        if key not in self._forms:
            self._forms[key] = self._found(*key) if self._is_due(span, period) else None
        return self._forms[key]

    def _is_due(self, span: int, period: int) -> bool:
        """Return whether any device sends a message of a span in a period."""
        if not 1 <= period <= self._periods:
            return False
        if not isinstance(self._protocol, Weave) or span == SNAPSHOT:
            return True
        offset = period % span
        if offset not in self._protocol.offsets(span):
            return False
        edges = self._protocol.edges(Thread(span, offset))
        return any(end == period for _, end in edges)

    @cached_property
    def _spans(self) -> list[int]:
        if isinstance(self._protocol, Window):
            return [ASKED]
        return [1] if isinstance(self._protocol, Flat) else list(self._protocol.spans)

    @cached_property
    def _blocks(self) -> int:
        if isinstance(self._protocol, Window):
            return self._protocol.rounds
        return 1 if isinstance(self._protocol, Flat) else len(self._protocol.snapshots)

    def _found(self, span: int, period: int, block: int) -> _Form:
        if isinstance(self._protocol, Weave):
            if span == SNAPSHOT:
                return _Form.of(self._protocol.snapshots[block].mechanism)
            difference = self._protocol.form(Thread(span, period % span))
        else:
            difference = self._protocol.form  # type: ignore[union-attr]
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
