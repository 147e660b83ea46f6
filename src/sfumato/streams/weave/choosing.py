"""The choice of a mix: least planned error, with bounded regret on quieter devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from sfumato.arrays import Floats
from sfumato.streams.weave.mix import Workload, best_shares
from sfumato.streams.weave.regret import FAMILY, MixErrors, blended
from sfumato.streams.weave.threads import SNAPSHOT

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.weave import Weave

__all__ = ["best", "optimum", "powers"]

Designed = Callable[[Sequence[int], Sequence[float]], "Weave"]
"""A function that returns the stream with given spans and shares."""

UNMOVED: Final = 2.5
"""The largest regret of differences alone where values never move: where devices differ, they gain
more than that."""


def best(designed: Designed, periods: int, workload: Workload) -> Weave:
    """Return the stream of least planned error whose regret is bounded."""
    spanned, shares = optimum(designed, periods, workload)
    chosen = spanned.trimmed(blended(spanned, shares, workload).tolist())
    if spanned.anchored and spanned.values.changes(chosen.changes, periods, anchored=True) < 2:
        return _first_looks(designed, periods, workload, chosen)
    return chosen


def optimum(designed: Designed, periods: int, workload: Workload) -> tuple[Weave, Floats]:
    """Return a stream with the useful spans, and their shares of least planned error."""
    factor = _factor(periods)
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


def _first_looks(designed: Designed, periods: int, workload: Workload, chosen: Weave) -> Weave:
    """Return a stream of differences alone if it has less error than the chosen one.

    Differences beside snapshots leave out their first look. If values never move after it, they
    carry no information then, while differences alone do.
    """
    spans = [span for span in powers(_factor(periods), periods // 2) if 2 * span <= periods]
    even = designed(spans, [1 / len(spans)] * len(spans))
    shares, _ = best_shares(even.networks, workload)
    alone = designed([SNAPSHOT], [1.0])
    for population in FAMILY:
        unit = MixErrors(alone, population, workload).errors(np.ones(1))
        if MixErrors(even, population, workload).regret(shares, unit) > UNMOVED:
            return chosen
    other = even.trimmed(shares.tolist())
    queries = [workload] if isinstance(workload, str) else list(workload)
    ratios = [other.expected_variance(name) / chosen.expected_variance(name) for name in queries]
    return other if max(ratios) < 1 else chosen


def _factor(periods: int) -> int:
    """Return the ratio of each span to the one before it."""
    return 2 if periods <= 256 else 4


def powers(base: int, largest: int) -> list[int]:
    """Return 1 and all powers of a base up to ``largest``."""
    listed = [1]
    while listed[-1] * base <= largest:
        listed.append(listed[-1] * base)
    return listed
