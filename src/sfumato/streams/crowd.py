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

from sfumato.accounting.shuffle import Levels, Requirement, calibrated
from sfumato.core.guarantee import Guarantee
from sfumato.core.mechanism import Mechanism
from sfumato.streams.weave.protocol import Weave
from sfumato.streams.weave.threads import SNAPSHOT

__all__ = ["levels_of", "mixed", "promised"]


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
class _Woven(Levels):
    protocol: Weave


def mixed(protocol: Weave, required: Requirement) -> Weave:
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

    def made(epsilon: float) -> _Woven:
        tried = replace(protocol, epsilon=epsilon, sized=(), looks=())
        return _Woven(levels_of(tried).parts, tried)

    return calibrated(made, required, protocol.epsilon).protocol


def promised(protocol: Weave, required: Requirement) -> Guarantee:
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
