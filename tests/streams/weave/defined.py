"""The law of everything that one device sends, from the definition and not from its code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfumato.checks.transcripts import Law, Transcript
from sfumato.core.stream import Message, Place
from sfumato.mechanisms.sparse.subset.signed_sampler import SignedSampler
from sfumato.streams.weave.design import SHARE_UNITS
from sfumato.streams.weave.threads import SNAPSHOT, Thread
from sfumato.streams.weave.weave import Weave


def exact_threads(protocol: Weave) -> Iterator[tuple[Thread, Fraction]]:
    """Yield every thread with the very chance that a device draws it."""
    ends = np.cumsum(protocol.shares) / sum(protocol.shares) * SHARE_UNITS
    bounds = [0, *np.floor(ends[:-1]).astype(np.int64).tolist(), SHARE_UNITS]
    for thread, _ in protocol.threads():
        place = protocol.spans.index(thread.span)
        blocks = len(protocol.values.blocks) if thread.is_snapshot else 1
        ways = len(protocol.offsets(thread.span)) * blocks
        yield thread, Fraction(bounds[place + 1] - bounds[place], SHARE_UNITS * ways)


def transcript_law(protocol: Weave, stream: Sequence[Any]) -> Law:
    """Return with what probability each transcript is heard of a device with this stream.

    Thread by thread, from the exact laws of mechanisms; None stands for no news.
    """
    seen = _held(protocol, stream)
    kept = _frozen(seen, protocol.changes)
    total: Law = {}
    for thread, share in exact_threads(protocol):
        looked = thread.is_snapshot
        law = _looked(protocol, thread, seen) if looked else _moved(protocol, thread, kept)
        for transcript, chance in law:
            total[transcript] = total.get(transcript, Fraction(0)) + share * chance
    return total


def _held(protocol: Weave, stream: Sequence[Any]) -> NDArray[np.int8]:
    """Return the entries in each period; who is away repeats the last ones, or the default."""
    values = protocol.values
    rows = [np.zeros(values.width, dtype=np.int8)]
    for value in stream:
        if value is None and values.always_there and not rows[-1].any():
            rows.append(values.encode(values.default))
        else:
            rows.append(rows[-1] if value is None else values.encode(value))
    return np.array(rows)


def _frozen(rows: NDArray[np.int8], changes: int) -> NDArray[np.int8]:
    """Return the entries as differences see them: before the first change too many."""
    used = np.cumsum(np.abs(np.diff(rows, axis=0)).sum(axis=1))
    last = int(np.searchsorted(used, changes, side="right"))
    return rows[np.minimum(np.arange(len(rows)), last)]


def _looked(
    protocol: Weave, thread: Thread, rows: NDArray[np.int8]
) -> Iterator[tuple[Transcript, Fraction]]:
    look = protocol.snapshots[thread.block]
    bits = rows[[thread.offset]][:, protocol.values.blocks[thread.block]]
    law = look.mechanism.law(look.encode(bits)[0])
    for output, numerator in zip(law.outputs, law.numerators, strict=True):
        message = Message(Place(SNAPSHOT, thread.offset, thread.block), output.tobytes())
        yield (message,), Fraction(numerator, law.denominator)


def _moved(
    protocol: Weave, thread: Thread, rows: NDArray[np.int8]
) -> Iterator[tuple[Transcript, Fraction]]:
    edges = protocol.edges(thread)
    mechanism, form = protocol.strand(thread).mechanism, protocol.difference(thread)
    law = mechanism.law(np.concatenate([rows[end] - rows[start] for start, end in edges]))
    assert isinstance(mechanism, SignedSampler)
    signs = mechanism.form.signs(law.outputs).reshape(len(law.outputs), len(edges), -1)
    for sent, numerator in zip(signs, law.numerators, strict=True):
        transcript = tuple(
            Message(Place(thread.span, end), message.tobytes())
            for (_, end), message in zip(edges, form.write(sent), strict=True)
        )
        yield transcript, Fraction(numerator, law.denominator)
