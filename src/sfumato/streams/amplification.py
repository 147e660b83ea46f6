"""Shuffling of streams: a device's thread and all its reports count as one message.

A device draws its thread before any data and sends one private output along it, in parts. If the
parts of all devices are shuffled period by period, an observer learns no more than from all
messages (thread, whole output) shuffled at once; so a bound for one message is enough, and devices
of all threads hide each other. Only devices that take part in the whole horizon may be counted,
because those that leave early hide nobody afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Generic, Protocol, Self, TypeVar

from sfumato.accounting.shuffle import Hiding, Requirement, calibrated
from sfumato.core.contrast import Contrasts
from sfumato.core.guarantee import Guarantee
from sfumato.core.stream import Stream

__all__ = ["Shuffled", "promised", "shuffled"]


class Shuffled(Protocol):
    """A stream whose reports can be shuffled."""

    @property
    def epsilon(self) -> float:
        """The privacy of a device's whole stream."""

    def at(self, epsilon: float) -> Self:
        """Return the same stream at another epsilon."""

    def message(self) -> Hiding:
        """Return everything that a device sends over the horizon, as one message."""


S = TypeVar("S", bound=Shuffled)


@dataclass(frozen=True, eq=False)
class _Tried(Generic[S]):
    """A stream that was tried, with its message."""

    stream: S
    message: Hiding

    @property
    def worst_ratio(self) -> Fraction:
        return self.message.worst_ratio

    def contrasts(self) -> tuple[Contrasts, ...]:
        return self.message.contrasts()


def shuffled(stream: S, required: Requirement) -> S:
    """Return the stream with the largest epsilon, up to its own, that meets a requirement.

    Spans and shares stay the same; sizes are chosen again.

    Parameters
    ----------
    stream
        The stream; its epsilon is the largest one that devices allow.
    required
        The promise about shuffled reports; ``min_batch`` is the number of devices that take part in
        the whole horizon.

    """

    def tried(epsilon: float) -> _Tried[S]:
        other = stream.at(epsilon)
        return _Tried(other, other.message())

    return calibrated(tried, required, stream.epsilon).stream


def promised(stream: Stream, required: Requirement) -> Guarantee:
    """Return the guarantee of a shuffled stream."""
    there = f"at least {required.min_batch:,} devices take part in the whole horizon"
    assumed = [there, *required.guarantee.assumptions[1:]]
    return replace(
        stream.guarantee,
        model="shuffle",
        epsilon=required.epsilon,
        delta=required.delta,
        assumptions=(*stream.guarantee.assumptions, *assumed),
    )
