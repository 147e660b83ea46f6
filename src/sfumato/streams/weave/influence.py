"""The influence of one forged device on an answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sfumato.arrays import Floats
from sfumato.streams.weave.fusion import Fusion
from sfumato.streams.weave.regret import FAMILY
from sfumato.streams.weave.threads import Thread

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.weave import Weave

__all__ = ["influence"]


def influence(protocol: Weave, devices: int) -> float:
    """Return the most that one forged device can change the mean of a period when it closes.

    Such a device follows one thread, and may send any valid message in each of its reports. Learnt
    weights are those of devices as planned and of the populations that a mix is judged by.
    """
    largest = 0.0
    threads = list(protocol.threads())
    for block in range(len(protocol.values.blocks)):
        rows = [
            (start, end, number)
            for number, (thread, share) in enumerate(threads)
            if share > 0 and (not thread.is_snapshot or thread.block == block)
            for start, end in protocol.edges(thread)
        ]
        start, end, number = np.array(sorted(rows, key=lambda row: row[1]), dtype=np.int64).T
        working, reach = np.empty(len(threads)), np.empty(len(threads))
        for index in set(number.tolist()):
            thread, share = threads[index]
            if thread.is_snapshot:
                look = protocol.snapshots[block]
                working[index], reach[index] = look.variance, look.influence
            else:
                strand = protocol.strand(thread)
                working[index], reach[index] = strand.variance, strand.influence
            working[index] /= devices * share
            reach[index] /= devices * share
        order = np.argsort(number, kind="stable")
        cuts = np.concatenate([[0], np.flatnonzero(np.diff(number[order])) + 1])
        for noise in _noises(protocol, block, threads):
            conductance = 1 / (working * noise)[number]
            weights = np.abs(Fusion(protocol.periods, start, end, conductance).online())
            moved = np.add.reduceat((weights * reach[number])[:, order], cuts, axis=1)
            largest = max(largest, float(np.nanmax(moved)))
    return largest


def _noises(
    protocol: Weave, block: int, threads: Sequence[tuple[Thread, float]]
) -> Iterator[Floats]:
    """Yield the noise of each thread's reports relative to the plan, as weights may count on."""
    yield np.ones(len(threads))
    if protocol.weights == "learnt":
        indices = [protocol.spans.index(thread.span) for thread, _ in threads]
        for population in FAMILY:
            yield population.ratios(protocol, block)[indices]
