"""The choice of a mix: the spans and shares of least exact error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sfumato.streams.weave.mix import Workload, best_shares, variance
from sfumato.streams.weave.threads import SNAPSHOT

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.weave import Weave

__all__ = ["best", "powers"]

Floats = NDArray[np.float64]
Designed = Callable[[Sequence[int], Sequence[float]], "Weave"]
"""A function that returns the stream with given spans and shares."""


def best(designed: Designed, periods: int, workload: Workload) -> Weave:
    """Return the stream whose mix has the least error that is safe for all data."""
    even, shares = _optimum(designed, periods, workload)
    alone = np.array([float(span == SNAPSHOT) for span in even.spans])
    for more in (0.0, 0.25, 0.5, 0.7, 0.85, 0.95):
        mixed = (1 - more) * shares + more * alone
        if _is_safe(even, mixed, alone, workload):
            return even.trimmed(mixed.tolist())
    return even.trimmed(alone.tolist())


def _optimum(designed: Designed, periods: int, workload: Workload) -> tuple[Weave, Floats]:
    """Return a stream with the useful spans, and their best shares."""
    factor = 2 if periods <= 256 else 4
    longest = 16
    tried: dict[int, float] = {}
    while True:
        spans = [span for span in powers(factor, longest) if 2 * span <= periods]
        even = designed([*spans, SNAPSHOT], [1 / (len(spans) + 1)] * (len(spans) + 1))
        start = [tried.get(span, 0.02) for span in even.spans] if tried else None
        shares, _ = best_shares(even.networks, workload, start=start)
        tried = dict(zip(even.spans, shares.tolist(), strict=True))
        if shares[-2] < 0.01 or 2 * factor * spans[-1] > periods:
            break
        longest *= 4
    # Spans that hardly any device draws are left out, and the other shares are optimised exactly.
    kept = [g for g, share in tried.items() if share > 0.005 or g in (1, SNAPSHOT)]
    even = designed(kept, [1 / len(kept)] * len(kept))
    start = [max(tried[span], 0.02) for span in kept]
    shares, _ = best_shares(even.networks, workload, start=start, tolerance=0.001)
    return even, shares


def _is_safe(stream: Weave, shares: Floats, alone: Floats, workload: Workload) -> bool:
    """Return whether a mix is no worse than snapshots alone, for all values of devices.

    The noise of differences is at most the planned one. The noise of snapshots is smallest if all
    devices hold the same, by the same factor in both cases.
    """
    total, parts = variance(stream.networks, shares, workload)
    planned, _ = variance(stream.networks, alone, workload)
    least = min(look.noise / look.variance for look in stream.snapshots)
    looks = float(parts @ alone)
    return total <= planned and total - looks + least * looks <= 1.01 * least * planned


def powers(base: int, largest: int) -> list[int]:
    """Return 1 and all powers of a base up to ``largest``."""
    listed = [1]
    while listed[-1] * base <= largest:
        listed.append(listed[-1] * base)
    return listed
