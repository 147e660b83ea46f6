"""Decoders of Weave: least squares of all reports, or posteriors under a prior.

An *online* answer uses the reports that were due by its last period, and is final when that period
closes. A *smoothed* answer uses all reports so far: it is closer to the truth, and dated later.
*Filtered* and *posterior* answers are the same under a prior: still closer if curves move by a
simple law, but biased; see :mod:`sfumato.streams.posterior.believed`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.core.computed import Computed
from sfumato.core.decoded import ONLINE, Decoded, Decoding, over_whom
from sfumato.core.latest import Latest
from sfumato.core.tally import Tallies
from sfumato.streams.horizon import SMOOTHED
from sfumato.streams.posterior.believed import (
    BELIEVED,
    FILTERED,
    POSTERIOR,
    Believed,
    decoders_by_prior,
)
from sfumato.streams.weave.aligned_tree import path, tree
from sfumato.streams.weave.curve import Curve, Reports
from sfumato.streams.weave.fusion import Fusion
from sfumato.streams.weave.threads import SNAPSHOT

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.weave import Weave

__all__ = ["WeaveDecoded"]


ALIGNED: Final[Mapping[str, Callable[[Fusion], Floats]]] = {"path": path, "tree": tree}
"""The decoders of aligned threads: the papers' sum of the fewest nodes, and fusion from below."""


class WeaveDecoded(Decoded):
    """The closed periods of a Weave stream.

    Parameters
    ----------
    stream
        The stream.
    tallies
        The tallies of the reports so far, by place.
    closed
        The last period that has closed.
    enrolled
        The number of devices in each period, if some join late; see
        :class:`~sfumato.streams.weave.curve.Reports`.

    """

    def __init__(
        self,
        stream: Weave,
        tallies: Tallies[Any],
        closed: int,
        enrolled: Sequence[int] | None = None,
    ) -> None:
        kept = {place: tally for place, tally in tallies.items() if place[1] <= closed}
        self._reports = Reports(stream, Tallies(kept), enrolled, closed)
        self._stream = stream
        self._closed = closed
        self._curves: dict[str, Curve] = {}
        self._latest: Latest[Curve] = Latest(2)  # up to now, and up to another period

    def _smoothed(self, as_of: int) -> Curve:
        return self._latest.of(as_of, self._reports.smoothed)

    @Computed
    def _believed(self) -> Believed:
        return self._reports.believed(self._closed)

    @property
    def decoders(self) -> tuple[str, ...]:
        """The decoders' names: unbiased, with a prior and, for aligned threads, the papers'."""
        named = (ONLINE, SMOOTHED, *decoders_by_prior(self._closed))
        return (*named, *ALIGNED) if self._stream.aligned else named

    def over(self, as_of: int) -> str:
        """Return over whom means are, in words; empty if devices do not say that they take part."""
        enrolled = self._reports.enrolled
        return "" if enrolled is None else over_whom(enrolled[as_of - 1])

    def _curve(self, decoder: str) -> Curve:
        """Return the unbiased curve of a decoder."""
        self.check(decoder)
        if decoder == ONLINE:
            return self._reports.online()
        if decoder == SMOOTHED:
            return self._smoothed(self._closed)
        if decoder not in self._curves:
            self._curves[decoder] = self._reports.curve(ALIGNED[decoder], None)
        return self._curves[decoder]

    def curves(self, decoder: str = ONLINE) -> tuple[Floats, Floats]:
        """Return the values and variances of all entries (columns) in each closed period (rows)."""
        self.check(decoder)
        if decoder in BELIEVED:
            return self._believed.curves(decoder)
        curve = self._curve(decoder)
        return curve.values[: self._closed], curve.variances()[: self._closed]

    def interval(
        self, decoder: str = ONLINE, level: float = 0.95, moved: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Return the two ends of each entry's interval in each closed period."""
        self.check(decoder)
        if decoder in BELIEVED:
            return self._believed.interval(decoder, level, moved)
        low, high = self._curve(decoder).interval(level, moved)
        return low[: self._closed], high[: self._closed]

    def prepare(self, decoders: Collection[str]) -> None:
        """Compute what answers by some decoders need, so that the first question need not wait.

        Decoders that the stream does not have are passed over: some have none for so many periods.
        """
        if ONLINE in decoders:
            self._smoothed(self._closed)  # sums up to now
        # Sorted, so that filtered curves are there before their posterior.
        for decoder in sorted({*decoders}.intersection(self.decoders)):
            if decoder in BELIEVED:
                self._believed.prepare(decoder)
            else:
                self._curve(decoder).prepare()

    def is_ready(self, decoder: str, asked: Collection[int]) -> bool:
        """Return whether all is there that answers by a decoder need, but for the answer itself."""
        if decoder in BELIEVED:
            return self._believed.is_ready(decoder, asked)
        if decoder == ONLINE and not asked:
            return self._reports.has_online
        if decoder in (ONLINE, SMOOTHED):
            return (max(asked) if decoder == ONLINE else self._closed) in self._latest
        return decoder in self._curves

    def bias(self, truth: Floats, seen: Floats, decoder: str = ONLINE) -> Floats:
        """Return the error that each value would have without noise.

        Differences show the streams after freezing; snapshots show them completely. Under a prior
        it is the error of the unbiased curve from the same reports.
        """
        curve = self._curve({FILTERED: ONLINE, POSTERIOR: SMOOTHED}.get(decoder, decoder))
        bias = np.empty_like(truth)
        before = np.zeros((1, truth.shape[1]))
        partly, whole = np.concatenate([before, seen]), np.concatenate([before, truth])
        for entries, weights, edges in curve.blocks:
            looked = (edges.span == SNAPSHOT)[:, None]
            mean = np.where(
                looked,
                whole[edges.end][:, entries],
                partly[edges.end][:, entries] - partly[edges.start][:, entries],
            )
            bias[:, entries] = weights[: len(truth)] @ mean - truth[:, entries]
        return bias

    @property
    def closed(self) -> int:
        """The last period that has closed."""
        return self._closed

    def combined(self, weights: Mapping[int, float], decoder: str = ONLINE) -> Decoding:
        """Return the weighted sum of some periods, for each entry, with weights by period."""
        self.check(decoder)
        last = max(weights)
        if decoder in BELIEVED:
            return self._believed.combined(weights, decoder)
        if decoder in ALIGNED:
            whole = np.zeros(self._closed)
            whole[[period - 1 for period in weights]] = list(weights.values())
            return Decoding(self._curve(decoder).combine(whole), last, decoder)
        as_of = last if decoder == ONLINE else self._closed
        coefficients = np.zeros(as_of)
        for period, weight in weights.items():
            coefficients[period - 1] = weight
        return Decoding(self._smoothed(as_of).combine(coefficients), as_of, decoder)

    def entry(self, index: int, decoder: str = ONLINE) -> Decoding:
        """Return the estimates of one entry in all closed periods, labelled by period."""
        self.check(decoder)
        if decoder in BELIEVED:
            return self._believed.entry(index, decoder)
        estimate = self._curve(decoder).alone(index)
        return Decoding(estimate.only(range(self._closed)), self._closed, decoder)
