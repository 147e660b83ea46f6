"""Simulated devices of Weave, some thousands at a time, as tallies of what they send.

Devices with the same mechanism are randomized together, by the mechanism that the streaming device
follows entry by entry; a test compares the two laws.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sfumato.arrays import Array, Ints
from sfumato.core.fleet import Fleet, Population
from sfumato.core.stream import Question
from sfumato.core.tally import ENROLMENT, Place, Tallies, Tally
from sfumato.randomness import Source
from sfumato.streams.kinds import CHUNK_BYTES
from sfumato.streams.weave.threads import SNAPSHOT, Thread

if TYPE_CHECKING:  # avoids a circular import
    from sfumato.streams.weave.weave import Weave

__all__ = ["WeaveFleet", "collect", "freeze"]


class WeaveFleet(Fleet):
    """Simulated devices, each on its own thread, whose messages are all drawn at once.

    Parameters
    ----------
    stream
        The stream.
    population
        The values that the devices hold.
    rng
        The source of all devices' coins.

    """

    def __init__(self, stream: Weave, population: Population, rng: Source) -> None:
        streams = population.streams()
        self._totals = stream.values.totals(streams)
        self._seen = stream.values.totals(streams, lambda bits: freeze(bits, stream.changes))
        self._sent: dict[int, dict[Place, Tally]] = {}
        for index, tally in collect(stream, streams, rng).items():
            self._sent.setdefault(index.period, {})[index] = tally
        if stream.enrols:
            n = len(streams)
            self._sent.setdefault(1, {})[Place(ENROLMENT, 1)] = Tally(n, np.array([n]))

    def answer(self, period: int, question: Question) -> Tallies[Any]:
        """Return the tallies of all messages of a period."""
        del question
        return Tallies(self._sent.get(period))

    def totals(self, period: int) -> Array:
        """Return the number of devices that hold each entry."""
        return np.asarray(self._totals[period - 1])

    def seen(self, period: int) -> Array:
        """Return the same for streams as differences show them: frozen after the last change."""
        return np.asarray(self._seen[period - 1])


def freeze(bits: NDArray[np.int8], changes: int) -> NDArray[np.int8]:
    """Return streams that keep their last value once a change would exceed the limit."""
    moved = np.abs(np.diff(bits, axis=1, prepend=np.int8(0))).sum(axis=2, dtype=np.int32)
    np.cumsum(moved, axis=1, out=moved)
    rows = np.flatnonzero(moved[:, -1] > changes)
    if not rows.size:
        return bits
    last = (moved[rows] <= changes).sum(axis=1)[:, None] - 1
    seen = np.minimum(np.arange(bits.shape[1]), last)
    frozen = bits.copy()
    frozen[rows] = np.take_along_axis(bits[rows], np.maximum(seen, 0)[:, :, None], axis=1)
    frozen[rows[last[:, 0] < 0]] = 0
    return frozen


def collect(protocol: Weave, streams: Array, rng: Source) -> Tallies[Place]:
    """Return the tallies of all devices' reports, with a random thread for each device.

    Parameters
    ----------
    protocol
        The stream.
    streams
        The codes of each device (rows) in each period (columns).
    rng
        The source of all devices' coins.

    """
    order, threads = _drawn(protocol, len(streams), rng)
    groups: dict[Any, list[tuple[Thread, Ints]]] = {}
    for thread, people in zip(threads, order, strict=True):
        if not people.size:
            continue
        if thread.is_snapshot:
            groups.setdefault((SNAPSHOT, thread.block), []).append((thread, people))
        elif protocol.edges(thread):
            kind = (1, len(protocol.edges(thread)))
            groups.setdefault(kind, []).append((thread, people))
    parts: dict[Place, Tally] = {}
    for (span, _), members in groups.items():
        tallied = _looks if span == SNAPSHOT else _changes
        for some in _batches(protocol, members, one=span == SNAPSHOT):
            for key, tally in tallied(protocol, some, streams, rng):
                parts[key] = parts[key] + tally if key in parts else tally
    return Tallies(parts)


Members = list[tuple[Thread, Ints]]


def _drawn(protocol: Weave, n: int, rng: Source) -> tuple[list[Ints], list[Thread]]:
    """Draw the thread of every device; return the devices of each thread, and the threads."""
    threads = [thread for thread, share in protocol.threads() if share > 0]
    shares = np.array([share for _, share in protocol.threads() if share > 0])
    draw = rng.simulator()
    drawn = draw.choice(len(threads), size=n, p=shares / shares.sum())
    order = np.argsort(drawn, kind="stable")
    cuts = np.searchsorted(drawn[order], np.arange(len(threads) + 1))
    return [order[cuts[i] : cuts[i + 1]] for i in range(len(threads))], threads


def _batches(protocol: Weave, members: Members, *, one: bool) -> Iterator[Members]:
    """Yield the devices of some threads at a time, few enough for their streams to fit."""
    most = max(1, CHUNK_BYTES // ((1 if one else protocol.periods) * protocol.values.width))
    batch: Members = []
    room = most
    for thread, people in members:
        rest = people
        while rest.size:
            batch.append((thread, rest[:room]))
            room, rest = room - min(room, rest.size), rest[room:]
            if not room:
                yield batch
                batch, room = [], most
    if batch:
        yield batch


def _cut(members: Members) -> list[tuple[Thread, slice]]:
    """Return the slice of each thread's devices, one after the other."""
    ends = np.cumsum([people.size for _, people in members]).tolist()
    return [
        (thread, slice(start, end))
        for (thread, _), start, end in zip(members, [0, *ends[:-1]], ends, strict=True)
    ]


def _looks(
    protocol: Weave, members: Members, streams: Array, rng: Source
) -> Iterator[tuple[Place, Tally]]:
    """Yield the tallies of snapshots of one block."""
    block = members[0][0].block
    look = protocol.snapshots[block]
    people = np.concatenate([people for _, people in members])
    period = np.concatenate([np.full(people.size, thread.offset) for thread, people in members])
    seen = streams[people, period - 1][:, None]
    bits = protocol.values.encode_streams(seen)[:, 0, protocol.values.blocks[block]]
    reports = look.mechanism.randomize(look.encode(bits), rng)
    for thread, part in _cut(members):
        yield Place(SNAPSHOT, thread.offset, block), look.mechanism.tally(reports[part])


def _changes(
    protocol: Weave, members: Members, streams: Array, rng: Source
) -> Iterator[tuple[Place, Tally]]:
    """Yield the tallies of difference threads with the same number of differences."""
    values = protocol.values
    people = np.concatenate([people for _, people in members])
    bits = freeze(values.encode_streams(streams[people]), protocol.changes)
    edges = protocol.edges(members[0][0])
    rows = np.empty((people.size, len(edges), values.width), dtype=np.int8)
    for thread, part in _cut(members):
        starts, ends = np.array(protocol.edges(thread)).T
        rows[part] = bits[part][:, ends - 1]
        inner = int(starts[0] == 0)  # before the first period all entries are zero
        rows[part, inner:] -= bits[part][:, starts[inner:] - 1]
    mechanism = protocol.strand(members[0][0]).mechanism
    reports = mechanism.randomize(rows.reshape(people.size, -1), rng)
    for thread, part in _cut(members):
        total = mechanism.tally(reports[part])
        sums = total.sums[:2].reshape(2, len(edges), values.width)
        for index, (_, end) in enumerate(protocol.edges(thread)):
            yield Place(thread.span, end), Tally(total.n, sums[:, index])
