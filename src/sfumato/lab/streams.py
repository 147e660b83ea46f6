"""Made-up streams and simulated devices: what a protocol gives, before anybody takes part."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.core.tally import Tallies, Tally
from sfumato.randomness import Source
from sfumato.streams.weave.protocol import Weave
from sfumato.streams.weave.threads import SNAPSHOT, Thread
from sfumato.streams.weave.values import Values

__all__ = ["collect", "freeze", "truth"]

CHUNK_BYTES = 1 << 25


def truth(values: Values, streams: NDArray[Any]) -> NDArray[np.float64]:
    """Return the mean of each entry in each period, over all devices."""
    total = np.zeros((streams.shape[1], values.width))
    step = max(1, CHUNK_BYTES // (streams.shape[1] * values.width))
    for start in range(0, len(streams), step):
        total += values.encode_streams(streams[start : start + step]).sum(axis=0, dtype=np.int64)
    return total / len(streams)


def freeze(bits: NDArray[np.int8], changes: int) -> NDArray[np.int8]:
    """Return streams that keep their last value once a change would be one too many."""
    moved = np.abs(np.diff(bits, axis=1, prepend=0)).sum(axis=2, dtype=np.int64)
    over = np.cumsum(moved, axis=1) > changes
    if not over.any():
        return bits
    rows = np.flatnonzero(over.any(axis=1))
    frozen = bits.copy()
    first = over[rows].argmax(axis=1)
    for row, period in zip(rows.tolist(), first.tolist(), strict=True):
        frozen[row, period:] = bits[row, period - 1] if period else 0
    return frozen


def collect(
    protocol: Weave,
    streams: NDArray[Any],
    rng: Source,
    progress: Callable[[int], None] | None = None,
) -> Tallies[Any]:
    """Return the tallies of all devices' reports, each device on a thread of its own.

    Devices of one thread are blurred together, by the very mechanism that the streaming device
    follows entry by entry; a test holds the two laws together.
    """
    order, threads = _drawn(protocol, len(streams), rng)
    parts: dict[Any, Tally] = {}
    for thread, people in zip(threads, order, strict=True):
        for key, tally in _thread_tallies(protocol, thread, streams, people, rng):
            parts[key] = parts[key] + tally if key in parts else tally
        if progress is not None:
            progress(len(people))
    return Tallies(parts)


def _drawn(protocol: Weave, n: int, rng: Source) -> tuple[list[NDArray[np.int64]], list[Thread]]:
    """Draw every device's thread; return the devices of each."""
    threads = [thread for thread, share in protocol.threads() if share > 0]
    shares = np.array([share for _, share in protocol.threads() if share > 0])
    draw = rng.simulator()
    drawn = draw.choice(len(threads), size=n, p=shares / shares.sum())
    order = np.argsort(drawn, kind="stable")
    cuts = np.searchsorted(drawn[order], np.arange(len(threads) + 1))
    return [order[cuts[i] : cuts[i + 1]] for i in range(len(threads))], threads


def _thread_tallies(
    protocol: Weave, thread: Thread, streams: NDArray[Any], people: NDArray[np.int64], rng: Source
) -> list[tuple[Any, Tally]]:
    if not people.size:
        return []
    values = protocol.values
    if thread.span == SNAPSHOT:
        look = protocol.snapshots[thread.block]
        seen = streams[people, thread.offset - 1][:, None]
        bits = values.encode_streams(seen)[:, 0, values.blocks[thread.block]]
        reports = look.mechanism.randomize(look.encode(bits), rng)
        return [((SNAPSHOT, thread.offset, thread.block), look.mechanism.tally(reports))]
    edges = protocol.edges(thread)
    if not edges:
        return []
    mechanism = protocol.strand(thread).mechanism
    total = Tally.zero(mechanism.tally_shape)
    step = max(1, CHUNK_BYTES // (streams.shape[1] * values.width))
    ends = np.array([end for _, end in edges]) - 1
    first = edges[0][0]
    for start in range(0, len(people), step):
        bits = freeze(
            values.encode_streams(streams[people[start : start + step]]), protocol.changes
        )
        before = bits[:, [first - 1]] if first else np.zeros_like(bits[:, :1])
        rows = np.diff(np.concatenate([before, bits[:, ends]], axis=1), axis=1)
        reports = mechanism.randomize(rows.reshape(len(rows), -1), rng)
        total = total + mechanism.tally(reports)
    sums = total.sums.reshape(2, len(edges), values.width)
    return [
        ((thread.span, end, 0), Tally(total.n, sums[:, place]))
        for place, (_, end) in enumerate(edges)
    ]
