"""What mixing adds to the privacy of streams: a device's thread and reports as one message.

A device draws its thread before any data and sends one private output along it, in parts. If the
parts of all devices are mixed period by period, whoever sees them learns no more than from all
messages (thread, whole output) mixed at once; so one bound for one message is enough, and devices
of all threads hide each other. This needs devices that take part in the whole horizon: those that
leave early hide nobody afterwards, and are not to be counted.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Generic, TypeVar

from sfumato.accounting.shuffle import Hiding, Levels, Requirement, calibrated
from sfumato.core.contrast import Contrasts
from sfumato.core.guarantee import Guarantee
from sfumato.core.mechanism import Mechanism
from sfumato.streams.flat import Flat
from sfumato.streams.weave.protocol import Weave
from sfumato.streams.weave.threads import SNAPSHOT

__all__ = ["levels_of", "message_of", "mixed", "promised"]

Stream = TypeVar("Stream", Weave, Flat)


def message_of(protocol: Weave | Flat) -> Hiding:
    """Return all that a device sends over the horizon, as one message."""
    return protocol.strand.mechanism if isinstance(protocol, Flat) else levels_of(protocol)


def levels_of(protocol: Weave) -> Levels:
    """Return a device's message: which thread, and what is sent along it."""
    shares: defaultdict[Mechanism, float] = defaultdict(float)
    silent = 0.0
    for thread, share in protocol.threads():
        if thread.span == SNAPSHOT:
            shares[protocol.snapshots[thread.block].mechanism] += share
        elif protocol.edges(thread):
            shares[protocol.strand(thread).mechanism] += share
        else:
            silent += share  # a thread that never reports tells less than any other
    first = next(iter(shares))
    shares[first] += silent
    return Levels([(share, mechanism) for mechanism, share in shares.items()])


@dataclass(frozen=True, eq=False)
class _Tried(Generic[Stream]):
    """A protocol that may be taken, and what it takes to hide its message."""

    protocol: Stream
    message: Hiding

    @property
    def worst_ratio(self) -> Fraction:
        return self.message.worst_ratio

    def contrasts(self) -> tuple[Contrasts, ...]:
        return self.message.contrasts()


def mixed(protocol: Stream, required: Requirement) -> Stream:
    """Return the protocol with the largest epsilon, up to its own, that meets a requirement.

    Spans and shares stay; sizes are chosen anew.

    Parameters
    ----------
    protocol
        Its epsilon is the limit: what devices grant at most.
    required
        What is promised once reports are mixed; ``min_batch`` counts the devices that take part in
        the whole horizon.

    """
    anew: dict[str, Any] = {} if isinstance(protocol, Flat) else {"sized": (), "looks": ()}

    def made(epsilon: float) -> _Tried[Stream]:
        tried = replace(protocol, epsilon=epsilon, **anew)
        return _Tried(tried, message_of(tried))

    return calibrated(made, required, protocol.epsilon).protocol


def promised(protocol: Weave | Flat, required: Requirement) -> Guarantee:
    """Return the promise of a mixed protocol in words."""
    there = f"at least {required.min_batch:,} devices take part in the whole horizon"
    assumed = [there, *required.guarantee.assumptions[1:]]
    return replace(
        protocol.guarantee,
        model="shuffle",
        epsilon=required.epsilon,
        delta=required.delta,
        assumptions=(*protocol.guarantee.assumptions, *assumed),
    )
