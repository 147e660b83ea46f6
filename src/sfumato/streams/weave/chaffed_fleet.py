"""Simulated devices of Weave with chaff: their signals, and the dummies of all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.core.fleet import Population
from sfumato.core.tally import Place, Tally
from sfumato.randomness import ONE, Source
from sfumato.streams.weave.dummies import even_chance
from sfumato.streams.weave.threads import SNAPSHOT, Thread
from sfumato.streams.weave.weave_fleet import WeaveFleet

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.chaffed_weave import ChaffedWeave

__all__ = ["ChaffedFleet"]


class ChaffedFleet(WeaveFleet):
    """Simulated devices, each on its own thread, with dummies on others.

    Parameters
    ----------
    stream
        The stream.
    population
        The values that the devices hold.
    rng
        The source of all devices' coins.

    """

    def __init__(self, stream: ChaffedWeave, population: Population, rng: Source) -> None:
        super().__init__(stream.signal, population, rng)
        for place, tally in _drawn(stream, population.devices, rng):
            sent = self._sent.setdefault(place.period, {})
            sent[place] = sent[place] + tally if place in sent else tally


def _drawn(stream: ChaffedWeave, devices: int, rng: Source) -> Iterator[tuple[Place, Tally]]:
    """Yield the tallies of all dummies of so many devices."""
    more = int(rng.bernoulli(int(stream.chaff.chance * ONE), devices).sum())
    threads = [thread for thread, _ in stream.signal.threads()]
    chances = np.array(
        [
            share * float(even_chance(stream.mechanism_of(thread)))
            for thread, share in stream.signal.threads()
        ]
    )
    number = devices * stream.chaff.certain + more
    counts = rng.simulator().multinomial(number, chances / chances.sum())
    for thread, count in zip(threads, counts.tolist(), strict=True):
        if count:
            yield from _sent(stream, thread, count, rng)


def _sent(
    stream: ChaffedWeave, thread: Thread, count: int, rng: Source
) -> Iterator[tuple[Place, Tally]]:
    mechanism: Any = stream.mechanism_of(thread)
    if thread.is_snapshot:
        reports = mechanism.randomize(rng.below(mechanism.size, count), rng)
        yield Place(SNAPSHOT, thread.offset, thread.block), mechanism.tally(reports)
        return
    edges, width = stream.edges(thread), stream.values.width
    symbols = rng.below(2 * mechanism.padded_dimension, count)
    drawn = np.bincount(symbols, minlength=2 * mechanism.padded_dimension)
    sums = drawn[: 2 * len(edges) * width].reshape(len(edges), width, 2)
    for (_, end), each in zip(edges, sums, strict=True):
        yield Place(thread.span, end), Tally(count, np.ascontiguousarray(each.T))
